/** The commands of `orch term` about recordings: transcript, replay and grep. */

import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { TERMINAL_SEARCH_LIMIT, type TerminalMatch } from '../../contract/terminal.js';
import type { Clock } from '../../kernel/clock.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { parseHead } from '../../terminal/recording/cast-format.js';
import { toHarmless, toHarmlessCast, toHtml, toRaw, toText } from '../../terminal/recording/convert-cast.js';
import { Neutralizer } from '../../terminal/recording/neutralizer.js';
import { type CastItem, type OpenCast, openCastFile, readCast } from '../../terminal/recording/read-cast.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { count, formatTime } from '../format.js';
import { resolveNode } from '../nodes/resolve-node.js';
import { choice, flag, integer, text } from '../options.js';
import { type Line, type LinesView, lines, linesOf, styled } from '../outcome.js';
import { parseWhen } from '../parse-time.js';
import { isReaderGone, notWritten } from '../render/printer.js';
import type { OutputStream } from '../render/streams.js';
import { findSession } from './term.js';

const FORMATS = ['cast', 'raw', 'txt', 'html', 'svg'] as const;

type Format = (typeof FORMATS)[number];

const recordingArgument = argument('ID|FILE', 'session ID, a unique prefix, or a file', 'terminal');

/** `orch term transcript`. */
export const getTranscript = defineCommand({
  examples: [
    'orch term transcript 01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    'orch term transcript 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --format cast --out session.cast',
    'orch term transcript 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --format raw | sha256sum',
    'orch term transcript session.cast --format svg --at 1:30 --out screen.svg',
  ],
  detail: [
    'Formats: cast is the recording itself (asciicast version 2, for asciinema and "orch term replay"). raw is every',
    'byte that the program wrote. txt is its lines without control sequences. html is a page with colours. svg is a',
    'picture of the screen at the end, or at the time of --at. FILE is asciicast version 2, also from another',
    'program, and may be gzipped.',
    'While a session is open, the command returns what is stored so far. The audit log records that you read it.',
    'Files and pipes get cast and raw with all control sequences of the recorded program; --harmless removes all but',
    'those that draw. Output to a terminal is always harmless.',
  ],
  access: 'operator',
  args: { recording: recordingArgument },
  options: {
    format: choice('FORM', FORMATS, 'format of the output [txt on a terminal, else cast]'),
    out: text('FILE', 'write it to a new file', { completes: 'file' }),
    at: text('TIME', 'with svg, the time of the screen: 90, 12:30 or 1:02:03 [the end]'),
    harmless: flag('remove control sequences that do more than draw'),
  },
  run: async (context, { recording, format, out, at, harmless }) => {
    const { streams, signal } = context;
    const isTerminal = out === undefined && streams.stdout.isTTY === true;
    const form = format ?? (isTerminal ? 'txt' : 'cast');
    if (at !== undefined && form !== 'svg') {
      throw new Fault('usage', '--at goes with --format svg: the other formats contain the whole recording');
    }
    const time = at === undefined ? undefined : parseTimeInRecording(at, '--at');
    const file = await openRecordingFile(recording);
    const source =
      file === null
        ? await downloadRecording(await context.api(), recording, signal)
        : { chunks: file, isAsRecorded: null };
    const chunks = await convert(source.chunks, { form, isHarmless: harmless || isTerminal, at: time });
    if (out === undefined) {
      await writeChunks(streams.stdout, isTerminal ? printable(chunks) : chunks, signal);
    } else {
      await writeFile(out, chunks, signal);
    }
    if (source.isAsRecorded !== null) requireAsRecorded(source);
    return out === undefined ? {} : { view: lines(`Wrote ${out}.`) };
  },
});

/** `orch term replay`. */
export const replayRecording = defineCommand({
  examples: [
    'orch term replay 01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    'orch term replay session.cast --speed 4 --idle-limit 2',
    'orch term replay 01JQ2Z6T0V5X8Y4M3N7P9R1S2T --at 12:30',
  ],
  detail: [
    'Plays the output with its timing, until Ctrl-C. Only sequences that draw reach your terminal: no title,',
    'clipboard, mouse mode or query. Your window should be at least as large as the recorded one. FILE is asciicast',
    'version 2, also from another program, and may be gzipped.',
  ],
  access: 'operator',
  args: { recording: recordingArgument },
  options: {
    speed: text('N', 'playback speed, such as 2 or 0.5 [1]'),
    idleLimit: text('SECONDS', 'maximum length of a pause'),
    at: text('TIME', 'begin with the screen at this time: 90, 12:30 or 1:02:03'),
  },
  run: async (context, input) => {
    const { stdout } = context.streams;
    if (stdout.isTTY !== true) {
      throw new Fault('usage', 'a replay needs a terminal', {
        hint: 'for a file or a pipe: orch term transcript ID --format raw',
      });
    }
    const speed = input.speed === undefined ? 1 : parseNumber(input.speed, '--speed');
    const idleLimit =
      input.idleLimit === undefined ? Number.POSITIVE_INFINITY : parseNumber(input.idleLimit, '--idle-limit');
    const from = input.at === undefined ? 0 : parseTimeInRecording(input.at, '--at');
    const { cast, download } = await open(context, input.recording);
    tellSize(context, cast);
    const { clock, signal } = context;
    const write = (chunk: string) => writeChunk(stdout, chunk);
    const status = await replay(cast.items, {
      speed,
      idleLimit,
      from,
      clock,
      signal,
      write,
    });
    if (download !== null) requireAsRecorded(download);
    if (status !== null && status !== '0') context.note(`It ended with exit status ${status}.`);
    return {};
  },
});

