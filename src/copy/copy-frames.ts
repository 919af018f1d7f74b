/**
 * Frames of a copy (`docs/protocols/copy.md`), in the stream of one channel: length, code, payload. Names carry one character for each
 * byte (latin1), because names of files are bytes. Every frame of the peer is checked here, before anything acts on it.
 */
import type { Readable, Writable } from 'node:stream';
import { Fault } from '../kernel/fault.js';

export const COPY_LIMITS = {
  /** Maximum bytes of data in a frame, and of zeros that one frame stands for. */
  data: 256 * 1024,
  /** Maximum bytes of any other payload. */
  head: 32 * 1024,
  /** Maximum bytes of a file that one frame carries as a whole. Such files are read and written with synchronous calls. */
  whole: 64 * 1024,
  /** Maximum directories below each other, because each one is held open. */
  depth: 256,
  /** Milliseconds for which an incomplete file is kept for a copy that goes on. */
  keep: 600_000,
} as const;

/** A place in the order of a copy: names from the copied entry downwards. `isDone` is false for a directory that was only begun. */
export interface Position {
  readonly path: readonly string[];
  readonly isDone: boolean;
}

export type CopyFrame =
  /** Client, first frame to a machine that sends. */
  | {
      readonly type: 'read';
      readonly recursive: boolean;
      readonly after: Position | null;
      readonly resume: boolean;
      /** True when the client takes `whole`. */
      readonly whole: boolean;
    }
  /** Client, first frame to a machine that receives. */
  | {
      readonly type: 'write';
      /** Random ID of the copy: 32 hex digits. */
      readonly id: string;
      readonly preserve: boolean;
      readonly resume: boolean;
      /** True when the target has to be a directory. */
      readonly into: boolean;
      /** True when the target is the copied entry even if it is a directory: the copy that goes on has made it. */
      readonly as: boolean;
    }
  /** Agent: it has found the path. `as` is false when sources go into it under their own names; `whole` as in `read`. */
  | { readonly type: 'ready'; readonly as: boolean; readonly whole: boolean }
  /** The next entry, and all below it, belongs to this source of the client. */
  | { readonly type: 'source'; readonly name: string }
  | { readonly type: 'dir'; readonly name: string; readonly mode: number; readonly mtime: number }
  /** End of the directory. */
  | { readonly type: 'up' }
  | {
      readonly type: 'file';
      readonly name: string;
      readonly mode: number;
      readonly mtime: number;
      /** True when the sender waits for `at`. */
      readonly resume: boolean;
    }
  /** A small file with all of it. Its receiver is not asked what it has. */
  | WholeFile
  | { readonly type: 'data'; readonly bytes: Buffer }
  /** That many zeros. */
  | { readonly type: 'hole'; readonly length: number }
  /** End of the file. `sha256` is null when the sender gave up. */
  | { readonly type: 'end'; readonly sha256: string | null }
  | { readonly type: 'link'; readonly name: string; readonly target: string }
  /** Sender: an entry that it cannot send. Agent: the whole copy is refused, before `ready`. */
  | { readonly type: 'failed'; readonly path: string; readonly reason: string }
  | { readonly type: 'done' }
  /** Receiver: it has that many bytes of the file. */
  | { readonly type: 'at'; readonly offset: number }
  /** Receiver: so many entries of the stream are dealt with. */
  | { readonly type: 'settled'; readonly count: number }
  /** Receiver: the entry with this number could not be written. */
  | { readonly type: 'refused'; readonly entry: number; readonly reason: string };

export interface WholeFile {
  readonly type: 'whole';
  readonly name: string;
  readonly mode: number;
  readonly mtime: number;
  readonly sha256: string;
  readonly bytes: Buffer;
}

type Field = 'option' | 'text' | 'name' | 'flag' | 'size' | 'mode' | 'time' | 'hash' | 'position' | 'id';

