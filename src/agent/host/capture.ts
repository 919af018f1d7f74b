/** Keeps the head and the tail of a program's output, within a fixed size. */
import { gapNote, MAX_OUTPUT_BYTES } from '../../resources/command.js';

const HALF = MAX_OUTPUT_BYTES / 2;

export class Capture {
  private readonly head: Buffer[] = [];
  private headSize = 0;
  /** Newest bytes after the head, as a ring buffer: byte `n` is at `n % HALF`. */
  private ring: Buffer | null = null;
  private tailSize = 0;

  /** Copies the data that it keeps. */
  add(data: Buffer): void {
    const room = HALF - this.headSize;
    if (room > 0) {
      this.head.push(Buffer.from(data.subarray(0, room)));
      this.headSize += Math.min(room, data.length);
    }
    if (data.length > room) this.addToTail(data.subarray(room));
  }

  /** True when the middle was dropped. */
  get isCut(): boolean {
    return this.tailSize > HALF;
  }

  text(): string {
    const head = Buffer.concat(this.head);
    const tail = this.tail();
    if (!this.isCut) return Buffer.concat([head, tail]).toString('utf8');
    const [first, last] = [head.subarray(0, wholeEnd(head)), tail.subarray(wholeStart(tail))];
    const dropped = this.headSize + this.tailSize - first.length - last.length;
    return `${first.toString('utf8')}${gapNote(dropped)}${last.toString('utf8')}`;
  }

  private addToTail(data: Buffer): void {
    this.ring ??= Buffer.alloc(HALF);
    const newest = data.subarray(Math.max(0, data.length - HALF));
    const at = (this.tailSize + data.length - newest.length) % HALF;
    const copied = newest.copy(this.ring, at);
    newest.copy(this.ring, 0, copied);
    this.tailSize += data.length;
  }

  private tail(): Buffer {
    if (this.ring === null) return Buffer.alloc(0);
    if (!this.isCut) return this.ring.subarray(0, this.tailSize);
    const oldest = this.tailSize % HALF;
    return Buffer.concat([this.ring.subarray(oldest), this.ring.subarray(0, oldest)]);
  }
}

/** Maximum remaining bytes of a cut UTF-8 character, which has at most four. */
const REST = 3;

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Returns the end of the last whole character. */
function wholeEnd(data: Buffer): number {
  for (let at = data.length - 1; at >= Math.max(0, data.length - REST); at -= 1) {
    const byte = data[at] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return at + length > data.length ? at : data.length;
  }
  return data.length;
}

/** Returns the start of the first whole character. */
function wholeStart(data: Buffer): number {
  let at = 0;
  while (at < REST && isContinuation(data[at])) at += 1;
  return at;
}
