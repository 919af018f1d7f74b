/** Reads and writes non-blocking descriptors: writes at the pace of the reader, reads what is available. */
import { readSync, writeSync } from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';

export interface DescriptorWriterOptions {
  /** Non-blocking descriptor. */
  readonly descriptor: number;
  /** Maximum bytes of one write. */
  readonly chunk: number;
  /** Called with the total number of bytes that the system has taken, or that no process will read. */
  readonly onTaken: (total: number) => void;
  /** Called when the input has ended and is taken. */
  readonly onEnd?: () => void;
}

/** Milliseconds between two attempts while nothing is taken: first and maximum. */
const FIRST_PAUSE = 2;
const MAX_PAUSE = 20;
/** Maximum writes in one event-loop turn. */
const WRITES_PER_TURN = 64;

/** Writes synchronously, because writes of the thread pool wait for its other work. */
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

  /** Ends the input after writing the queue. */
  end(): void {
    if (this.isStopped || this.isEnding) return;
    this.isEnding = true;
    if (this.queue.length === 0) this.finish();
  }

  /** Ends the input at once and drops the queue. */
  finish(): void {
    if (this.isStopped) return;
    this.stop();
    this.options.onEnd?.();
  }

  /** Drops the queue and does not touch the descriptor again. */
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
        // No process reads any longer, so the input is dropped like in a shell's pipe.
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

const PIECE = 64 * 1024;

/**
 * Reads a non-blocking descriptor until it is empty, `most` bytes are read, or `take` returns false. Timers that wait for the end of
 * output need it: after a long turn Node runs timers before it reads, so silence proves nothing.
 * @param take owns the bytes, and returns whether it wants more
 * @returns the number of bytes read
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
