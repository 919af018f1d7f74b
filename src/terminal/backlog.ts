/**
 * A stretch of a byte stream, addressed by absolute offsets: bytes are appended at the end and dropped at the front. It copies
 * them into memory that it reuses, because buffers with a medium lifetime cause frequent major collections in V8.
 */
import { BlockPool } from './block-pool.js';
import type { OutputStream } from './frames.js';

/** A piece of a backlog from one stream. */
export interface Piece {
  readonly stream: OutputStream;
  /** Offset of the first byte. */
  readonly offset: number;
  readonly bytes: Buffer;
}

interface Block {
  readonly memory: Buffer;
  /** Offset of the first byte. */
  start: number;
  filled: number;
}

/** Bytes from `start` on belong to one stream. */
interface Run {
  readonly stream: OutputStream;
  readonly start: number;
}

/** Block sizes in bytes while the backlog is short. */
const SMALL = [4 * 1024, 32 * 1024];

/** Size of all other blocks in bytes. */
const BLOCK = 256 * 1024;

const POOL = new BlockPool({ size: BLOCK, kept: 8 });

export class Backlog {
  private readonly blocks: Block[] = [];
  private runs: Run[] = [];
  /** Number of dropped runs at the front of the array, which is compacted from time to time. */
  private head = 0;
  private first: number;
  private last: number;

  /** @param start offset of the first byte to be appended */
  constructor(start = 0) {
    this.first = start;
    this.last = start;
  }

  /** Offset of the first kept byte. */
  get start(): number {
    return this.first;
  }

  /** Offset of the next appended byte. */
  get end(): number {
    return this.last;
  }

  /** Number of kept bytes. */
  get length(): number {
    return this.last - this.first;
  }

  append(bytes: Buffer, stream: OutputStream = 'out'): void {
    if (bytes.length === 0) return;
    if (this.runs.at(-1)?.stream !== stream) this.runs.push({ stream, start: this.last });
    for (let at = 0; at < bytes.length; ) {
      const block = this.room(bytes.length - at);
      const count = bytes.copy(block.memory, block.filled, at);
      block.filled += count;
      this.last += count;
      at += count;
    }
  }

  /** Drops everything before the offset. Does nothing when the offset is before the start. */
  dropBefore(offset: number): void {
    const start = Math.min(offset, this.last);
    if (start <= this.first) return;
    this.first = start;
    for (let block = this.blocks[0]; block !== undefined; block = this.blocks[0]) {
      if (block.start + block.filled > start) break;
      if (block.memory.length === BLOCK) POOL.give(block.memory);
      else if (this.blocks.length === 1) {
        // Reuses the block, which is enough for single keys.
        block.start = start;
        block.filled = 0;
        break;
      }
      this.blocks.shift();
    }
    while ((this.runs[this.head + 1]?.start ?? Number.POSITIVE_INFINITY) <= start) this.head += 1;
    if (this.head > 64 && this.head * 2 > this.runs.length) {
      this.runs = this.runs.slice(this.head);
      this.head = 0;
    }
  }

  /** Drops everything from the offset on. Does nothing when the offset is after the end. */
  dropFrom(offset: number): void {
    const end = Math.max(offset, this.first);
    if (end >= this.last) return;
    if (end === this.first) {
      this.restart(end);
      return;
    }
    for (let block = this.blocks.at(-1); block !== undefined; block = this.blocks.at(-1)) {
      if (block.start < end) {
        block.filled = end - block.start;
        break;
      }
      if (block.memory.length === BLOCK) POOL.give(block.memory);
      this.blocks.pop();
    }
    while ((this.runs.at(-1)?.start ?? Number.NEGATIVE_INFINITY) >= end) this.runs.pop();
    this.last = end;
  }

  /** Drops everything and continues at the offset. */
  restart(offset: number): void {
    this.dropBefore(this.last);
    for (const block of this.blocks) block.start = offset;
    this.runs = [];
    this.head = 0;
    this.first = offset;
    this.last = offset;
  }

  /**
   * Returns the longest contiguous piece at `offset`, of at most `most` bytes and not beyond `limit`, or null without one. The
   * piece is valid until something is dropped.
   */
  read(offset: number, most: number, limit = Number.POSITIVE_INFINITY): Piece | null {
    if (offset < this.first || offset >= Math.min(this.last, limit)) return null;
    const block = this.blocks[lastUpTo(this.blocks, offset, 0)];
    const index = lastUpTo(this.runs, offset, this.head);
    const run = this.runs[index];
    if (block === undefined || run === undefined) return null;
    const skip = offset - block.start;
    const ofStream = (this.runs[index + 1]?.start ?? this.last) - offset;
    const length = Math.min(block.filled - skip, ofStream, most, limit - offset);
    return { stream: run.stream, offset, bytes: block.memory.subarray(skip, skip + length) };
  }

  /** Returns the block for the next byte when `wanted` bytes are to be appended. */
  private room(wanted: number): Block {
    const current = this.blocks.at(-1);
    if (current !== undefined && current.filled < current.memory.length) return current;
    const small = SMALL.find((size) => size >= this.length + wanted);
    const memory = small === undefined ? POOL.take() : Buffer.allocUnsafeSlow(small);
    const block = { memory, start: this.last, filled: 0 };
    this.blocks.push(block);
    return block;
  }
}

/** Returns the index of the last item that starts at or before the offset. */
function lastUpTo(all: readonly { readonly start: number }[], offset: number, from: number): number {
  let low = from;
  let high = all.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((all[middle] as { readonly start: number }).start <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
