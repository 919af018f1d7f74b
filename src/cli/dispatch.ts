/** From the words of a command line to its exit status. */

import { Fault } from '../kernel/fault.js';
import { VERSION } from '../kernel/version.js';
import { nearest } from '../language/nearest.js';
import type { CommandEntry } from './commands/index.js';
import { createContext, type Session } from './create-context.js';
import type { Command } from './define-command.js';
import { EXIT, exitStatusOf } from './exit-status.js';
import { type Found, findCommand, wordsBelow } from './find-command.js';
import { type Globals, guessGlobals, readGlobals } from './global-options.js';
import { watchInterrupts } from './interrupts.js';
import { listWords } from './option.js';
import type { Outcome, Outcomes } from './outcome.js';
import { parseInput } from './parse-input.js';
import { createPrinter, type Printer } from './render/printer.js';
import type { CliOptions } from './run.js';
import type { View } from './view.js';

/** @returns the exit status; never throws for what a command does */
export async function dispatch(options: CliOptions): Promise<number> {
  const { argv, env, stdout, stderr } = options;
  const printer = (globals: Globals) => createPrinter({ stdout, stderr, env, globals });
  const early = () => printer(guessGlobals(argv));
  try {
    const found = findCommand(argv);
    if (asksVersion(found)) return await (await early()).show(versionOutcome);
    if (asksHelp(found.rest) || isBare(found)) return await (await early()).show({ view: await helpFor(found) });
    if (found.kind === 'group') throw noSuchCommand(found.path, found.stray);
    const { command } = await found.entry.load();
    const raw = await parseInput(found.entry.path, command, found.rest);
    const globals = readGlobals(raw);
    return await execute({ ...options, entry: found.entry, command, raw, globals, printer: await printer(globals) });
  } catch (error) {
    await (await early()).fail(error);
    return exitStatusOf(error);
  }
}

const versionOutcome: Outcome = {
  body: { version: VERSION },
  names: [VERSION],
  view: { kind: 'lines', lines: [`orch ${VERSION}`] },
};

interface Execution extends CliOptions {
  readonly entry: CommandEntry;
  readonly command: Command;
  readonly raw: Readonly<Record<string, readonly string[]>>;
  readonly globals: Globals;
  readonly printer: Printer;
}

async function execute(execution: Execution): Promise<number> {
  const { command, raw, printer } = execution;
  const interrupts = command.ownsSignals ? null : watchInterrupts(execution.interrupts);
  const session: Session = createContext({ ...execution, interrupts });
  try {
    const status = await print(await command.execute(session.context, raw), session, printer);
    return session.context.signal.aborted ? EXIT.interrupted : status;
  } catch (error) {
    session.context.progress.end();
    if (session.context.signal.aborted) return EXIT.interrupted;
    await printer.fail(error);
    return exitStatusOf(error);
  } finally {
    interrupts?.stop();
    session.close();
  }
}

async function print(outcomes: Outcomes, session: Session, printer: Printer): Promise<number> {
  session.context.progress.end();
  if (!isStream(outcomes)) return printer.show(outcomes);
  let status: number = EXIT.done;
  for await (const outcome of outcomes) {
    session.context.progress.end();
    status = await printer.show(outcome);
    if (printer.closed) break;
  }
  return status;
}

const isStream = (outcomes: Outcomes): outcomes is AsyncIterable<Outcome> => Symbol.asyncIterator in outcomes;

const before = (rest: readonly string[]): readonly string[] => {
  const end = rest.indexOf('--');
  return end < 0 ? rest : rest.slice(0, end);
};

const asksHelp = (rest: readonly string[]): boolean => before(rest).some((word) => word === '-h' || word === '--help');

const asksVersion = (found: Found): boolean =>
  found.kind === 'group' && found.path === '' && found.rest.some((word) => word === '-V' || word === '--version');

const isBare = (found: Found): boolean => found.kind === 'group' && found.path === '' && found.rest.length === 0;

async function helpFor(found: Found): Promise<View> {
  const help = await import('./help/help.js');
  return found.kind === 'command' ? help.commandHelp(found.entry) : help.groupHelp(found.path);
}

function noSuchCommand(path: string, stray: string | null): Fault {
  const name = path === '' ? 'orch' : `orch ${path}`;
  const words = wordsBelow(path);
  const see = `see: ${name} --help`;
  if (stray === null) {
    return new Fault('usage', `"${name}" needs one more word: ${listWords(words)}`, { hint: see });
  }
  const guess = nearest(stray, words);
  return new Fault('usage', `"${name}" has no command "${stray}"`, {
    hint: guess === null ? see : `did you mean "${name} ${guess}"? (${see})`,
  });
}
