/** Turns what happens in a session into the lines of its recording. Keeps nothing but where it is. */
import { createHash, type Hash } from 'node:crypto';
import { type CastStream, eventLine } from './cast-event.js';
import { type Decoded, WholeCharacters } from './whole-characters.js';

/** Where a recording is, to go on with it. */
export interface CastPlace {
  /** Output bytes so far. */
  readonly offset: number;
  /** Seconds: nothing that follows is earlier. */
  readonly at: number;
  readonly stream: CastStream;
  /** Of all bytes of the file so far. */
  readonly hash: Hash;
}

/** Gives memory for the bytes of a line. */
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

  constructor({ offset, at, stream, hash }: CastPlace, allocate: Allocate = Buffer.allocUnsafe) {
    this.allocate = allocate;
    this.hash = hash;
    this.at = at;
    this.stream = stream;
    this.written = offset;
    this.checked = offset;
  }

  /** Of a new recording. */
  static begin(headLine: Uint8Array, allocate?: Allocate): CastEncoder {
    const hash = createHash('sha256').update(headLine);
    return new CastEncoder({ offset: 0, at: 0, stream: 'out', hash }, allocate);
  }

  /** Output bytes that are in lines; those of a character that has only begun are not. */
  get offset(): number {
    return this.written;
  }

  /** Output bytes since the last checkpoint. */
  get unchecked(): number {
    return this.written - this.checked;
  }

  /** Bytes of a character that has only begun. */
  get pending(): number {
    return this.characters.pending;
  }

  /** SHA-256 of the file so far, in hex. */
  get sha256(): string {
    return this.hash.copy().digest('hex');
  }

  /** The times are seconds from the start; one that is earlier than the last counts as that. Gives whole lines, maybe none. */
  output(at: number, stream: CastStream, bytes: Buffer): Buffer[] {
    const moved = stream === this.stream ? [] : [...this.flush(at), this.line(at, 's', stream)];
    this.stream = stream;
    return [...moved, ...this.decoded(at, this.characters.push(bytes))];
  }

  /** Writes down the beginning of a character of which the rest does not come. */
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

  /** How far the output goes, and the hash of everything before. */
  checkpoint(at: number): Buffer[] {
    this.checked = this.written;
    return [this.line(at, 'h', { offset: this.written, sha256: this.sha256 })];
  }

  /** Text and the exact bytes that it stands for are in one buffer: without these it would stand for others. */
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
