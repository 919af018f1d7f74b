/** Reads what a program writes as it comes, through a FIFO. */
import { closeSync, constants, openSync, readSync, unlinkSync } from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';
import { Capture } from './capture.js';
import type { OutputStream } from './output-streams.js';

const READ = constants.O_RDONLY | constants.O_NONBLOCK;
/** Between two looks, in milliseconds: longer and longer while nothing comes. */
const FIRST_LOOK_MS = 1;
const MAX_LOOK_MS = 20;
/** At one look; no more than this is in a pipe. */
const MAX_READS = 16;

/**
 * The pipes that Node makes are sockets, which a program cannot open again as `/dev/stderr`, as many scripts do. The FIFO
 * is read by descriptor, because a worker thread closes those that were handed to a socket a second time when it ends.
 */
export class PipeOutput implements OutputStream {
  readonly descriptor: number;
  readonly capture = new Capture();
  private readonly reading: number;
  private readonly buffer = Buffer.allocUnsafe(64 * 1024);
  private timer: NodeJS.Timeout | undefined;
  private finish: (() => void) | null = null;
  private isStarted = false;
  private pause = FIRST_LOOK_MS;

  /** @param fifo is opened and removed */
  constructor(fifo: string) {
    // The end to write to cannot be opened before the other one is.
    this.reading = openSync(fifo, READ);
    this.descriptor = openSync(fifo, constants.O_WRONLY);
    unlinkSync(fifo);
  }

  start(): Promise<void> {
    closeSync(this.descriptor);
    this.isStarted = true;
    return new Promise((resolve) => {
      this.finish = resolve;
      this.look();
    });
  }

  look(): void {
    clearTimeout(this.timer);
    if (this.finish === null) return;
    const found = this.read();
    if (found === 'end') {
      this.finish();
      return;
    }
    this.pause = found === 'data' ? FIRST_LOOK_MS : Math.min(2 * this.pause, MAX_LOOK_MS);
    this.timer = setTimeout(() => this.look(), this.pause);
  }

  stop(): void {
    this.look();
    clearTimeout(this.timer);
    this.finish = null;
    closeSync(this.reading);
    if (!this.isStarted) closeSync(this.descriptor);
  }

  private read(): 'data' | 'nothing' | 'end' {
    let found: 'data' | 'nothing' = 'nothing';
    try {
      for (let turn = 0; turn < MAX_READS; turn += 1) {
        const count = readSync(this.reading, this.buffer);
        if (count === 0) return 'end';
        this.capture.add(this.buffer.subarray(0, count));
        found = 'data';
      }
      return found;
    } catch (error) {
      return systemCodeOf(error) === 'EAGAIN' ? found : 'end';
    }
  }
}