/** `orch term grep`. */
export const searchRecordings = defineCommand({
  examples: ['orch term grep "permission denied" -i', 'orch term grep "rm -rf" --node web-01 --since "30d ago"'],
  detail: [
    'Lists the lines that match a regular expression, newest sessions first. "orch term replay ID --at TIME" begins',
    'at the time of a line. The search ends after 15 seconds. The audit log records the search and its pattern.',
    'Recordings of ended sessions that cannot be read, or differ from their SHA-256 in the audit log, are named, and',
    'the exit status is 1.',
  ],
  access: 'operator',
  args: { pattern: argument('PATTERN', 'a regular expression') },
  options: {
    ignoreCase: flag('ignore case', { short: 'i' }),
    since: text('TIME', 'only sessions opened since: RFC 3339, a date, or "2h ago"'),
    node: text('NODE', 'only sessions on this agent', { completes: 'node' }),
    operator: text('OPERATOR', 'only sessions opened by this operator', { completes: 'operator' }),
    limit: integer('N', `maximum number of lines [${TERMINAL_SEARCH_LIMIT.standard}]`, 1),
  },
  run: async (context, { pattern, ignoreCase, since, node, operator, limit }) => {
    const { signal, clock } = context;
    requireExpression(pattern);
    const from = since === undefined ? null : Date.parse(parseWhen(since, '--since', clock.now()));
    const api = await context.api();
    const agent = node === undefined ? null : await resolveNode(api, node, { signal });
    const body = await api.call('searchTerminals', {
      query: {
        pattern,
        ignore_case: ignoreCase,
        since: from === null ? null : Math.floor(from / 1000),
        node: agent?.node_id ?? null,
        operator: operator ?? null,
        limit: limit ?? null,
      },
      signal,
    });
    if (body.truncated) context.note('There may be more matches: narrow the search down, or give --limit N.');
    const { matches, searched, altered } = body;
    if (altered.length > 0) context.note(alteredLine(altered));
    const names = [...new Set(matches.map(({ session_id }) => session_id))];
    const view = matches.length === 0 ? lines(`No matches in ${count(searched, 'recording')}.`) : matchLines(matches);
    return { body, names, view, exitStatus: altered.length === 0 ? EXIT.done : EXIT.error };
  },
});

type Chunks = AsyncIterable<Uint8Array | string>;

interface Conversion {
  readonly form: Format;
  readonly isHarmless: boolean;
  /** Time of a picture in seconds; undefined for the end. */
  readonly at: number | undefined;
}

async function convert(chunks: AsyncIterable<Uint8Array>, { form, isHarmless, at }: Conversion): Promise<Chunks> {
  if (form === 'cast' && !isHarmless) return chunks;
  const cast = await readCast(chunks);
  if (form === 'cast') return toHarmlessCast(cast);
  if (form === 'raw') return isHarmless ? toHarmless(cast) : toRaw(cast);
  // Loaded on demand, because the library of the screen is slow to load.
  if (form === 'svg') return (await import('../../terminal/recording/svg.js')).toSvg(cast, at);
  return form === 'txt' ? toText(cast) : toHtml(cast);
}

/** Neutralises a transcript for the operator's terminal. */
async function* printable(chunks: Chunks): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  const neutralizer = new Neutralizer();
  for await (const chunk of chunks) {
    yield neutralizer.write(typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk)));
  }
  yield neutralizer.undo();
}

async function writeFile(path: string, chunks: Chunks, signal: AbortSignal): Promise<void> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  const opened = new Promise<void>((resolve, reject) => file.once('open', () => resolve()).once('error', reject));
  await opened.catch((cause: unknown) => {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw new Fault('usage', isThere ? `${path} exists already` : `${path} cannot be made: ${messageOf(cause)}`, {
      hint: 'give the name of a file that does not exist yet',
      cause,
    });
  });
  // The writer receives the errors.
  file.on('error', () => undefined);
  try {
    await writeChunks(file as OutputStream, chunks, signal);
    await new Promise<void>((resolve, reject) =>
      file.end((error?: Error | null) => (error ? reject(error) : resolve())),
    );
  } catch (error) {
    file.destroy();
    await rm(path, { force: true });
    throw error;
  }
}