/** Code and members of each frame with JSON. */
const FRAMES = {
  read: [1, { recursive: 'flag', after: 'position', resume: 'flag', whole: 'option' }],
  write: [2, { id: 'id', preserve: 'flag', resume: 'flag', into: 'flag', as: 'flag' }],
  ready: [3, { as: 'flag', whole: 'option' }],
  source: [4, { name: 'name' }],
  dir: [5, { name: 'name', mode: 'mode', mtime: 'time' }],
  up: [6, {}],
  file: [7, { name: 'name', mode: 'mode', mtime: 'time', resume: 'flag' }],
  hole: [9, { length: 'size' }],
  end: [10, { sha256: 'hash' }],
  link: [11, { name: 'name', target: 'text' }],
  failed: [12, { path: 'text', reason: 'text' }],
  done: [13, {}],
  at: [14, { offset: 'size' }],
  settled: [15, { count: 'size' }],
  refused: [16, { entry: 'size', reason: 'text' }],
  // Its payload has the length of this JSON before it (2 bytes), and the bytes of the file behind it.
  whole: [17, { name: 'name', mode: 'mode', mtime: 'time', sha256: 'hash' }],
} as const satisfies Readonly<Record<string, readonly [number, Readonly<Record<string, Field>>]>>;

const DATA = 8;
const WHOLE = FRAMES.whole[0];
const HEAD = 5;
/** Bytes of the length of the JSON in `whole`. */
const INNER_HEAD = 2;
/** Maximum bytes of the payload of each frame that is not JSON alone. */
const LARGER = new Map<number, number>([
  [DATA, COPY_LIMITS.data],
  [WHOLE, INNER_HEAD + COPY_LIMITS.head + COPY_LIMITS.whole],
]);
const BY_CODE = new Map(Object.entries(FRAMES).map(([type, [code, fields]]) => [code as number, { type, fields }]));

/** Returns whether a name is that of one entry of a directory. No other name of a peer reaches the file system. */
export const isEntryName = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && Buffer.byteLength(name, 'latin1') <= 255;

const CHECKS: Readonly<Record<Field, (value: unknown) => boolean>> = {
  option: (value) => value === undefined || typeof value === 'boolean',
  text: (value) => isBytes(value) && !(value as string).includes('\0'),
  name: (value) => isBytes(value) && isEntryName(value as string),
  flag: (value) => typeof value === 'boolean',
  size: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  mode: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0o7777,
  time: (value) => typeof value === 'number' && Math.abs(value) <= 8.64e15,
  hash: (value) => value === null || (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)),
  id: (value) => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value),
  position: (value) => value === null || isPosition(value),
};

const isBytes = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= 4096 && !/[^\0-\xff]/.test(value);

function isPosition(value: unknown): boolean {
  const { path, isDone } = value as { path: unknown; isDone: unknown };
  if (typeof isDone !== 'boolean' || !Array.isArray(path) || path.length > COPY_LIMITS.depth + 1) return false;
  return path.every((name) => CHECKS.name(name));
}

function headOf(code: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD);
  head.writeUInt32BE(length, 0);
  head[4] = code;
  return head;
}

/** Writes frames to a stream. */
export class CopyWriter {
  private readonly stream: Writable;

  constructor(stream: Writable) {
    this.stream = stream;
  }

  /** Writes a frame. Resolves when the stream takes more. Rejects when it was lost. */
  async write(frame: CopyFrame): Promise<void> {
    if (this.stream.destroyed || this.stream.writableEnded) throw lost();
    if (frame.type === 'data') {
      this.stream.write(headOf(DATA, frame.bytes.length));
      return this.push(frame.bytes);
    }
    if (frame.type === 'whole') {
      const { type, bytes, ...members } = frame;
      const json = Buffer.from(JSON.stringify(members));
      const inner = Buffer.allocUnsafe(INNER_HEAD);
      inner.writeUInt16BE(json.length);
      return this.push(Buffer.concat([headOf(WHOLE, INNER_HEAD + json.length + bytes.length), inner, json, bytes]));
    }
    const { type, ...members } = frame;
    const payload = Buffer.from(JSON.stringify(members));
    return this.push(Buffer.concat([headOf(FRAMES[type][0], payload.length), payload]));
  }

