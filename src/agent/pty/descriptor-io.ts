/** Writes what was typed to a descriptor that does not block, at the pace of whoever reads it. */
import { readSync, writeSync } from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';

export interface DescriptorWriterOptions {
  /** Non-blocking. */
  readonly descriptor: number;
  /** Most bytes of one write. */
  readonly chunk: number;
  /** The system has taken so many bytes in all, or nobody will read them. */
  readonly onTaken: (total: number) => void;
  /** The input was ended, and all of it is taken. */
  readonly onEnd?: () => void;
}

/** Between two attempts while nothing is taken, in milliseconds. */
const FIRST_PAUSE = 2;
const MAX_PAUSE = 20;
/** In one turn, so that nothing else waits for long. */
const WRITES_PER_TURN = 64;

/** Writes are synchronous: those of the thread pool wait for whatever else is in it. */
export class DescriptorWriter {
  private readonly options: DescriptorWriterOptions;
  private queue: Buffer[] = [];
  private total = 0;
  private pause = FIRST_PAUSE;
  private timer: NodeJS.Timeout | undefined;
  private turn: NodeJS.Immediate | undefined;
  private isEnding = false;
  private isStopped = false;

  constructor(options: DescriptorWriterOptions) {
    this.options = options;
  }

  write(bytes: Buffer): void {
    if (this.isStopped || this.isEnding || bytes.length === 0) return;
    this.queue.push(bytes);
    if (this.queue.length === 1) this.pump();
  }

  /** No more input; what is queued is written first. */
  end(): void {
    if (this.isStopped || this.isEnding) return;
    this.isEnding = true;
    if (this.queue.length === 0) this.finish();
  }

  /** Ends the input at once, without what is queued. */
  finish(): void {
    if (this.isStopped) return;
    this.stop();
    this.options.onEnd?.();
  }

  /** Forgets what is queued, and does not touch the descriptor again. */
  stop(): void {
    this.isStopped = true;
    this.queue = [];
    clearTimeout(this.timer);
    clearImmediate(this.turn);
  }

  private pump(): void {
    clearTimeout(this.timer);
    clearImmediate(this.turn);
    const before = this.total;
    const progress = this.writeSome();
    if (this.total > before) this.options.onTaken(this.total);
    if (this.isStopped) return;
    if (this.queue.length === 0) {
      if (this.isEnding) this.finish();
    } else if (progress === 'more') {
      this.turn = setImmediate(() => this.pump());
    } else {
      this.timer = setTimeout(() => this.pump(), this.pause);
      this.pause = Math.min(2 * this.pause, MAX_PAUSE);
    }
  }

  private writeSome(): 'more' | 'blocked' {
    const { descriptor, chunk } = this.options;
    for (let turn = 0; turn < WRITES_PER_TURN; turn += 1) {
      const head = this.queue[0];
      if (head === undefined) return 'more';
      try {
        const count = writeSync(descriptor, head, 0, Math.min(head.length, chunk));
        if (count === 0) return 'blocked';
        this.advance(head, count);
      } catch (error) {
        if (systemCodeOf(error) === 'EAGAIN') return 'blocked';
        // Nobody reads any more: the input is thrown away, as a shell's pipe would.
        this.total += this.queue.reduce((sum, { length }) => sum + length, 0);
        this.queue = [];
      }
    }
    return 'more';
  }

  private advance(head: Buffer, count: number): void {
    this.total += count;
    this.pause = FIRST_PAUSE;
    if (count === head.length) this.queue.shift();
    else this.queue[0] = head.subarray(count);
  }
}

/**
 * Reads what is there without waiting. A timer that waits for the end of output needs it: after a turn that took long, Node runs
 * timers before it reads, so silence up to then proves nothing.
 */
const PIECE = 64 * 1024;

/**
 * Reads a non-blocking descriptor until it has nothing, `most` bytes are read, or `take` wants no more.
 * @param take owns the bytes, and returns whether it wants more
 * @returns how many bytes were read
 */
export function readAvailable(descriptor: number, most: number, take: (bytes: Buffer) => boolean): number {
  let total = 0;
  while (total < most) {
    const bytes = Buffer.allocUnsafe(PIECE);
    const count = readOnce(descriptor, bytes);
    if (count === 0) break;
    total += count;
    if (!take(bytes.subarray(0, count))) break;
  }
  return total;
}

/** Returns the number of bytes read: zero when none are there, at the end, and when the descriptor is closed. */
function readOnce(descriptor: number, bytes: Buffer): number {
  try {
    return readSync(descriptor, bytes);
  } catch {
    return 0;
  }
}
