/** The streams that a program writes to, and how what it writes comes back. */
import { execFile } from 'node:child_process';
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemCodeOf } from '../../kernel/fault.js';
import { Capture } from './capture.js';
import { environmentOf } from './launch.js';
import type { Workplace } from './workplace.js';

export interface OutputStream {
  /** For the program. */
  readonly descriptor: number;
  readonly capture: Capture;
  /** Closes the descriptor of this process; resolves when the last process that could write has ended or closed its own. */
  start(): Promise<void>;
  /** Takes what has been written so far. */
  look(): void;
  /** Does so for the last time. Safe without `start`, and to be called once. */
  stop(): void;
}

export interface OutputStreams {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

const run = promisify(execFile);

/** Throws when the system does not let it. */
export async function openStreams({ path }: Workplace, outlives: boolean): Promise<OutputStreams> {
  const [stdout, stderr] = [join(path, 'stdout'), join(path, 'stderr')];
  if (outlives) return both((path) => new FileOutput(path), stdout, stderr);
  await run('mkfifo', ['-m', '600', stdout, stderr], { env: environmentOf({}) });
  return both((path) => new PipeOutput(path), stdout, stderr);
}

function both(open: (path: string) => OutputStream, first: string, second: string): OutputStreams {
  const stdout = open(first);
  try {
    return { stdout, stderr: open(second) };
  } catch (error) {
    stdout.stop();
    throw error;
  }
}

/** Reads what a program writes as it comes, through a FIFO. */
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

/** Reads what a program writes through a file without a name, which it can write to when this process is gone. */
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
