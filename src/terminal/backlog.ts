/** A stretch of a byte stream that is kept under its absolute offsets: appended at the end, dropped at the front. */
import type { OutputStream } from './frames.js';

/** A piece of it, all of one stream. */
export interface Piece {
  readonly stream: OutputStream;
  /** Of the first byte. */
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Small pieces are joined up to that size: a program that writes byte by byte costs no object for each. */
const SMALL = 4 * 1024;

/** Stands where a piece was dropped, so that its bytes are not kept until the array is cut. */
const DROPPED: Piece = { stream: 'out', offset: 0, bytes: Buffer.alloc(0) };

export class Backlog {
  private pieces: Piece[] = [];
  /** How many pieces at the front are dropped; they leave the array now and then. */
  private head = 0;
  private first: number;
  private last: number;

  /** @param start offset of the first byte that will be appended */
  constructor(start = 0) {
    this.first = start;
    this.last = start;
  }

  /** Offset of the first byte that is kept. */
  get start(): number {
    return this.first;
  }

  /** Offset of the byte that is appended next. */
  get end(): number {
    return this.last;
  }

  /** Bytes that are kept. */
  get length(): number {
    return this.last - this.first;
  }

  /** Keeps the buffer itself, which must not change any more. */
  append(bytes: Buffer, stream: OutputStream = 'out'): void {
    if (bytes.length === 0) return;
    const before = this.head < this.pieces.length ? this.pieces.at(-1) : undefined;
    if (before?.stream === stream && before.bytes.length + bytes.length <= SMALL) {
      this.pieces[this.pieces.length - 1] = { ...before, bytes: Buffer.concat([before.bytes, bytes]) };
    } else this.pieces.push({ stream, offset: this.last, bytes });
    this.last += bytes.length;
  }

  /** Forgets everything before the offset; nothing when that is behind the start already. */
  dropBefore(offset: number): void {
    const start = Math.min(offset, this.last);
    if (start <= this.first) return;
    this.first = start;
    for (let piece = this.pieces[this.head]; piece !== undefined; piece = this.pieces[this.head]) {
      if (piece.offset + piece.bytes.length > start) break;
      this.pieces[this.head] = DROPPED;
      this.head += 1;
    }
    if (this.head > 64 && this.head * 2 > this.pieces.length) {
      this.pieces = this.pieces.slice(this.head);
      this.head = 0;
    }
  }

  /** Forgets all, and goes on at that offset. */
  restart(offset: number): void {
    this.pieces = [];
    this.head = 0;
    this.first = offset;
    this.last = offset;
  }

  /**
   * The piece that begins at the offset, at most `most` bytes and not beyond `limit`; null when there is none.
   * @param offset within what is kept
   */
  read(offset: number, most: number, limit = Number.POSITIVE_INFINITY): Piece | null {
    if (offset < this.first || offset >= Math.min(this.last, limit)) return null;
    const piece = this.find(offset);
    if (piece === undefined) return null;
    const skip = offset - piece.offset;
    const length = Math.min(piece.bytes.length - skip, most, limit - offset);
    return { stream: piece.stream, offset, bytes: piece.bytes.subarray(skip, skip + length) };
  }

  private find(offset: number): Piece | undefined {
    let low = this.head;
    let high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.pieces[middle] as Piece).offset <= offset) low = middle;
      else high = middle - 1;
    }
    return this.pieces[low];
  }
}
