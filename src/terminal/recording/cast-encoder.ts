/** Encodes the events of a session as lines of its recording. It keeps its position, and no output. */
import { createHash, type Hash } from 'node:crypto';
import { type CastStream, eventLine } from './cast-format.js';
import { type Decoded, WholeCharacters } from './whole-characters.js';

/** Position in a recording from which encoding can continue. */
export interface CastPosition {
  /** Output bytes so far. */
  readonly offset: number;
  /** Seconds since the start. No later event has an earlier time. */
  readonly at: number;
  readonly stream: CastStream;
  /** SHA-256 state over all bytes of the file so far. */
  readonly hash: Hash;
  /** Streams of which output was omitted. */
  readonly omitted: ReadonlySet<CastStream>;
}

/** Returns memory of `length` bytes for a line. */
export type Allocate = (length: number) => Buffer;

const DEL = 0x7f;

export class CastEncoder {
  private readonly characters = new WholeCharacters();
  private readonly hash: Hash;
  private readonly allocate: Allocate;
  private stream: CastStream;
  private at: number;
  private written: number;
  private checked: number;
  private readonly omitted: Set<CastStream>;

  constructor({ offset, at, stream, hash, omitted }: CastPosition, allocate: Allocate = Buffer.allocUnsafe) {
    this.allocate = allocate;
    this.hash = hash;
    this.at = at;
    this.stream = stream;
    this.written = offset;
    this.checked = offset;
    this.omitted = new Set(omitted);
  }

  /** Creates the encoder of a new recording. */
  static begin(headLine: Uint8Array, allocate?: Allocate): CastEncoder {
    const hash = createHash('sha256').update(headLine);
    return new CastEncoder({ offset: 0, at: 0, stream: 'out', hash, omitted: new Set() }, allocate);
  }

  /** Number of output bytes in lines, without the bytes of an incomplete character. */
  get offset(): number {
    return this.written;
  }

  /** Number of output bytes since the last checkpoint. */
  get unchecked(): number {
    return this.written - this.checked;
  }

  /** Number of bytes of an incomplete character. */
  get pending(): number {
    return this.characters.pending;
  }

  /** Hex SHA-256 of the file so far. */
  get sha256(): string {
    return this.hash.copy().digest('hex');
  }

  /** Encodes output. `at` is in seconds since the start and never moves back. Returns complete lines, maybe none. */
  output(at: number, stream: CastStream, bytes: Buffer): Buffer[] {
    return [...this.moveTo(at, stream), ...this.decoded(at, this.characters.push(bytes))];
  }

  /** Encodes output as its size and hash alone. */
  omit(at: number, stream: CastStream, bytes: Buffer): Buffer[] {
    const before = [...this.moveTo(at, stream), ...this.flush(at)];
    this.omitted.add(stream);
    this.written += bytes.length;
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    return [...before, this.line(at, 'd', { bytes: bytes.length, sha256 })];
  }

  /** Returns whether output of the stream was omitted. */
  hasOmitted(stream: CastStream): boolean {
    return this.omitted.has(stream);
  }

  private moveTo(at: number, stream: CastStream): Buffer[] {
    const moved = stream === this.stream ? [] : [...this.flush(at), this.line(at, 's', stream)];
    this.stream = stream;
    return moved;
  }

  /** Encodes the bytes of an incomplete character. */
  flush(at: number): Buffer[] {
    return this.decoded(at, this.characters.flush());
  }

  resize(at: number, cols: number, rows: number): Buffer[] {
    return [this.line(at, 'r', `${cols}x${rows}`)];
  }

  mark(at: number, text: string): Buffer[] {
    return [this.line(at, 'm', text)];
  }

  exit(at: number, status: number): Buffer[] {
    return [this.line(at, 'x', String(status))];
  }

  /** Encodes a checkpoint: the output offset, and the hash of everything before it. */
  checkpoint(at: number): Buffer[] {
    this.checked = this.written;
    return [this.line(at, 'h', { offset: this.written, sha256: this.sha256 })];
  }

  /** Puts text and its exact bytes into one buffer, so that they are never written apart. */
  private decoded(at: number, decoded: Decoded | null): Buffer[] {
    if (decoded === null) return [];
    const { bytes, inexact, isPlain, text } = decoded;
    this.written += bytes.length;
    const isAscii = isPlain && !bytes.includes(DEL);
    const shown = this.textOf(at, 'o', text, isAscii);
    return [this.put(inexact ? shown + this.textOf(at, 'b', bytes.toString('base64')) : shown, isAscii)];
  }

  private line(at: number, code: string, data: unknown): Buffer {
    return this.put(this.textOf(at, code, data), false);
  }

  private textOf(at: number, code: string, data: unknown, isPlain = false): string {
    this.at = Math.max(this.at, Math.round(at * 1000) / 1000);
    return eventLine(this.at, code, data, isPlain);
  }

  private put(text: string, isPlain: boolean): Buffer {
    const bytes = this.allocate(isPlain ? text.length : Buffer.byteLength(text));
    bytes.write(text, isPlain ? 'latin1' : 'utf8');
    this.hash.update(bytes);
    return bytes;
  }
}
