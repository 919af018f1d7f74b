/** The one place that prints: answers on standard output, everything else on standard error. */
import type { Readable } from 'node:stream';
import type { Env } from '../context.js';
import { EXIT } from '../exit-status.js';
import type { Globals } from '../global-options.js';
import type { Outcome } from '../outcome.js';
import { type Line, styled, type View } from '../view.js';
import { wantsColor } from './color.js';
import { problemOf, renderFailure } from './failure.js';
import { isReaderGone, notWritten } from './output-failure.js';
import { loadPaint, type Paint, spansOf } from './paint.js';
import { escapeJson, sanitize } from './sanitize.js';
import { renderView } from './view.js';

export type InputStream = Readable & {
  readonly isTTY?: boolean;
  readonly fd?: number;
  setRawMode?(isRaw: boolean): unknown;
};
export type OutputStream = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly fd?: number;
  readonly columns?: number;
  readonly rows?: number;
};

export interface PrinterOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Env;
  readonly globals: Globals;
}

export interface Printer {
  /** Prints an answer. Gives the exit status. */
  show(outcome: Outcome): Promise<number>;
  /** Prints what was thrown. */
  fail(error: unknown): Promise<void>;
  /** One line for people; nothing where `forPeople` is false. */
  note(line: Line): void;
  warn(line: Line): void;
  /** Shows a view on standard error. */
  present(view: View): Promise<void>;
  /** Whoever read standard output is gone. */
  readonly closed: boolean;
  /** Colours are wanted on standard output. */
  readonly color: boolean;
  /** For standard error. */
  readonly errorPaint: Paint;
  /** Standard error is read by a person: not with `-o json` or `-o yaml`, where it holds the problem alone. */
  readonly forPeople: boolean;
}

export async function createPrinter({ stdout, stderr, env, globals }: PrinterOptions): Promise<Printer> {
  const color = wantsColor(env, globals.noColor, stdout.isTTY === true);
  const errorPaint = await loadPaint(wantsColor(env, globals.noColor, stderr.isTTY === true));
  const out = openStream(stdout);
  const err = openStream(stderr);
  const forPrograms = globals.output === 'json' || globals.output === 'yaml';
  const text = async (outcome: Outcome): Promise<string> => {
    if (globals.output === 'name') return asLines((outcome.names ?? []).map(sanitize));
    if (forPrograms) {
      if (outcome.body === undefined) return '';
      if (!outcome.oneLine) return serialize(outcome.body, globals.output);
      return (globals.output === 'yaml' ? '---\n' : '') + (await serialize(outcome.body, globals.output, 0));
    }
    if (globals.output === 'dot') return asLines((outcome.dot ?? '').split('\n').map(sanitize));
    if (!outcome.view) return '';
    const wide = globals.output === 'wide';
    const columns = wide ? null : columnsOf(stdout);
    return asLines(await renderView(outcome.view, { paint: await loadPaint(color), wide, columns }));
  };
  return {
    color,
    errorPaint,
    forPeople: !forPrograms,
    get closed() {
      return out.closed;
    },
    show: async (outcome) => {
      const problem = await out.write(await text(outcome));
      if (problem !== null) throw notWritten(problem);
      return outcome.exitStatus ?? EXIT.done;
    },
    fail: async (error) => {
      if (forPrograms) await err.write(await serialize(problemOf(error), globals.output, 0));
      else await err.write(asLines(renderFailure(error, globals.verbose).map((line) => errorPaint.line(line))));
    },
    present: async (view) => {
      await err.write(asLines(await renderView(view, { paint: errorPaint, wide: false, columns: columnsOf(stderr) })));
    },
    note: (line) => {
      if (!forPrograms) void err.write(`${errorPaint.line(line)}\n`);
    },
    warn: (line) => {
      void err.write(`${errorPaint.line([styled('warn', 'warning: '), ...spansOf(line)])}\n`);
    },
  };
}

/** Null where nothing has to fit. */
const columnsOf = ({ isTTY, columns }: OutputStream): number | null => (isTTY ? (columns ?? null) : null);

const asLines = (all: readonly string[]): string => all.map((line) => `${line}\n`).join('');

async function serialize(body: unknown, format: string, indent = 2): Promise<string> {
  if (format === 'json') return `${escapeJson(JSON.stringify(body, null, indent))}\n`;
  const { renderYaml } = await import('./yaml.js');
  return renderYaml(body);
}

interface Stream {
  readonly closed: boolean;
  /** Resolves when the text is on its way, or when nobody reads any more; with what else it failed with. */
  write(text: string): Promise<Error | null>;
}

/** A reader that has gone closes the stream for us without an error. */
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
          // Of a stream that had failed before, the first error says why.
          const cause = stream.errored ?? error;
          resolve(isReaderGone(cause) ? null : cause);
        });
      }),
  };
}
