import { FAULTS } from '../../contract/faults.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { Env } from '../env.js';
import { EXIT } from '../exit-status.js';
import { type Globals, isForPrograms } from '../global-options.js';
import { HANG, type Line, type Outcome, styled, type View } from '../outcome.js';
import { wrapAtWords } from './fit-lines.js';
import { loadPaint, type Paint, spansOf, wantsColor } from './paint.js';
import { renderView } from './render-view.js';
import type { OutputStream } from './streams.js';
import { tableWriter } from './table-writer.js';
import { escapeJson, sanitize } from './terminal-text.js';
import type { WatchedList } from './watched-list.js';

interface PrinterOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Env;
  readonly globals: Globals;
}

export interface Printer {
  /**
   * Prints an outcome and returns its exit status. The only outcome of a command may go through the pager. Throws if the
   * output cannot be written.
   */
  show(outcome: Outcome, options?: ShowOptions): Promise<number>;
  /** Prints an error. */
  fail(error: unknown): Promise<void>;
  /** Prints a line; does nothing if `forPeople` is false. */
  note(line: Line): void;
  warn(line: Line): void;
  /** Prints a view on standard error. */
  present(view: View): Promise<void>;
  /** True once the reader of standard output has closed it. */
  readonly closed: boolean;
  /** True while the pager has the terminal, and with it Ctrl-C. */
  readonly paging: boolean;
  /** True if standard output gets colours. */
  readonly color: boolean;
  /** Paint of standard error. */
  readonly errorPaint: Paint;
  /** False with `-q`, and with `-o json` and `-o yaml`, where standard error carries only the problem document. */
  readonly forPeople: boolean;
}

interface ShowOptions {
  /** True if long output on a terminal goes through the pager. */
  readonly paged?: boolean;
}

export async function createPrinter({ stdout, stderr, env, globals }: PrinterOptions): Promise<Printer> {
  const color = wantsColor(env, globals.color, stdout.isTTY === true);
  const errorPaint = await loadPaint(wantsColor(env, globals.color, stderr.isTTY === true));
  // Compiled first, so that a mistake in it is found before the command does anything.
  const select =
    globals.expression === null ? null : (await import('./select-json.js')).compileSelection(globals.expression);
  const out = openStream(stdout);
  const err = openStream(stderr);
  const forPrograms = isForPrograms(globals);
  const forPeople = !forPrograms && !globals.quiet;
  let paging = false;
  const text = async (outcome: Outcome): Promise<string> => {
    if (select !== null) return outcome.body === undefined ? '' : asLines(select(outcome.body));
    if (globals.output === 'name') return asLines((outcome.names ?? []).map(sanitize));
    if (globals.output === 'json' || globals.output === 'yaml') {
      if (outcome.body === undefined) return '';
      if (!outcome.oneLine) return serialize(outcome.body, globals.output);
      return (globals.output === 'yaml' ? '---\n' : '') + (await serialize(outcome.body, globals.output, 0));
    }
    if (globals.output === 'dot') return asLines((outcome.dot ?? '').split('\n').map(sanitize));
    return asLines(await viewLines(outcome));
  };
  const viewLines = async ({ view }: Outcome): Promise<readonly string[]> => {
    if (!view) return [];
    const wide = globals.output === 'wide';
    const columns = wide ? null : columnsOf(stdout);
    return renderView(view, {
      paint: await loadPaint(color),
      wide,
      columns,
      writeTable: await tableWriter(view, columns),
    });
  };
  let watched: Pick<WatchedList, 'next'> | null = null;
  /** Returns what a watched list prints for its present state. */
  const watchedText = async (outcome: Outcome): Promise<string> => {
    const namesOnly = globals.output === 'name';
    watched ??= new (await import('./watched-list.js')).WatchedList({
      stdout,
      namesOnly,
      render: async (list) => (namesOnly ? (list.names ?? []).map(sanitize) : viewLines(list)),
      renderRecord: forPrograms ? (body) => text({ body, oneLine: true }) : null,
    });
    return watched.next(outcome);
  };
  /** Returns whether the pager has shown the text. */
  const paged = async (shown: string): Promise<boolean> => {
    if (globals.noPager || stdout.isTTY !== true || stdout.fd === undefined || env.TERM === 'dumb') return false;
    const { choosePager, fits, isThere, page } = await import('./pager.js');
    const pager = choosePager(env);
    if (pager === null || fits(shown, stdout) || !isThere(pager, env)) return false;
    paging = true;
    try {
      if (await page(shown, pager, { env, fd: stdout.fd })) return true;
    } finally {
      paging = false;
    }
    if (pager.from !== null) warn(`the pager "${pager.command}" of ${pager.from} cannot be run`);
    return false;
  };
  /** Returns a line for standard error, wrapped if that is a terminal. */
  const prose = (line: Line, hang: number | null = HANG): string => {
    const columns = columnsOf(stderr);
    const all = columns === null || hang === null ? [line] : wrapAtWords(line, columns, hang);
    return asLines(all.map((one) => errorPaint.line(one)));
  };
  const warn = (line: Line): void => {
    if (globals.quiet) return;
    void err.write(prose([styled('warn', 'warning: '), ...spansOf(line)]));
  };
  return {
    color,
    errorPaint,
    forPeople,
    get closed() {
      return out.closed;
    },
    get paging() {
      return paging;
    },
    show: async (given, options = {}) => {
      const { arrangement } = globals;
      const outcome = arrangement === null ? given : (await import('./arrange-table.js')).arrange(given, arrangement);
      const shown = outcome.watched ? await watchedText(outcome) : await text(outcome);
      if (options.paged && (await paged(shown))) return outcome.exitStatus ?? EXIT.done;
      const problem = await out.write(shown);
      if (problem !== null) throw notWritten(problem);
      return outcome.exitStatus ?? EXIT.done;
    },
    fail: async (error) => {
      const { output } = globals;
      if (output === 'json' || output === 'yaml') await err.write(await serialize(problemOf(error), output, 0));
      else
        await err.write(
          renderFailure(error, globals.verbose)
            .map(([line, hang]) => prose(line, hang))
            .join(''),
        );
    },
    present: async (view) => {
      const columns = columnsOf(stderr);
      const writeTable = await tableWriter(view, columns);
      await err.write(asLines(renderView(view, { paint: errorPaint, wide: false, columns, writeTable })));
    },
    note: (line) => {
      if (forPeople) void err.write(prose(line));
    },
    warn,
  };
}

