/** A command on pipes, with separate output and errors. It ends when both are read. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { OutputStream, Reading } from '../../terminal/frames.js';
import type { TerminalSignal } from '../../terminal/notes.js';
import { DescriptorWriter, readAvailable } from './descriptor-io.js';
import { argumentsOf, type Launch } from './launch.js';
import { openPipes, type Pipes } from './pipes.js';
import { processEntry, type SessionMark, sendSignal, signalSession } from './process-table.js';
import type { Program, ProgramEnd, ProgramListener } from './program.js';

export interface PipedCommandOptions {
  readonly launch: Launch;
  /** True if standard input is written; else it is empty. */
  readonly stdin: boolean;
  /** Timeout in seconds; null without one. */
  readonly timeoutSecs: number | null;
  /** True to wait until no process has the output open, as ssh does. */
  readonly wait: boolean;
  readonly listener: ProgramListener;
}

const CHUNK = 64 * 1024;
/** Milliseconds between SIGTERM and SIGKILL after the timeout. */
const TERMINATE = 5_000;
/**
 * Background processes of a command may hold its pipes for ever. Without `wait`, the output ends after `QUIET` milliseconds
 * without any, or `AFTERMATH` milliseconds after the exit, and the end says that it is open.
 */
const QUIET = 1_000;
const AFTERMATH = 5_000;
/** Maximum bytes of output taken after that time: at least the capacity of a pipe. */
const LATE_OUTPUT = 1024 * 1024;

/** Our end of a pipe. */
interface Outlet {
  readonly stream: OutputStream;
  readonly descriptor: number;
  readonly reader: Socket;
}

/** Starts a command. Throws the system error. */
export async function startCommand(options: PipedCommandOptions): Promise<Program> {
  const pipes = await openPipes({ input: options.stdin, owner: options.launch.user });
  const all = [pipes.input, pipes.output, pipes.errors].filter((pipe) => pipe !== null);
  try {
    const child = start(options.launch, pipes);
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return new PipedCommand(child, pipes, options);
  } catch (error) {
    for (const pipe of all) closeSync(pipe.ownEnd);
    throw error;
  } finally {
    for (const pipe of all) closeSync(pipe.programEnd);
  }
}

function start(launch: Launch, { input, output, errors }: Pipes): ChildProcess {
  const [file, ...args] = argumentsOf(launch);
  const stdio = [input?.programEnd ?? 'ignore', output.programEnd, errors.programEnd] as const;
  // Detached: the leader of a session and a group of its own.
  return spawn(file, args, { cwd: '/', detached: true, env: { ...launch.env }, stdio: [...stdio] });
}

class PipedCommand implements Program {
  readonly mark: SessionMark;
  private readonly listener: ProgramListener;
  private readonly outlets: readonly Outlet[];
  private readonly writer: DescriptorWriter | null;
  /** Bytes of input to a command without standard input. */
  private ignored = 0;
  private readonly open = new Set<OutputStream>(['out', 'err']);
  private lateOutput = 0;
  private isReading = false;
  private hasEnded = false;
  /** True while the end of the output is awaited, however long it takes. */
  private waits: boolean;
  private timedOut = false;
  private end: ProgramEnd | null = null;
  private endedAt = 0;
  private readonly deadline: NodeJS.Timeout | undefined;
  private killing: NodeJS.Timeout | undefined;
  private quiet: NodeJS.Timeout | undefined;

  constructor(
    child: ChildProcess,
    { input, output, errors }: Pipes,
    { timeoutSecs, wait, listener }: PipedCommandOptions,
  ) {
    const pid = child.pid as number;
    this.listener = listener;
    this.waits = wait;
    this.mark = { pid, startTime: processEntry(pid)?.startTime ?? null, tty: 0 };
    this.writer = input && this.writeTo(input.ownEnd);
    this.outlets = [this.readFrom(output.ownEnd, 'out'), this.readFrom(errors.ownEnd, 'err')];
    if (timeoutSecs !== null) this.deadline = setTimeout(() => this.timeOut(), timeoutSecs * 1000);
    child.once('exit', (code, signal) => this.exited(code, signal));
  }

  pause(): void {
    if (!this.isReading || this.hasEnded) return;
    this.isReading = false;
    clearTimeout(this.quiet);
    for (const { reader } of this.outlets) reader.pause();
  }

  resume(): void {
    if (this.isReading || this.hasEnded) return;
    this.isReading = true;
    for (const { reader } of this.outlets) reader.resume();
    if (this.end !== null) this.waitForQuiet();
  }