/** Opens a recording. `download` is null for a file, which has no digest to compare with. */
async function open(
  context: Context,
  recording: string,
): Promise<{ readonly cast: OpenCast; readonly download: Download | null }> {
  const file = await openRecordingFile(recording);
  if (file !== null) return { cast: await readCast(file), download: null };
  const download = await downloadRecording(await context.api(), recording, context.signal);
  return { cast: await readCast(download.chunks), download };
}

function tellSize(context: Context, { head: { width, height } }: OpenCast): void {
  const { columns = 0, rows = 0 } = context.streams.stdout;
  if (width <= columns && height <= rows) return;
  context.note(
    `It was recorded at ${width}x${height}, and this window is ${columns}x${rows}: lines may break elsewhere.`,
  );
}

function parseNumber(given: string, name: string): number {
  const number = /^\d{1,6}(\.\d{1,6})?$/.test(given) ? Number(given) : 0;
  if (number > 0) return number;
  throw new Fault('usage', `${name} takes a number above 0, not "${given}"`, { hint: 'such as 2 or 0.5' });
}

/** Throws `usage` for an invalid regular expression, which the orchestrator would reject. */
function requireExpression(pattern: string): void {
  try {
    new RegExp(pattern, 'u');
  } catch (cause) {
    throw new Fault('usage', `${JSON.stringify(pattern)} is no regular expression`, {
      hint: 'a character that means something in one takes a backslash: \\. \\( \\[',
      cause,
    });
  }
}

/** Maximum number of listed sessions. */
const NAMED = 10;

function alteredLine(ids: readonly string[]): Line {
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : '';
  const those = ids.slice(0, NAMED).join(', ') + more;
  const what = ids.length === 1 ? 'The recording of this session is' : 'The recordings of these sessions are';
  return [styled('bad', `${what} not what the audit log says, or damaged: ${those}.`)];
}

/** Lists the matches of each session below a heading. */
function matchLines(matches: readonly TerminalMatch[]): LinesView {
  const all: Line[] = [];
  let session = '';
  for (const match of matches) {
    if (match.session_id !== session) all.push(headOf(match));
    session = match.session_id;
    all.push([styled('dim', `${formatTimeInRecording(match.at).padStart(8)}  `), match.line]);
  }
  return linesOf(all);
}

const headOf = ({ session_id, operator, node_name, node_id, opened_at }: TerminalMatch): Line => [
  styled('strong', session_id),
  `  ${operator} on ${node_name ?? node_id}, ${formatTime(opened_at)}`,
];

/** A recording that is being downloaded. */
export interface Download {
  readonly sessionId: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Returns false if the SHA-256 differs from the audit log; null if unknown or not fully read. */
  isAsRecorded(): boolean | null;
}

/** Downloads the recording of a session. @throws Fault `terminal_not_found`, `transcript_not_found` */
export async function downloadRecording(api: ApiClient, given: string, signal: AbortSignal): Promise<Download> {
  const session_id = await findSession(api, given, signal);
  const { transcript_sha256: sha256 } = await api.call('getTerminal', { params: { session_id }, signal });
  const body = await api.download('getTranscript', { params: { session_id }, signal });
  const hash = createHash('sha256');
  let isRead = false;
  return {
    sessionId: session_id,
    chunks: hashed(),
    isAsRecorded: () => (sha256 === null || !isRead ? null : hash.copy().digest('hex') === sha256),
  };

  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      hash.update(chunk);
      yield chunk;
    }
    isRead = true;
  }
}

/** Checks a finished download. @throws Fault `transcript_invalid` if its SHA-256 differs from the audit log */
export function requireAsRecorded({ isAsRecorded, sessionId }: Download): void {
  if (isAsRecorded() !== false) return;
  throw new Fault(
    'transcript_invalid',
    `this is not what was recorded: its SHA-256 is not the one that "orch term show ${sessionId}" gives`,
    { hint: 'keep the file on the orchestrator, and see who could write there' },
  );
}

