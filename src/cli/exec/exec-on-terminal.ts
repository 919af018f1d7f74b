/** `orch exec --tty`: runs the command on a terminal of the agent, with this one in raw mode in front of it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sentEnvironment } from '../../kernel/environment.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import type { Outcome } from '../outcome.js';
import { openableTerm } from '../terminal/openable-term.js';
import { sessionSettings } from '../terminal/session-options.js';
import { terminalApi } from '../terminal/terminal-api.js';
import { sizeOf } from '../terminal/terminal-size.js';

export interface TerminalExec {
  readonly nodes: readonly string[];
  readonly command: readonly string[];
  readonly escapeChar: string | undefined;
  /** Names of options that were given and only fit commands without a terminal. */
  readonly unfit: readonly string[];
}

/** Ends with the status of the command. Throws `usage` for several agents, and where there is no terminal to type at. */
export async function execOnTerminal(
  context: Context,
  { nodes, command, escapeChar, unfit }: TerminalExec,
): Promise<Outcome> {
  const { env, signal, streams, globals } = context;
  const [first] = globals.output === 'table' || globals.output === 'wide' ? unfit : ['--output', ...unfit];
  if (first !== undefined) throw new Fault('usage', `--tty and ${first} exclude each other`);
  if (streams.stdin.isTTY !== true) {
    throw new Fault('usage', '--tty needs a terminal on standard input', { hint: 'leave --tty out' });
  }
  const settings = sessionSettings({ escapeChar, queueInput: false, clipboard: undefined, predict: undefined });
  const connection = await terminalApi(context);
  const { api } = connection;
  const [agent, another] = await resolveNodes(api, nodes, { signal });
  if (agent === undefined || another !== undefined) {
    throw new Fault('usage', '--tty takes a single agent', { hint: 'for several, leave --tty out' });
  }
  const tty = { ...sizeOf([streams.stdout, streams.stderr]), term: openableTerm(env.TERM) };
  const body = { command: [...command], tty, env: sentEnvironment(env) };
  // Loaded behind the request, which it would hold up.
  const [opened, { runTerminal }] = await Promise.all([
    api.call('execOnAgent', { params: { node_id: agent.node_id }, body, signal }),
    nextTurn().then(() => import('../terminal/run-terminal.js')),
  ]);
  return runTerminal(context, {
    connection,
    sessionId: opened.session_id,
    wsUrl: opened.ws_url,
    mode: 'write',
    isNew: true,
    ...settings,
  });
}