  /** Ends the stream after everything written. */
  end(): void {
    this.stream.end();
  }

  private push(bytes: Buffer): Promise<void> | void {
    const { stream } = this;
    if (stream.write(bytes)) return;
    return new Promise((resolve, reject) => {
      const drained = () => {
        stream.off('close', closed);
        resolve();
      };
      const closed = () => {
        stream.off('drain', drained);
        reject(lost());
      };
      stream.once('drain', drained);
      stream.once('close', closed);
    });
  }
}

/** Reads frames from a stream. */
export class CopyReader {
  private readonly chunks: AsyncIterator<Buffer>;
  private held: Buffer[] = [];
  private size = 0;

  constructor(stream: Readable) {
    this.chunks = stream.iterator({ destroyOnReturn: false });
  }

  /** True when the next frame has arrived in part at least. */
  get hasMore(): boolean {
    return this.size > 0;
  }

  /** Returns the next frame; null when the peer has ended the stream, also within a frame. Throws `protocol_violation`, and what ended the stream. */
  async next(): Promise<CopyFrame | null> {
    if (!(await this.fill(HEAD))) return null;
    const head = this.take(HEAD);
    const [length, code] = [head.readUInt32BE(0), head[4] as number];
    if (length > (LARGER.get(code) ?? COPY_LIMITS.head)) throw violation('a frame that is too long');
    if (!(await this.fill(length))) return null;
    const payload = this.take(length);
    if (code === DATA) return { type: 'data', bytes: payload };
    return code === WHOLE ? wholeOf(payload) : parse(code, payload);
  }

  private async fill(size: number): Promise<boolean> {
    while (this.size < size) {
      const { done, value } = await this.chunks.next();
      if (done === true) return false;
      this.held.push(value);
      this.size += value.length;
    }
    return true;
  }

  private take(size: number): Buffer {
    const all = this.held.length === 1 ? (this.held[0] as Buffer) : Buffer.concat(this.held);
    this.size -= size;
    this.held = this.size === 0 ? [] : [all.subarray(size)];
    return all.subarray(0, size);
  }
}

function parse(code: number, payload: Buffer): CopyFrame {
  const known = BY_CODE.get(code);
  if (known === undefined) throw violation('a frame of an unknown kind');
  let value: unknown;
  try {
    value = JSON.parse(payload.toString('utf8'));
  } catch {
    throw violation('a frame that is no JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw violation('a frame without members');
  const members = value as Readonly<Record<string, unknown>>;
  const frame: Record<string, unknown> = { type: known.type };
  for (const [name, field] of Object.entries(known.fields)) {
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (!CHECKS[field as Field](member)) throw violation(`a frame "${known.type}" with a wrong ${name}`);
    frame[name] = field === 'option' ? member === true : member;
  }
  if (known.type === 'hole' && (frame.length as number) > COPY_LIMITS.data) throw violation('a hole that is too long');
  // Each member was checked against the table, which has the members of the type.
  return frame as CopyFrame;
}

function wholeOf(payload: Buffer): CopyFrame {
  const end = payload.length < INNER_HEAD ? Number.POSITIVE_INFINITY : INNER_HEAD + payload.readUInt16BE(0);
  if (end > payload.length || payload.length - end > COPY_LIMITS.whole)
    throw violation('a small file of a wrong length');
  const frame = parse(WHOLE, payload.subarray(INNER_HEAD, end)) as Omit<WholeFile, 'bytes' | 'sha256'> & {
    readonly sha256: string | null;
  };
  const { sha256 } = frame;
  if (sha256 === null) throw violation('a small file without its hash');
  return { ...frame, sha256, bytes: payload.subarray(end) };
}

export const lost = (): Error => new Error('the connection was lost');

export const violation = (what: string): Fault => new Fault('protocol_violation', `the peer sent ${what}`);

/** Returns a name of one character for each byte as text. */
export const nameText = (name: string): string => Buffer.from(name, 'latin1').toString('utf8');

/** Returns text as a name of one character for each byte. */
export const nameBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');
