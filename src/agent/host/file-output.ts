/** Reads what a program writes through a file without a name, which it can write to when this process is gone. */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, unlinkSync } from 'node:fs';
import { Capture } from './capture.js';
import type { OutputStream } from './output-streams.js';

const APPEND = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_APPEND;
/** Between two looks, in milliseconds. */
const LOOK_MS = 500;
/** A file that is longer is emptied when it has been read. */
const MAX_FILE = 16 * 1024 * 1024;

export class FileOutput implements OutputStream {
  readonly descriptor: number;
  readonly capture = new Capture();
  private readonly reading: number;
  private readonly buffer = Buffer.allocUnsafe(64 * 1024);
  private position = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param path where nothing is */
  constructor(path: string) {
    this.descriptor = openSync(path, APPEND, 0o600);
    this.reading = openSync(path, constants.O_RDWR);
    unlinkSync(path);
  }

  /** Nobody tells when a file is closed: what matters is there when the program has ended. */
  async start(): Promise<void> {
    closeSync(this.descriptor);
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  look(): void {
    try {
      this.read();
    } catch {
      // A disk that fails takes the output along, and nothing else.
    }
  }

  stop(): void {
    if (this.timer === undefined) closeSync(this.descriptor);
    clearInterval(this.timer);
    this.look();
    closeSync(this.reading);
  }

  private read(): void {
    const { size } = fstatSync(this.reading);
    // A program that opens `/dev/stdout` anew empties the file.
    if (size < this.position) this.position = 0;
    while (this.position < size) {
      const count = readSync(this.reading, this.buffer, 0, this.buffer.length, this.position);
      if (count === 0) return;
      this.capture.add(this.buffer.subarray(0, count));
      this.position += count;
    }
    if (size < MAX_FILE) return;
    ftruncateSync(this.reading, 0);
    this.position = 0;
  }
}
