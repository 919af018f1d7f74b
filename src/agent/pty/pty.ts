/** A program on its own terminal. Every byte that it wrote arrives, and no input reaches another terminal. */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fchownSync, fstatSync, openSync, writeSync } from 'node:fs';
import { constants as system } from 'node:os';
import { ReadStream } from 'node:tty';
import type { Reading } from '../../terminal/frames.js';
import { clampSize, TERMINAL_LIMITS } from '../../terminal/limits.js';
import type { TerminalSignal } from '../../terminal/notes.js';
import { DescriptorWriter, readAvailable } from './descriptor-io.js';
import { argumentsOf, type Launch } from './launch.js';
import type { NativePty } from './native-pty.js';
import { groupMembers, mayOwnTerminal, processEntry, type SessionMark, sendSignal } from './process-table.js';
import type { Program, ProgramEnd, ProgramListener } from './program.js';

export interface PtyOptions {
  readonly native: NativePty;
  readonly launch: Launch;
  readonly cols: number;
  readonly rows: number;
  readonly listener: ProgramListener;
}

/** Maximum bytes of one write to a terminal. */
const CHUNK = 1024;
/** Milliseconds of silence that end the output when the marker cannot be written, as on a terminal stopped by ^S. */
const QUIET = 300;
/** Maximum bytes read at once before the output counts as ended. */
const LAST_OUTPUT = 1024 * 1024;
const RETRY = 20;

/** Owns the descriptors from the start of the program to its last byte of output. */
export class Pty implements Program {
  readonly mark: SessionMark;
  private readonly native: NativePty;
  private readonly listener: ProgramListener;
  private readonly master: number;
  /** The program's side, kept open, because its end would end our stream and cut the output. */
  private readonly programSide: number;
  private readonly reader: ReadStream;
  private readonly writer: DescriptorWriter;
  private readonly marker = new EndMarker();
  /** Rest of the marker to be written; null before the end of the program. */
  private unwritten: Buffer | null = null;
  private end: ProgramEnd | null = null;
  private isReading = false;
  private hasEnded = false;
  /** True when starting failed. */
  private isBroken = false;
  private quiet: NodeJS.Timeout | undefined;
  private retry: NodeJS.Timeout | undefined;
  /** Latest size that is not applied yet. */
  private wantedSize: { readonly cols: number; readonly rows: number } | null = null;
  /** Runs while the last change of the size is younger than `resizePause`. */
  private resizing: NodeJS.Timeout | undefined;

  /** Starts the program. Throws without a free terminal or process. */
  constructor({ native, launch, cols, rows, listener }: PtyOptions) {
    const [file, ...args] = argumentsOf(launch);
    const env = Object.entries(launch.env).map(([name, value]) => `${name}=${value}`);
    const onExit = (code: number, signal: number) => this.exited(code, signal);
    const forked = native.fork(file, args, env, '/', clampSize(cols), clampSize(rows), -1, -1, true, '', onExit);
    this.native = native;
    this.listener = listener;
    this.master = forked.fd;
    try {
      this.programSide = openSync(forked.pty, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
      // Like a login, so that the user can open the terminal by name.
      if (launch.user !== null) fchownSync(this.programSide, launch.user.uid, -1);
    } catch (error) {
      this.isBroken = true;
      closeSync(forked.fd);
      sendSignal(-forked.pid, 'SIGKILL');
      throw error;
    }
    const startTime = processEntry(forked.pid)?.startTime ?? null;
    this.mark = { pid: forked.pid, startTime, tty: fstatSync(this.programSide).rdev };
    this.writer = new DescriptorWriter({
      descriptor: forked.fd,
      chunk: CHUNK,
      onTaken: (total) => listener.inputTaken(total),
    });
    this.reader = new ReadStream(forked.fd);
    this.reader.on('error', () => this.finish());
    this.reader.on('end', () => this.finish());
    this.reader.on('data', (chunk: Buffer) => this.read(chunk));
    this.reader.pause();
  }

  pause(): void {
    if (!this.isReading || this.hasEnded) return;
    this.isReading = false;
    clearTimeout(this.quiet);
    this.reader.pause();
  }

  resume(): void {
    if (this.isReading || this.hasEnded) return;
    this.isReading = true;
    this.reader.resume();
    if (this.end !== null) this.waitForQuiet();
  }

  write(bytes: Buffer): void {
    if (this.end !== null) return;
    // Applies a pending size first, so that the program knows it when it reads the input.
    this.applySize();
    this.writer.write(bytes);
  }

  /** Does nothing: a terminal has no end of input, and ^D is a key. */
  endInput(): void {}

  /** Does nothing: a terminal is lost with its first process. */
  stopWaiting(): void {}

  resize(cols: number, rows: number): void {
    this.wantedSize = { cols: clampSize(cols), rows: clampSize(rows) };
    if (this.resizing === undefined) this.applySize();
  }

  async readSettings(): Promise<Reading> {
    if (this.end !== null || this.hasEnded) return 'unknown';
    const reading = await readSettings(this.programSide);
    return reading === 'keys' && this.mayForward() ? 'unknown' : reading;
  }

  signal(signal: TerminalSignal): void {
    if (this.end !== null) return;
    const foreground = processEntry(this.mark.pid)?.foreground ?? -1;
    sendSignal(-(foreground > 0 ? foreground : this.mark.pid), `SIG${signal}`);
  }

  /** Returns false if no process that may read the terminal has another terminal, as `sudo` and `script` do. */
  private mayForward(): boolean {
    const members = groupMembers(processEntry(this.mark.pid)?.foreground ?? -1);
    return members.length === 0 || members.some(({ pid }) => mayOwnTerminal(pid));
  }

  private applySize(): void {
    const { wantedSize } = this;
    this.wantedSize = null;
    if (wantedSize === null || this.end !== null || this.hasEnded) return;
    this.native.resize(this.master, wantedSize.cols, wantedSize.rows);
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => {
      this.resizing = undefined;
      this.applySize();
    }, TERMINAL_LIMITS.resizePause);
  }

