/** Runs a session at this terminal, and says how it ended. */
import type { Context } from '../context.js';
import { type ExecEnd, exitStatusOfEnd, wordsOfEnd } from '../exec/exec-end.js';
import { EXIT } from '../exit-status.js';
import type { Outcome } from '../outcome.js';
import { TerminalRun, type TerminalRunOptions } from './terminal-run.js';

/** Ends with the status of the remote program. Throws the Fault that ended the connection for good. */
export async function runTerminal(context: Context, options: TerminalRunOptions): Promise<Outcome> {
  const run = new TerminalRun(context, options);
  const end = await run.run().finally(() => options.connection.api.close());
  const back = `orch term attach ${options.sessionId}`;
  const exitStatus = end.kind === 'exit' ? exitStatusOfEnd(end) : EXIT.lost;
  // A terminal that takes nothing would hold the whole program.
  if (run.isStuck) process.exit(exitStatus);
  if (end.kind === 'failed') {
    context.note(`The session may go on: ${back}`);
    throw end.fault;
  }
  if (end.kind === 'detached') context.note(`Detached. The session goes on: ${back}`);
  else if (end.kind === 'replaced') context.note('Another connection of yours has taken this session over.');
  else sayEnd(context, end);
  return { exitStatus };
}

function sayEnd({ note, streams }: Context, end: Extract<ExecEnd, { readonly kind: 'exit' }>): void {
  const words = wordsOfEnd(end);
  if (words !== '') note(`The session is over: ${words}.`);
  else if (streams.stdin.isTTY === true) note('The session is over.');
}
