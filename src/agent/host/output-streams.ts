/** Output streams of programs: FIFOs for most, unlinked files for programs that may outlive the agent. */
import { execFile, spawn } from 'node:child_process';
import { chownSync, closeSync, constants, fstatSync, openSync, readSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { systemCodeOf } from '../../kernel/fault.js';
import { Capture } from './capture.js';
import { environmentOf } from './launch.js';
import type { ScriptDirectory } from './script-directory.js';

interface OutputStream {
  /** Descriptor to pass to the program, or `pipe` for one of Node's own. */
  readonly descriptor: number | 'pipe';
  readonly capture: Capture;
  /** Takes Node's end of its own pipe, before `start`. */
  attach?(pipe: Readable | null): void;
  /** Closes this process's writing end; resolves when no process can write any longer. */
  start(): Promise<void>;
  /** Captures the output so far. */
  captureAvailable(): void;
  /** Captures the rest and closes the stream. Works without `start`; must be called once. */
  stop(): void;
}

export interface OutputStreams {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

const run = promisify(execFile);

/**
 * Opens both streams in the workplace. A program that ends before the agent gets pipes of Node where the system refuses, so that
 * it needs neither a file system nor another program.
 * @param user the user of the program, who may reopen the streams by name [default: the agent's]
 */
export async function openStreams(
  workplace: ScriptDirectory | null,
  outlives: boolean,
  user: { readonly uid: number; readonly gid: number } | null = null,
): Promise<OutputStreams> {
  if (workplace === null) return both(() => new NodePipe(), '', '');
  const [stdout, stderr] = [join(workplace.path, 'stdout'), join(workplace.path, 'stderr')];
  if (outlives) return both((path) => new FileOutput(path), stdout, stderr);
  try {
    await run('mkfifo', ['-m', '600', stdout, stderr], { env: environmentOf({}) });
    if (user !== null) for (const fifo of [stdout, stderr]) chownSync(fifo, user.uid, user.gid);
  } catch {
    return openStreams(null, outlives);
  }
  return both((path) => new PipeOutput(path), stdout, stderr);
}

/** Captures output through a pipe of Node, which is a socket that scripts cannot reopen as `/dev/stderr`. */
class NodePipe implements OutputStream {
  readonly descriptor = 'pipe';
  readonly capture = new Capture();
  private pipe: Readable | null = null;

  attach(pipe: Readable | null): void {
    this.pipe = pipe;
    pipe?.on('data', (data: Buffer) => this.capture.add(data));
  }

  async start(): Promise<void> {
    const { pipe } = this;
    if (pipe !== null) await new Promise<void>((resolve) => pipe.once('close', () => resolve()));
  }

  captureAvailable(): void {}

  stop(): void {
    this.pipe?.destroy();
  }
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

const READ = constants.O_RDONLY | constants.O_NONBLOCK;
/** Milliseconds between two reads of a FIFO; the pause grows from the first to the second value while nothing comes. */
const FIRST_LOOK_MS = 1;
const MAX_LOOK_MS = 20;
/** Maximum reads at once; a full pipe has no more. */
const MAX_READS = 16;

/**
 * Captures output through a FIFO. Node's own pipes are sockets, which scripts cannot reopen as `/dev/stderr`. The FIFO is read
 * by descriptor, because a worker thread that ends closes descriptors of its sockets a second time.
 */
class PipeOutput implements OutputStream {
  readonly descriptor: number;
  readonly capture = new Capture();
  private readonly reading: number;
  private readonly buffer = Buffer.allocUnsafe(64 * 1024);
  private timer: NodeJS.Timeout | undefined;
  private finish: (() => void) | null = null;
  private isStarted = false;
  private pause = FIRST_LOOK_MS;

  /** @param fifo path of the FIFO, which is opened and unlinked */
  constructor(fifo: string) {
    // The writing end can only be opened after the reading end.
    this.reading = openSync(fifo, READ);
    this.descriptor = openSync(fifo, constants.O_WRONLY);
    unlinkSync(fifo);
  }

  start(): Promise<void> {
    closeSync(this.descriptor);
    this.isStarted = true;
    return new Promise((resolve) => {
      this.finish = resolve;
      this.captureAvailable();
    });
  }

  captureAvailable(): void {
    clearTimeout(this.timer);
    if (this.finish === null) return;
    const found = this.read();
    if (found === 'end') {
      this.finish();
      return;
    }
    this.pause = found === 'data' ? FIRST_LOOK_MS : Math.min(2 * this.pause, MAX_LOOK_MS);
    this.timer = setTimeout(() => this.captureAvailable(), this.pause);
  }

  stop(): void {
    this.captureAvailable();
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

/** Flags of an output file, which a program can still write to after the end of the agent. */
const APPEND = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_APPEND;
/** Milliseconds between two reads of an output file. */
const LOOK_MS = 500;
/** Bytes that are read and not yet freed, from which a file's disk space is freed. */
const MAX_FILE = 16 * 1024 * 1024;

/**
 * Captures output through an unlinked file. What was read is freed as a hole, because a truncation would lose what the program
 * writes between the last read and it. Where the system cannot make holes, the file grows until the program ends.
 */
class FileOutput implements OutputStream {
  readonly descriptor: number;
  readonly capture = new Capture();
  private readonly reading: number;
  private readonly buffer = Buffer.allocUnsafe(64 * 1024);
  private position = 0;
  /** Bytes from the start that have been freed. */
  private freed = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param path a free path */
  constructor(path: string) {
    this.descriptor = openSync(path, APPEND, 0o600);
    this.reading = openSync(path, constants.O_RDWR);
    unlinkSync(path);
  }

  /** Resolves at once, because the end of writing cannot be detected; the program's own output is complete at its end. */
  async start(): Promise<void> {
    closeSync(this.descriptor);
    this.timer = setInterval(() => {
      this.captureAvailable();
      if (this.position - this.freed >= MAX_FILE) this.free();
    }, LOOK_MS);
  }

  captureAvailable(): void {
    try {
      this.read();
    } catch {
      // A failing disk loses the output, and nothing else.
    }
  }

  stop(): void {
    if (this.timer === undefined) closeSync(this.descriptor);
    clearInterval(this.timer);
    this.captureAvailable();
    closeSync(this.reading);
  }

  private read(): void {
    const { size } = fstatSync(this.reading);
    // A program that reopens `/dev/stdout` truncates the file.
    if (size < this.position) {
      this.position = 0;
      this.freed = 0;
    }
    while (this.position < size) {
      const count = readSync(this.reading, this.buffer, 0, this.buffer.length, this.position);
      if (count === 0) return;
      this.capture.add(this.buffer.subarray(0, count));
      this.position += count;
    }
  }

  /** Frees the disk space of what was read. Node cannot make holes, and only the descriptor still names the file. */
  private free(): void {
    const hole = ['--punch-hole', '--offset', '0', '--length', String(this.position)];
    const stdio = [this.reading, 'ignore', 'ignore'] as const;
    const child = spawn('fallocate', [...hole, '/proc/self/fd/0'], { env: environmentOf({}), stdio: [...stdio] });
    child.on('error', () => {});
    child.unref();
    this.freed = this.position;
  }
}