  private read(chunk: Buffer): void {
    if (this.hasEnded) return;
    if (this.end === null) {
      this.listener.output(chunk, 'out');
      return;
    }
    const { output, found } = this.marker.feed(chunk);
    if (output.length > 0) this.listener.output(output, 'out');
    if (found) {
      this.finish();
      return;
    }
    this.writeMarker();
    this.waitForQuiet();
  }

  private exited(code: number, signal: number): void {
    if (this.isBroken) return;
    this.writer.stop();
    this.end = { code: signal === 0 ? code : null, signal: signal === 0 ? null : signalName(signal), timedOut: false };
    if (this.hasEnded) {
      this.listener.ended(this.end);
      return;
    }
    this.unwritten = this.marker.bytes;
    this.writeMarker();
    this.waitForQuiet();
  }

  private writeMarker(): void {
    clearTimeout(this.retry);
    if (this.unwritten === null || this.unwritten.length === 0) return;
    try {
      this.unwritten = this.unwritten.subarray(writeSync(this.programSide, this.unwritten));
    } catch {
      // Full or stopped: reading makes room, otherwise silence ends the output.
    }
    if (this.unwritten.length > 0) this.retry = setTimeout(() => this.writeMarker(), RETRY);
  }

  /** Waits for the end of output. While reading is paused, silence means nothing. */
  private waitForQuiet(): void {
    clearTimeout(this.quiet);
    if (this.isReading) this.quiet = setTimeout(() => this.finishIfDrained(), QUIET);
  }

  /** Finishes unless unread output exists. */
  private finishIfDrained(): void {
    const count = readAvailable(this.master, LAST_OUTPUT, (bytes) => {
      this.read(bytes);
      return this.isReading && !this.hasEnded;
    });
    if (count === 0) this.finish();
  }

  private finish(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    clearTimeout(this.quiet);
    clearTimeout(this.retry);
    clearTimeout(this.resizing);
    this.writer.stop();
    const rest = this.marker.release();
    if (rest.length > 0) this.listener.output(rest, 'out');
    this.reader.destroy();
    closeSync(this.programSide);
    if (this.end !== null) this.listener.ended(this.end);
  }
}

/** Returns the name of a signal without `SIG`. */
function signalName(number: number): string {
  const found = Object.entries(system.signals).find(([, value]) => value === number);
  return found === undefined ? String(number) : found[0].slice('SIG'.length);
}

const NOTHING = Buffer.alloc(0);

/** Finds the end of the program's output by an unguessable text that is written after it. */
export class EndMarker {
  /** In upper case and without line ends, so that no terminal setting changes it. */
  readonly bytes = Buffer.from(`\x1b_E${randomBytes(12).toString('hex').toUpperCase()}\x1b\\`);
  /** End of the output so far, which may be the start of the marker. */
  private held: Buffer = NOTHING;

  /** Returns the output in the chunk. `found`: the marker follows, and later bytes do not count. */
  feed(chunk: Buffer): { readonly output: Buffer; readonly found: boolean } {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const at = bytes.indexOf(this.bytes);
    if (at >= 0) {
      this.held = NOTHING;
      return { output: bytes.subarray(0, at), found: true };
    }
    const end = bytes.length - this.beginningAtEnd(bytes);
    this.held = bytes.subarray(end);
    return { output: bytes.subarray(0, end), found: false };
  }

  /** Returns the bytes that were held back. */
  release(): Buffer {
    const { held } = this;
    this.held = NOTHING;
    return held;
  }

  private beginningAtEnd(bytes: Buffer): number {
    for (let length = Math.min(this.bytes.length - 1, bytes.length); length > 0; length -= 1) {
      if (bytes.subarray(bytes.length - length).equals(this.bytes.subarray(0, length))) return length;
    }
    return 0;
  }
}

/** Milliseconds after which the answer is `unknown`. */
const PATIENCE = 2_000;
const ENV = { PATH: '/usr/bin:/bin:/usr/local/bin', LC_ALL: 'C' };

/**
 * Determines how a terminal is read. Runs `stty`, which takes a few milliseconds and changes nothing; `unknown` without it.
 * @param descriptor the program's side of the terminal
 */
export function readSettings(descriptor: number): Promise<Reading> {
  return new Promise((resolve) => {
    const stty = spawn('stty', ['-a'], { stdio: [descriptor, 'pipe', 'ignore'], env: ENV });
    const late = setTimeout(() => stty.kill('SIGKILL'), PATIENCE);
    let words = '';
    stty.stdout?.setEncoding('latin1').on('data', (text: string) => {
      words += text;
    });
    stty.once('error', () => {
      clearTimeout(late);
      resolve('unknown');
    });
    stty.once('close', () => {
      clearTimeout(late);
      resolve(readingOf(words));
    });
  });
}

/**
 * Line editors, such as GNU Readline and those of zsh and fish, take single keys and signals, have the kernel echo nothing, and tell
 * Enter from ^J. A program that passes keys on to another terminal, as `ssh` does, takes ^C as a key and writes bytes as they are.
 */
const EDITED = ['-icanon', '-echo', 'isig', 'opost'];

function readingOf(settings: string): Reading {
  const words = new Set(settings.split(/[\s;]+/));
  const tellsEnter = words.has('-icrnl') || words.has('inlcr');
  if (tellsEnter && EDITED.every((word) => words.has(word))) return 'keys';
  if (!words.has('icanon')) return 'unknown';
  return words.has('echo') ? 'lines' : 'hidden';
}
