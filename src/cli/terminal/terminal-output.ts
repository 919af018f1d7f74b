/**
 * Writes what the remote program shows, and what we have to say, to the terminal: in order, never blocking, and telling when
 * the terminal has taken it.
 */
import { writeSync } from 'node:fs';
import type { OutputStream } from '../render/printer.js';
import { ScreenModes } from './screen-modes.js';

interface Item {
  readonly stream: OutputStream;
  /** Words are put together when it is their turn. */
  readonly bytes: Buffer | (() => string);
  /** Output of the program; false for a picture of it, undefined for what is our own. */
  readonly isOutput?: boolean;
  readonly done: () => void;
}

/** Drawn over what the program shows. It is taken away before anything is written, and drawn again behind it. */
export interface OutputOverlay {
  /** Output of the program is written next. */
  follow(bytes: Buffer): void;
  /**
   * Returns what to write in place of the bytes: the overlay is taken away in front of them, and drawn again behind them unless
   * that cannot be done there.
   */
  wrap(bytes: Buffer, isDrawable: boolean): Buffer;
}

export interface TerminalOutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Nobody reads any more. */
  onClosed(): void;
  /** The program went to a saved cursor that a notice had overwritten: only a picture of the screen is right again. */
  onCursorLost(): void;
}

/** Written at once at most: the rest can still be dropped. */
const PORTION = 32 * 1024;
/** Most bytes that a terminal can be expected to take at once. */
const PROMPT = 4 * 1024;
/** So much of the output tells whether a line has ended with it, in bytes. */
const TAIL = 256;

export class TerminalOutput {
  readonly modes = new ScreenModes();
  overlay: OutputOverlay | null = null;
  private readonly options: TerminalOutputOptions;
  private readonly queue: Item[] = [];
  /** The terminal has not taken what it was given last. */
  stopped = false;
  private writing = false;
  private held = false;
  private broken = false;
  /** The descriptor of each terminal that takes what it can and never stops this program. */
  private readonly prompt: ReadonlyMap<OutputStream, number>;
  private idle: (() => void)[] = [];
  /** The last of what the program has shown. */
  private tail = Buffer.alloc(0);

  constructor(options: TerminalOutputOptions) {
    this.options = options;
    const prompt = new Map<OutputStream, number>();
    for (const stream of [options.stdout, options.stderr]) {
      const descriptor = setBlocking(stream, false);
      if (stream.isTTY === true && descriptor !== null) prompt.set(stream, descriptor);
    }
    this.prompt = prompt;
    options.stdout.on('error', this.onError);
    options.stderr.on('error', this.onError);
  }

  /** Output of the program. */
  show(bytes: Buffer, done: () => void): void {
    this.put(bytes, done, true);
  }

  /** Draws the whole screen anew. Forgets what is not written yet, and returns how many bytes of output that were. */
  drawAnew(picture: Buffer, done: () => void): number {
    let dropped = 0;
    for (const item of this.queue.splice(0)) {
      if (item.isOutput === true) dropped += item.bytes.length;
      item.done();
    }
    if (!this.modes.isAtRest) this.put(Buffer.from('\x18\x1b\\'), () => {}, false);
    this.put(picture, done, false);
    return dropped;
  }

  private put(bytes: Buffer, done: () => void, isOutput: boolean): void {
    for (let at = 0; at < bytes.length; at += PORTION) {
      const portion = bytes.subarray(at, at + PORTION);
      const isLast = at + PORTION >= bytes.length;
      this.queue.push({ stream: this.options.stdout, bytes: portion, isOutput, done: isLast ? done : () => {} });
    }
    if (bytes.length === 0) done();
    this.pump();
  }

  /** Ends what the program has begun and switches off what it has switched on, behind what is shown so far. */
  calm(): void {
    const { stdout } = this.options;
    if (stdout.isTTY !== true) return;
    this.queue.push({ stream: stdout, bytes: () => this.modes.restore(), done: () => {} });
    this.pump();
  }

  /** What we have to say, behind what is shown so far. */
  say(text: string | (() => string)): void {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    this.queue.push({ stream: this.options.stderr, bytes, done: () => {} });
    this.pump();
  }

  /** Calls back when all is written that was given so far, and draws the overlay anew. */
  afterwards(work: () => void): void {
    const bytes = () => {
      work();
      return '';
    };
    this.queue.push({ stream: this.options.stdout, bytes, done: () => {} });
    this.pump();
  }

  /** Keeps what comes until `go`. */
  hold(): void {
    this.held = true;
  }

  go(): void {
    this.held = false;
    this.pump();
  }

  /** The same as `restore`, before this returns, as far as the terminal takes it; what waits stays. */
  restoreNow(): void {
    const { stdout } = this.options;
    if (stdout.isTTY !== true || stdout.fd === undefined) return;
    try {
      const bytes = Buffer.from(this.modes.restore());
      writeSync(stdout.fd, this.overlay?.wrap(bytes, false) ?? bytes);
    } catch {
      // A terminal that is gone, or takes nothing, cannot be helped.
    }
  }