/** Opens a recording file. Returns null if the word does not look like a file name. @throws Fault `usage` */
export async function openRecordingFile(path: string): Promise<AsyncIterable<Uint8Array> | null> {
  const found = await stat(path).catch(() => null);
  if (found === null && !/[/.]/.test(path)) return null;
  if (found === null)
    throw new Fault('usage', `${path} does not exist`, { hint: 'see the sessions: orch term list --all' });
  if (found.isDirectory()) throw new Fault('usage', `${path} is a directory`);
  try {
    return onlyRecording(await openCastFile(path), path);
  } catch (cause) {
    throw new Fault('usage', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/** Passes on the bytes of a recording. Throws `transcript_invalid` before the first one if it is none, and for damaged gzip data. */
async function* onlyRecording(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let head: Buffer | null = Buffer.alloc(0);
  try {
    for await (const chunk of chunks) {
      if (head === null) {
        yield chunk;
        continue;
      }
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf(LINE_FEED);
      if (end < 0 && head.length < MAX_HEAD_BYTES) continue;
      parseHead(head.toString('utf8', 0, Math.max(0, end)));
      yield head;
      head = null;
    }
    // A recording without events may lack the last line feed.
    if (head === null) return;
    parseHead(head.toString('utf8'));
    yield head;
  } catch (cause) {
    if (!isFault(cause, 'transcript_invalid')) throw cause;
    throw new Fault('transcript_invalid', `${path} cannot be read: ${cause.message}`, {
      hint: 'use an asciicast version 2 file, plain or gzipped',
      cause,
    });
  }
}

const LINE_FEED = 0x0a;
/** Maximum length of the first line of a recording. */
const MAX_HEAD_BYTES = 1024 * 1024;

export interface ReplayOptions {
  /** Speed factor; 1 is the recorded speed. */
  readonly speed: number;
  /** Maximum pause, in seconds of the recording. */
  readonly idleLimit: number;
  /** Start position in seconds. */
  readonly from: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly signal: AbortSignal;
  /** Resolves with false once the reader has closed the output. */
  readonly write: (text: string) => Promise<boolean>;
}

/** Plays a recording and restores the terminal. Returns the recorded exit status, or null if unknown. */
export async function replay(items: AsyncIterable<CastItem>, options: ReplayOptions): Promise<string | null> {
  const { write, signal } = options;
  const neutralizer = new Neutralizer();
  const pace = new Pace(options);
  let status: string | null = null;
  try {
    for await (const item of items) {
      await pace.until(item.at);
      if (signal.aborted) return null;
      if (item.kind === 'exit') status = item.status;
      if (item.kind !== 'output') continue;
      const text = neutralizer.write(item.text);
      if (text !== '' && !(await write(text))) return null;
    }
    return status;
  } finally {
    await write(`${neutralizer.undo()}\r\n`).catch(() => false);
  }
}

class Pace {
  private readonly options: ReplayOptions;
  private last: number;
  /** Monotonic time in milliseconds at which the next item is due. */
  private due: number;

  constructor(options: ReplayOptions) {
    this.options = options;
    this.last = options.from;
    this.due = options.clock.monotonic();
  }

  /** Resolves when the item is due or the signal is aborted. */
  async until(at: number): Promise<void> {
    if (at <= this.last) return;
    const { speed, idleLimit, clock, signal } = this.options;
    this.due += (Math.min(at - this.last, idleLimit) / speed) * 1000;
    this.last = at;
    const now = clock.monotonic();
    // A slow terminal delays the rest instead of compressing it.
    this.due = Math.max(this.due, now);
    for (let left = this.due - now; left > 0 && !signal.aborted; left = this.due - clock.monotonic()) {
      await sleep(Math.min(left, LONGEST_SLEEP), undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Longest timer in milliseconds. */
const LONGEST_SLEEP = 3_600_000;

/**
 * Parses a position in a recording such as `90`, `12:30` or `1:02:03.5`. Returns seconds.
 * @throws Fault `usage` naming the flag
 */
export function parseTimeInRecording(text: string, flag: string): number {
  if (!/^\d{1,7}(:\d{1,2}){0,2}(\.\d{1,6})?$/.test(text)) {
    throw new Fault('usage', `${flag} takes a time in the recording, not "${text}"`, {
      hint: 'such as 90, 12:30 or 1:02:03',
    });
  }
  return text.split(':').reduce((seconds, part) => seconds * 60 + Number(part), 0);
}

/** Formats seconds as `12:30` or `1:02:03`. */
export function formatTimeInRecording(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [first, ...others] = parts[0] === 0 ? parts.slice(1) : parts;
  return [String(first), ...others.map((part) => String(part).padStart(2, '0'))].join(':');
}

/** Writes chunks with backpressure. Returns false once the reader has closed the stream. Throws other write errors. */
export async function writeChunks(
  stream: OutputStream,
  chunks: AsyncIterable<Uint8Array | string>,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    if (chunk.length > 0 && !(await writeChunk(stream, chunk))) return false;
  }
  return true;
}

/** Writes a chunk. Resolves with true once it is flushed, with false if the reader has closed the stream. */
export function writeChunk(stream: OutputStream, chunk: Uint8Array | string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    stream.write(chunk, (error: Error | null | undefined) => {
      if (!error) resolve(true);
      else if (isReaderGone(error)) resolve(false);
      else reject(notWritten(error));
    });
  });
}