/** Returns the width of a terminal; null if the stream is not one. */
const columnsOf = ({ isTTY, columns }: OutputStream): number | null => (isTTY ? (columns ?? null) : null);

const asLines = (all: readonly string[]): string => all.map((line) => `${line}\n`).join('');

async function serialize(body: unknown, format: string, indent = 2): Promise<string> {
  if (format === 'json') return `${escapeJson(JSON.stringify(body, null, indent))}\n`;
  const { renderYaml } = await import('./yaml.js');
  return renderYaml(body);
}

interface Stream {
  readonly closed: boolean;
  /** Writes a text. Resolves with null once it is flushed or the reader has closed the stream, else with the error. */
  write(text: string): Promise<Error | null>;
}

/** Opens a stream for writing. A reader that closes it causes no error. */
function openStream(stream: OutputStream & { readonly errored?: Error | null }): Stream {
  let closed = false;
  const onError = () => {
    closed = true;
  };
  if (stream.listenerCount('error') === 0) stream.on('error', onError);
  return {
    get closed() {
      return closed;
    },
    write: (text) =>
      new Promise((resolve) => {
        if (closed || text === '') return resolve(null);
        stream.write(text, (error) => {
          if (!error) return resolve(null);
          closed = true;
          // If the stream failed earlier, its first error is the cause.
          const cause = stream.errored ?? error;
          resolve(isReaderGone(cause) ? null : cause);
        });
      }),
  };
}

/** Wraps any other thrown value in an `internal` Fault. */
function faultOf(error: unknown): Fault {
  return isFault(error)
    ? error
    : new Fault('internal', `something went wrong inside orch: ${messageOf(error)}`, {
        hint: 'run it again with --verbose to see where, and report it',
        cause: error,
      });
}

/** Returns the RFC 9457 problem document of an error, for programs. Local failures have the same shape as the server's. */
function problemOf(error: unknown): Readonly<Record<string, unknown>> {
  const { code, message, hint, errors, data } = faultOf(error);
  return {
    type: `urn:orch:problem:${code}`,
    title: FAULTS[code].title,
    detail: message,
    code,
    ...(hint === undefined ? {} : { hint }),
    ...(errors === undefined ? {} : { errors }),
    ...data,
  };
}

/** A line of an error with the columns by which its rest is indented; null for one that is written as it is. */
type FailureLine = readonly [line: Line, hang: number | null];

function renderFailure(error: unknown, verbose: boolean): readonly FailureLine[] {
  const fault = faultOf(error);
  const [first = '', ...more] = fault.message.split('\n');
  const all: FailureLine[] = [
    [[styled('bad', 'orch: '), first], HANG],
    ...more.map((line): FailureLine => [`  ${line}`, null]),
  ];
  for (const { path, message, line, column } of fault.errors ?? []) {
    // Skips errors that the message contains already.
    if (fault.message.includes(message)) continue;
    const place = line === undefined ? path : `${path || '/'} (line ${line}, column ${column ?? 1})`;
    all.push([`  ${place === '' ? '' : `${place}: `}${message}`, 2 * HANG]);
  }
  if (fault.hint !== undefined) {
    const [hint = '', ...rest] = fault.hint.split('\n');
    all.push(
      [[styled('dim', HINT), hint], HINT.length],
      ...rest.map((line): FailureLine => [`${' '.repeat(HINT.length)}${line}`, HINT.length]),
    );
  }
  if (verbose) all.push(...details(error, fault).map((line): FailureLine => [line, null]));
  return all;
}

const HINT = '  hint: ';

function details(error: unknown, fault: Fault): readonly Line[] {
  const requestId = fault.data?.request_id;
  const all: Line[] = [styled('dim', `  code: ${fault.code}`)];
  if (typeof requestId === 'string') all.push(styled('dim', `  request: ${requestId}`));
  if (fault.cause instanceof Error && isFault(error)) all.push(styled('dim', `  cause: ${fault.cause.message}`));
  if (!isFault(error) && error instanceof Error) {
    all.push(
      ...(error.stack ?? '')
        .split('\n')
        .slice(1)
        .map((line) => styled('dim', line)),
    );
  }
  return all;
}

const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']);

/** Returns whether a write failed because the reader closed the stream, which is no error. */
export const isReaderGone = (error: unknown): boolean => GONE.has(systemCodeOf(error));

/** Returns the fault for other write errors, such as a full disk. */
export const notWritten = (cause: unknown): Fault =>
  new Fault('internal', `the answer could not be written: ${messageOf(cause)}`, {
    hint: 'what was written of it is not all',
    cause,
  });