  /** Drops what is not written, and brings the terminal back to what a shell expects, at the beginning of a line. */
  restore(): void {
    this.queue.length = 0;
    if (this.options.stdout.isTTY !== true) return;
    const isMidLine = !this.modes.isAlternate && !endsLine(this.tail);
    const bytes = Buffer.from(this.modes.restore() + (isMidLine ? '\r\n' : ''));
    this.tail = Buffer.alloc(0);
    this.queue.push({ stream: this.options.stdout, bytes, done: () => {} });
    this.pump();
  }

  /** Waits until all is written, at most so many milliseconds. False when the terminal did not take it. */
  async flush(patience: number): Promise<boolean> {
    if (!this.writing || this.broken) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), patience);
    });
    const flushed = new Promise<boolean>((resolve) => this.idle.push(() => resolve(true)));
    try {
      return await Promise.race([flushed, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Gives the streams back as they were. */
  release(): void {
    const { stdout, stderr } = this.options;
    for (const stream of [stdout, stderr]) {
      setBlocking(stream, true);
      // An error that comes late must find a listener, or it ends the process.
      stream.on('error', () => {});
      stream.off('error', this.onError);
    }
  }

  private readonly onError = (): void => {
    if (this.broken) return;
    this.broken = true;
    this.writing = false;
    for (const { done } of this.queue.splice(0)) done();
    this.tellIdle();
    this.options.onClosed();
  };

  private pump(): void {
    while (!this.writing && !this.held) {
      const next = this.queue.shift();
      if (next === undefined) {
        this.tellIdle();
        return;
      }
      if (!this.broken) this.write(next);
      if (!this.writing) next.done();
    }
  }

  /** `writing` until it is written. */
  private write({ stream, bytes: given, isOutput, done }: Item): void {
    const isShown = isOutput !== undefined;
    if (isOutput === false) this.modes.regainSavedCursor();
    const plain = typeof given === 'function' ? Buffer.from(given()) : given;
    const text = isShown ? this.watch(plain) : plain;
    const bytes = stream.isTTY === true ? this.withOverlay(text) : text;
    const rest = bytes.length === 0 ? bytes : this.writePromptly(stream, bytes);
    this.writing = rest.length > 0;
    if (this.writing) this.writeSlowly(stream, rest, done);
    if (isShown && this.modes.takeLostCursor()) this.options.onCursorLost();
  }

  private withOverlay(bytes: Buffer): Buffer {
    const { isAtRest, isFullScreen } = this.modes;
    return this.overlay?.wrap(bytes, isAtRest && !isFullScreen) ?? bytes;
  }

  private writeSlowly(stream: OutputStream, bytes: Buffer, done: () => void): void {
    stream.write(bytes, (error) => {
      if (this.broken) return;
      if (error) {
        done();
        this.onError();
        return;
      }
      this.writing = false;
      done();
      this.pump();
    });
  }

  /** What a terminal takes at once needs no way through a stream; gives what is left for that, and for its errors. */
  private writePromptly(stream: OutputStream & { readonly writableLength?: number }, bytes: Buffer): Buffer {
    const descriptor = this.prompt.get(stream);
    if (descriptor === undefined || stream.writableLength !== 0 || bytes.length > PROMPT) return bytes;
    try {
      return bytes.subarray(writeSync(descriptor, bytes));
    } catch {
      return bytes;
    }
  }

  /** Returns what to write for output of the program. */
  private watch(bytes: Buffer): Buffer {
    const kept = this.modes.watch(bytes);
    this.overlay?.follow(bytes);
    this.tail = Buffer.concat([this.tail, bytes.subarray(-TAIL)]).subarray(-TAIL);
    return this.options.stdout.isTTY === true ? kept : bytes;
  }

  private tellIdle(): void {
    for (const tell of this.idle.splice(0)) tell();
  }
}

/** Nothing is in the line that the cursor is in, as far as the last output tells. */
function endsLine(tail: Buffer): boolean {
  const shown = tail
    .toString('latin1')
    .replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g, '');
  return shown === '' || /[\r\n]$/.test(shown);
}

interface Handle {
  /** Its own: that of the stream may be shared with other programs, which have it block. */
  readonly fd?: number;
  setBlocking?(isBlocking: boolean): unknown;
}

/**
 * Node writes to a terminal in a way that stops the whole program when the terminal does; its handle can do otherwise.
 * @returns the descriptor that does as it is told; null when there is none
 */
export function setBlocking(
  stream: OutputStream & { readonly _handle?: Handle | null },
  isBlocking: boolean,
): number | null {
  const { _handle: handle } = stream;
  const isDone = handle?.setBlocking?.(isBlocking) === 0;
  return isDone && handle.fd !== undefined && handle.fd >= 0 ? handle.fd : null;
}
