/** Reads the file of a recording, gzipped or not: opens it, splits it into lines, and yields its header and events. */

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { Fault, systemCodeOf } from '../../kernel/fault.js';
import { type CastEvent, type CastHead, type CastStream, parseEvent, parseHead, parseSize } from './cast-format.js';

/** One item of a recording. `at` is in seconds since the start. */
export type CastItem =
  | {
      readonly at: number;
      readonly kind: 'output';
      readonly stream: CastStream;
      readonly text: string;
      /** Exact bytes; null when the text represents all of them. */
      readonly bytes: Buffer | null;
    }
  /** Output that is not kept. */
  | { readonly at: number; readonly kind: 'omitted'; readonly stream: CastStream; readonly bytes: number }
  | { readonly at: number; readonly kind: 'size'; readonly cols: number; readonly rows: number }
  | { readonly at: number; readonly kind: 'mark'; readonly text: string }
  /** `status` is the exit status of the program. */
  | { readonly at: number; readonly kind: 'exit'; readonly status: string };

export interface OpenCast {
  readonly head: CastHead;
  readonly items: AsyncIterable<CastItem>;
}

/**
 * Reads a recording. Skips an incomplete last line, which a crash may leave.
 * @param chunks content of the plain file, see `openCastFile`
 * @throws Fault `transcript_invalid`, also while the items are read
 */
export async function readCast(chunks: AsyncIterable<Uint8Array>): Promise<OpenCast> {
  const lines = castLines(chunks);
  const first = await lines.next();
  try {
    const head = parseHead(first.done ? '' : first.value.toString('utf8'));
    return { head, items: withItems(eventsOf(lines)) };
  } catch (error) {
    await lines.return(undefined);
    throw error;
  }
}

/** Returns the bytes of an output item. */
export const bytesOf = ({ text, bytes }: Extract<CastItem, { kind: 'output' }>): Buffer =>
  bytes ?? Buffer.from(text, 'utf8');

async function* eventsOf(lines: AsyncIterable<Buffer>): AsyncGenerator<CastEvent> {
  let number = 1;
  for await (const line of lines) {
    number += 1;
    const text = line.toString('utf8');
    if (text.trim() === '') continue;
    const event = parseEvent(text);
    if (event !== null) yield event;
    else if (isWhole(line)) throw new Fault('transcript_invalid', `line ${number} of the recording is not an event`);
  }
}

/** Joins each output event with the exact bytes that follow it. */
async function* withItems(events: AsyncIterable<CastEvent>): AsyncGenerator<CastItem> {
  let stream: CastStream = 'out';
  let output: { readonly at: number; readonly text: string } | null = null;
  for await (const event of events) {
    if (output !== null) {
      const bytes = event.code === 'b' ? Buffer.from(event.data, 'base64') : null;
      yield { ...output, kind: 'output', stream, bytes };
      output = null;
    }
    if (event.code === 'o') output = { at: event.at, text: event.data };
    else if (event.code === 's') stream = event.data;
    else if (event.code === 'd') yield { at: event.at, kind: 'omitted', stream, bytes: event.data.bytes };
    else yield* itemOf(event);
  }
  if (output !== null) yield { ...output, kind: 'output', stream, bytes: null };
}

function* itemOf(event: CastEvent): Generator<CastItem> {
  if (event.code === 'm') yield { at: event.at, kind: 'mark', text: event.data };
  if (event.code === 'x') yield { at: event.at, kind: 'exit', status: event.data };
  const size = event.code === 'r' ? parseSize(event.data) : null;
  if (size !== null) yield { at: event.at, kind: 'size', ...size };
}

/** Maximum length of a line in bytes. Lines of `orch` are far shorter; other recorders may write long ones. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024;

/**
 * Yields lines with their line feed. The last line lacks it when it is incomplete.
 * @throws Fault `transcript_invalid` for a line that is too long
 */
export async function* castLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const line = bytes.subarray(from, end + 1);
      from = end + 1;
      if (parts.length === 0) yield line;
      else yield Buffer.concat([...parts, line]);
      parts = [];
      length = 0;
    }
    if (from === bytes.length) continue;
    parts.push(bytes.subarray(from));
    length += bytes.length - from;
    if (length > MAX_LINE_BYTES)
      throw new Fault('transcript_invalid', `the recording contains a line of more than ${MAX_LINE_BYTES} bytes`);
  }
  if (length > 0) yield Buffer.concat(parts);
}

/** Reports whether the line has its line feed. */
export const isWhole = (line: Buffer): boolean => line[line.length - 1] === 10;

export interface OpenOptions {
  /** Number of bytes to read of a plain file; null reads to its end. */
  readonly length?: number | null;
}

/**
 * Opens the file of a recording and returns its plain bytes. The file closes when the stream ends or is destroyed.
 * @throws the system error when the file cannot be opened, Fault `transcript_invalid` when it is not a regular file. Damaged gzip
 *   data ends the stream with that fault too.
 */
export async function openCastFile(path: string, { length = null }: OpenOptions = {}): Promise<Readable> {
  const file = await openRegularFile(path);
  try {
    const start = Buffer.alloc(2);
    const { bytesRead } = await file.read(start, 0, 2, 0);
    if (bytesRead === 2 && start[0] === 0x1f && start[1] === 0x8b) {
      // `pipeline` destroys the other stream when one ends early.
      return pipeline(file.createReadStream({ start: 0 }), inflater(), () => undefined);
    }
    if (length !== 0) return file.createReadStream({ start: 0, ...(length === null ? {} : { end: length - 1 }) });
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return Readable.from([]);
}

/** Returns a stream that inflates gzip data. */
function inflater(): Gunzip {
  const stream = createGunzip();
  const destroy = stream._destroy.bind(stream);
  stream._destroy = (error, done) => {
    const isDamage = systemCodeOf(error)?.startsWith('Z_') === true;
    const hint = 'restore the file from a backup of the host';
    const damage = new Fault('transcript_invalid', 'the compressed recording is damaged', { hint, cause: error });
    destroy(isDamage ? damage : error, done);
  };
  return stream;
}

/**
 * Opens a regular file for reading.
 * @throws the system error when the file cannot be opened, Fault `transcript_invalid` when it is not a regular file
 */
export async function openRegularFile(path: string): Promise<FileHandle> {
  // Does not wait for a writer when the path is a FIFO.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Fault('transcript_invalid', `${path} is not a regular file`);
}
