/** Runs one command: parses its words, hands it what it needs, prints what it gives, and tells how it ended. */
import { createContext, type Session } from './create-context.js';
import { EXIT, exitStatusOf, exitStatusOfFailure } from './exit-status.js';
import type { Found } from './find-command.js';
import { readGlobals } from './global-options.js';
import { watchInterrupts } from './interrupts.js';
import type { Outcome, Outcomes } from './outcome.js';
import { parseInput } from './parse-input.js';
import { createPrinter, type Printer } from './render/printer.js';
import type { CliOptions } from './run.js';

/** Throws what is wrong with the words; what the command throws is printed. */
export async function execute(
  options: CliOptions,
  found: Extract<Found, { readonly kind: 'command' }>,
): Promise<number> {
  const { command } = await found.entry.load();
  const raw = await parseInput(found.entry.path, command, found.rest);
  const globals = readGlobals(raw, command.formats);
  const printer = await createPrinter({ ...options, globals });
  const interrupts = command.ownsSignals ? null : watchInterrupts(options.interrupts);
  const session = createContext({ ...options, globals, printer, interrupts });
  const { signal, progress } = session.context;
  try {
    const status = await print(await command.execute(session.context, raw), session, printer);
    return signal.aborted ? (interrupts?.status ?? EXIT.interrupted) : status;
  } catch (error) {
    progress.end();
    if (signal.aborted) return interrupts?.status ?? EXIT.interrupted;
    await printer.fail(error);
    const status = exitStatusOf(error);
    return command.failureStatus === null ? status : exitStatusOfFailure(status, command.failureStatus);
  } finally {
    interrupts?.stop();
    session.close();
  }
}

async function print(outcomes: Outcomes, { context }: Session, printer: Printer): Promise<number> {
  context.progress.end();
  if (!isStream(outcomes)) return printer.show(outcomes);
  let status: number = EXIT.done;
  for await (const outcome of outcomes) {
    context.progress.end();
    status = await printer.show(outcome);
    if (printer.closed) break;
  }
  return status;
}

const isStream = (outcomes: Outcomes): outcomes is AsyncIterable<Outcome> => Symbol.asyncIterator in outcomes;