  write(bytes: Buffer): void {
    if (this.writer !== null) {
      this.writer.write(bytes);
      return;
    }
    this.ignored += bytes.length;
    this.listener.inputTaken(this.ignored);
  }

  endInput(): void {
    this.writer?.end();
  }

  /** Does nothing without a terminal. */
  resize(): void {}

  async readSettings(): Promise<Reading> {
    return 'unknown';
  }

  signal(signal: TerminalSignal): void {
    if (this.end === null) sendSignal(-this.mark.pid, `SIG${signal}`);
    else if (!this.hasEnded && this.waits) signalSession(this.mark, `SIG${signal}`);
  }

  stopWaiting(): void {
    this.waits = false;
    if (this.end !== null) this.waitForQuiet();
  }

  private writeTo(descriptor: number): DescriptorWriter {
    return new DescriptorWriter({
      descriptor,
      chunk: CHUNK,
      onTaken: (total) => this.listener.inputTaken(total),
      onEnd: () => closeSync(descriptor),
    });
  }

  private readFrom(descriptor: number, stream: OutputStream): Outlet {
    const reader = new Socket({ fd: descriptor, readable: true, writable: false });
    reader.on('data', (chunk: Buffer) => {
      this.listener.output(chunk, stream);
      if (this.end !== null) this.waitForQuiet();
    });
    const ended = () => {
      this.open.delete(stream);
      if (this.open.size === 0 && this.end !== null) this.finish();
    };
    reader.on('end', ended);
    reader.on('error', ended);
    reader.pause();
    return { stream, descriptor, reader };
  }

  private timeOut(): void {
    this.timedOut = true;
    if (this.end === null) {
      sendSignal(-this.mark.pid, 'SIGTERM');
      sendSignal(-this.mark.pid, 'SIGCONT');
    } else {
      this.end = { ...this.end, timedOut: true };
      signalSession(this.mark, 'SIGTERM');
      signalSession(this.mark, 'SIGCONT');
    }
    this.killing = setTimeout(() => this.killAll(), TERMINATE);
  }

  private killAll(): void {
    signalSession(this.mark, 'SIGKILL');
    // A daemon has left the session, and keeps the output open.
    this.stopWaiting();
  }

  private exited(code: number | null, signal: NodeJS.Signals | null): void {
    if (!this.waits || this.timedOut) clearTimeout(this.deadline);
    this.end = { code, signal: signal?.slice('SIG'.length) ?? null, timedOut: this.timedOut };
    this.endedAt = performance.now();
    if (this.open.size === 0) this.finish();
    else this.waitForQuiet();
  }

  /** Waits for the end of output. While reading is paused, silence means nothing. */
  private waitForQuiet(): void {
    clearTimeout(this.quiet);
    if (!this.isReading || this.waits) return;
    const left = this.endedAt + AFTERMATH - performance.now();
    this.quiet = setTimeout(() => this.finishIfDrained(), Math.max(0, Math.min(QUIET, left)));
  }

  /** Finishes unless unread output exists. */
  private finishIfDrained(): void {
    const isLate = performance.now() >= this.endedAt + AFTERMATH;
    const most = LATE_OUTPUT - this.lateOutput;
    let count = 0;
    for (const { stream, descriptor, reader } of this.outlets) {
      // The descriptor of an ended pipe may be reused.
      if (!this.open.has(stream) || reader.destroyed) continue;
      count += readAvailable(descriptor, most, (bytes) => {
        this.listener.output(bytes, stream);
        return this.isReading;
      });
    }
    if (isLate) this.lateOutput += count;
    const isFull = this.lateOutput >= LATE_OUTPUT;
    if (!this.isReading && !isFull) return;
    if (count > 0 && !isLate) this.waitForQuiet();
    // Lets the event loop notice an end of output first.
    else setImmediate(() => setImmediate(() => this.finish()));
  }

  private finish(): void {
    if (this.hasEnded || this.end === null) return;
    this.hasEnded = true;
    clearTimeout(this.quiet);
    clearTimeout(this.killing);
    clearTimeout(this.deadline);
    // Kills the rest after a timeout.
    if (this.timedOut) signalSession(this.mark, 'SIGKILL');
    this.writer?.finish();
    for (const { reader } of this.outlets) reader.destroy();
    this.listener.ended(this.open.size > 0 ? { ...this.end, isOutputOpen: true } : this.end);
  }
}
