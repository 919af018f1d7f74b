/** Turns what happens in a session into the lines of its recording. Keeps nothing but where it is. */
import { isAscii } from 'node:buffer';
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

const DEL = 0x7f;

export class CastEncoder {
  private readonly characters = new WholeCharacters();
  private readonly hash: Hash;
  private stream: CastStream;
  private at: number;
  private written: number;
  private checked: number;

  constructor({ offset, at, stream, hash }: CastPlace) {
    this.hash = hash;
    this.at = at;
    this.stream = stream;
    this.written = offset;
    this.checked = offset;
  }

  /** Of a new recording. */
  static begin(headLine: string): CastEncoder {
    return new CastEncoder({ offset: 0, at: 0, stream: 'out', hash: createHash('sha256').update(headLine) });
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
  output(at: number, stream: CastStream, bytes: Buffer): string {
    const moved = stream === this.stream ? '' : this.flush(at) + this.line(at, 's', stream);
    this.stream = stream;
    return moved + this.decoded(at, this.characters.push(bytes));
  }

  /** Writes down the beginning of a character of which the rest does not come. */
  flush(at: number): string {
    return this.decoded(at, this.characters.flush());
  }

  resize(at: number, cols: number, rows: number): string {
    return this.line(at, 'r', `${cols}x${rows}`);
  }

  mark(at: number, text: string): string {
    return this.line(at, 'm', text);
  }

  exit(at: number, status: number): string {
    return this.line(at, 'x', String(status));
  }

  /** How far the output goes, and the hash of everything before. */
  checkpoint(at: number): string {
    this.checked = this.written;
    return this.line(at, 'h', { offset: this.written, sha256: this.sha256 });
  }

  private decoded(at: number, decoded: Decoded | null): string {
    if (decoded === null) return '';
    this.written += decoded.bytes.length;
    const isPlain = isAscii(decoded.bytes) && !decoded.bytes.includes(DEL);
    const text = this.line(at, 'o', decoded.text, isPlain);
    return decoded.inexact ? text + this.line(at, 'b', decoded.bytes.toString('base64')) : text;
  }

  private line(at: number, code: string, data: unknown, isPlain = false): string {
    this.at = Math.max(this.at, Math.round(at * 1000) / 1000);
    const line = eventLine(this.at, code, data, isPlain);
    this.hash.update(line);
    return line;
  }
}
