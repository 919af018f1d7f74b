/** Runs a command line: prints the version or help, or parses and executes a command, and returns the exit status. */
import { Fault } from '../kernel/fault.js';
import { VERSION } from '../kernel/version.js';
import { nearest } from '../language/nearest.js';
import type { CliOptions } from './cli-options.js';
import { createContext, type Session } from './context.js';
import { EXIT, exitStatusOf, exitStatusOfFailure } from './exit-status.js';
import { type Found, findCommand, groupOf, wordsBelow } from './find-command.js';
import { guessGlobals, readGlobals } from './global-options.js';
import { watchInterrupts } from './interrupts.js';
import { listWords } from './options.js';
import type { Outcome, Outcomes, View } from './outcome.js';
import { parseInput } from './parse-input.js';
import { createPrinter, type Printer } from './render/printer.js';

/** Returns the exit status. Prints all failures of the command instead of throwing. */
export async function dispatch(options: CliOptions): Promise<number> {
  const { argv, env, stdout, stderr } = options;
  const printer = () => createPrinter({ stdout, stderr, env, globals: guessGlobals(argv) });
  try {
    const found = findCommand(argv);
    if (asksVersion(found)) return await (await printer()).show(versionOutcome);
    if (asksHelp(found.rest) || isBare(found)) {
      return await (await printer()).show({ view: await helpFor(found, stdout) }, { paged: true });
    }
    if (found.kind === 'group') throw await noSuchCommand(found);
    return await execute(options, found);
  } catch (error) {
    await (await printer()).fail(error);
    return exitStatusOf(error);
  }
}

const versionOutcome: Outcome = {
  body: { version: VERSION },
  names: [VERSION],
  view: { kind: 'lines', lines: [`orch ${VERSION}`] },
};

const before = (rest: readonly string[]): readonly string[] => {
  const end = rest.indexOf('--');
  return end < 0 ? rest : rest.slice(0, end);
};

const asksHelp = (rest: readonly string[]): boolean => before(rest).some((word) => word === '-h' || word === '--help');

const asksVersion = (found: Found): boolean =>
  found.kind === 'group' && found.path === '' && found.rest.some((word) => word === '-V' || word === '--version');

const isBare = (found: Found): boolean => found.kind === 'group' && found.path === '' && found.rest.length === 0;

async function helpFor(found: Found, stdout: CliOptions['stdout']): Promise<View> {
  const [pages, { helpWidth }] = await Promise.all([import('./help/pages.js'), import('./help/wrap.js')]);
  const width = helpWidth(stdout);
  if (found.kind === 'group') return pages.groupHelp(found.path, width);
  return found.group === null ? pages.commandHelp(found.entry, width) : pages.groupHelp(found.group, width);
}

async function noSuchCommand({ path, stray, unknown, rest }: Extract<Found, { kind: 'group' }>): Promise<Fault> {
  const name = path === '' ? 'orch' : `orch ${path}`;
  const words = wordsBelow(path);
  const see = `see: ${name} --help`;
  if (unknown !== null) {
    return new Fault('usage', `"${name}" has no option ${unknown}`, {
      hint: `options of a command go after its name (${see})`,
    });
  }
  if (stray === null) {
    return new Fault('usage', `"${name}" needs one more word: ${listWords(words)}`, { hint: see });
  }
  const { foreignHint } = await import('./foreign-words.js');
  const group = path === '' ? [] : path.split(' ');
  const [, next = ''] = rest.slice(rest.indexOf(stray));
  const guess = synonymOf(stray, path === '' ? [...words, '--version'] : words);
  const near = guess ?? nearest(stray, words);
  return new Fault('usage', `"${name}" has no command "${stray}"`, {
    hint:
      groupOf(path)?.absent?.get(stray) ??
      (guess === null ? (foreignHint([...group, stray, next]) ?? foreignHint([...group, stray])) : null) ??
      (near === null ? see : `did you mean "${name} ${near}"? (${see})`),
  });
}

/** Verbs of other tools with the verbs of orch that may be meant. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  get: ['show', 'list'],
  info: ['show', 'status'],
  describe: ['show'],
  rm: ['remove', 'revoke'],
  del: ['remove', 'revoke'],
  delete: ['remove', 'revoke'],
  add: ['create', 'set', 'init'],
  create: ['add', 'set', 'new'],
  new: ['create', 'add', 'set'],
  put: ['set'],
  edit: ['update', 'set'],
  update: ['edit', 'set'],
  kill: ['close', 'cancel', 'end'],
  stop: ['end', 'cancel', 'close'],
  log: ['output', 'list'],
  logs: ['output', 'list'],
  version: ['--version'],
};

function synonymOf(word: string, words: readonly string[]): string | null {
  const meant = Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : [];
  return meant?.find((candidate) => words.includes(candidate)) ?? null;
}

/** Runs a command. Throws `usage` for invalid words, and prints whatever the command throws. */
export async function execute(
  options: CliOptions,
  found: Extract<Found, { readonly kind: 'command' }>,
): Promise<number> {
  const command = await found.entry.load();
  const raw = await parseInput(found.entry.path, command, command.rewrite(found.rest));
  const globals = readGlobals(raw, command);
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
  if (!isStream(outcomes)) {
    const release = context.onInterrupt((interrupt) => {
      if (interrupt !== 'SIGINT' || !printer.paging) context.interrupt(interrupt);
    });
    return await printer.show(outcomes, { paged: outcomes.unpaged !== true }).finally(release);
  }
  let status: number = EXIT.done;
  for await (const outcome of outcomes) {
    if (context.globals.arrangement?.sort && !outcome.watched) {
      throw new Fault('usage', '--sort needs the whole list, and this one comes page by page', {
        hint: 'give --limit N in place of --all',
      });
    }
    context.progress.end();
    status = await printer.show(outcome);
    if (printer.closed) break;
  }
  return status;
}

const isStream = (outcomes: Outcomes): outcomes is AsyncIterable<Outcome> => Symbol.asyncIterator in outcomes;
