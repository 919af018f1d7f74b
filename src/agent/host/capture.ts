/** Keeps the head and the tail of what a program writes, however much that is. */
import { MAX_OUTPUT_BYTES } from '../../resources/command.js';

const HALF = MAX_OUTPUT_BYTES / 2;

export class Capture {
  private readonly head: Buffer[] = [];
  private headSize = 0;
  private readonly tail: Buffer[] = [];
  private tailSize = 0;
  private dropped = 0;

  add(data: Buffer): void {
    const room = HALF - this.headSize;
    if (room > 0) {
      this.head.push(data.subarray(0, room));
      this.headSize += Math.min(room, data.length);
    }
    if (data.length > room) this.keep(data.subarray(Math.max(0, room)));
  }

  /** True when something in the middle was left out. */
  get isCut(): boolean {
    return this.dropped > 0 || this.tailSize > HALF;
  }

  text(): string {
    const head = Buffer.concat(this.head);
    const tail = Buffer.concat(this.tail);
    const extra = Math.max(0, tail.length - HALF);
    const dropped = this.dropped + extra;
    if (dropped === 0) return Buffer.concat([head, tail]).toString('utf8');
    return `${head.toString('utf8')}\n… ${dropped} bytes are left out …\n${tail.subarray(extra).toString('utf8')}`;
  }

  private keep(data: Buffer): void {
    this.tail.push(data);
    this.tailSize += data.length;
    for (let first = this.tail[0]; first && this.tailSize - first.length >= HALF; [first] = this.tail) {
      this.tail.shift();
      this.tailSize -= first.length;
      this.dropped += first.length;
    }
  }
}
