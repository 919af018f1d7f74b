/**
 * Writes program output and notices to the terminal: in order, without blocking, and with a callback once
 * the terminal has accepted them.
 */
import { writeSync } from 'node:fs';
import type { OutputStream } from '../render/streams.js';
import { ScreenModes } from './screen-modes.js';

interface Item {
  readonly stream: OutputStream;
  /** Bytes, or a function that makes the text when its turn comes. */
  readonly bytes: Buffer | (() => string);
  /** True for program output, false for a screen picture, undefined for text of orch. */
  readonly isOutput?: boolean;
  readonly done: () => void;
}

/** An overlay on the program's output, removed before each write and drawn again after it. */
export interface OutputOverlay {
  /** Called with program output before it is written. */
  follow(bytes: Buffer): void;
  /**
   * Returns the bytes with the overlay removed before them and drawn after them, unless
   * `isDrawable` is false.
   */
  wrap(bytes: Buffer, isDrawable: boolean): Buffer;
}

interface TerminalOutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** True if the terminal knows no control sequences, so that it gets none but those of the program. */
  readonly isDumb: boolean;
  /** Called once the streams are closed. */
  onClosed(): void;
  /** Called when the program restored a cursor that a notice had overwritten: the screen needs a new picture. */
  onCursorLost(): void;
}

/** Maximum bytes per write, so that the rest can still be dropped. */
const PORTION = 32 * 1024;
/** Maximum bytes that are written synchronously. */
const PROMPT = 4 * 1024;
/** Bytes of output kept to detect an unfinished line. */
const TAIL = 256;

export class TerminalOutput {
  readonly modes = new ScreenModes();
  overlay: OutputOverlay | null = null;
  private readonly options: TerminalOutputOptions;
  private readonly queue: Item[] = [];
  /** True if the terminal did not accept the last output. */
  stopped = false;
  private writing = false;
  private held = false;
  private broken = false;
  /** Non-blocking descriptors of terminals. */
  private readonly prompt: ReadonlyMap<OutputStream, number>;
  private idle: (() => void)[] = [];
  /** Last bytes of program output. */
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

  /** Writes program output. Calls `done` once the terminal has accepted it. */
  show(bytes: Buffer, done: () => void): void {
    this.put(bytes, done, true);
  }

  /** Replaces unwritten output by a screen picture. Returns the dropped bytes of output. */
  redraw(picture: Buffer, done: () => void): number {
    let dropped = 0;
    for (const item of this.queue.splice(0)) {
      if (item.isOutput === true) dropped += item.bytes.length;
      item.done();
    }
    if (this.options.isDumb) {
      done();
      return dropped;
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

  /** Resets the modes that the program has set, after the queued output. */
  resetModes(): void {
    const { stdout } = this.options;
    if (stdout.isTTY !== true) return;
    this.queue.push({ stream: stdout, bytes: () => this.undoModes(), done: () => {} });
    this.pump();
  }

  /** Writes a notice to standard error, after the queued output. */
  showNotice(text: string | (() => string)): void {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    this.queue.push({ stream: this.options.stderr, bytes, done: () => {} });
    this.pump();
  }

  /** Calls `work` after the queued output, and redraws the overlay. */
  afterOutput(work: () => void): void {
    const bytes = () => {
      work();
      return '';
    };
    this.queue.push({ stream: this.options.stdout, bytes, done: () => {} });
    this.pump();
  }

  /** Holds output until `go`. */
  hold(): void {
    this.held = true;
  }

  go(): void {
    this.held = false;
    this.pump();
  }

  /** Restores the terminal synchronously, as far as it accepts output. Keeps the queue. */
  restoreNow(): void {
    const { stdout } = this.options;
    if (stdout.isTTY !== true || stdout.fd === undefined) return;
    try {
      const bytes = Buffer.from(this.undoModes());
      writeSync(stdout.fd, this.overlay?.wrap(bytes, false) ?? bytes);
    } catch {
      // A lost or stuck terminal cannot be restored.
    }
  }

  /** Drops queued output and restores the terminal for a shell, at the start of a line. */
  restore(): void {
    this.queue.length = 0;
    if (this.options.stdout.isTTY !== true) return;
    const isMidLine = !this.modes.isAlternate && !endsLine(this.tail);
    const bytes = Buffer.from(this.undoModes() + (isMidLine ? '\r\n' : ''));
    this.tail = Buffer.alloc(0);
    this.queue.push({ stream: this.options.stdout, bytes, done: () => {} });
    this.pump();
  }

  private undoModes(): string {
    const undo = this.modes.restore();
    return this.options.isDumb ? '' : undo;
  }

  /** Waits for queued output, at most `patience` milliseconds. Returns false on timeout. */
  async flush(timeoutMs: number): Promise<boolean> {
    if (!this.writing || this.broken) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const flushed = new Promise<boolean>((resolve) => this.idle.push(() => resolve(true)));
    try {
      return await Promise.race([flushed, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Releases the streams in their original state. */
  release(): void {
    const { stdout, stderr } = this.options;
    for (const stream of [stdout, stderr]) {
      setBlocking(stream, true);
      // A late error without a listener would end the process.
      stream.on('error', () => {});
      stream.off('error', this.onError);
    }
  }

  private readonly onError = (): void => {
    if (this.broken) return;
    this.broken = true;
    this.writing = false;
    for (const { done } of this.queue.splice(0)) done();
    this.reportIdle();
    this.options.onClosed();
  };

  private pump(): void {
    while (!this.writing && !this.held) {
      const next = this.queue.shift();
      if (next === undefined) {
        this.reportIdle();
        return;
      }
      if (!this.broken) this.write(next);
      if (!this.writing) next.done();
    }
  }

  /** Writes an item; `writing` is true until it is flushed. */
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

  /** Writes synchronously as much as the terminal accepts. Returns the rest for the stream, which reports errors. */
  private writePromptly(stream: OutputStream & { readonly writableLength?: number }, bytes: Buffer): Buffer {
    const descriptor = this.prompt.get(stream);
    if (descriptor === undefined || stream.writableLength !== 0 || bytes.length > PROMPT) return bytes;
    try {
      return bytes.subarray(writeSync(descriptor, bytes));
    } catch {
      return bytes;
    }
  }

  /** Tracks program output. Returns the bytes to write. */
  private watch(bytes: Buffer): Buffer {
    const kept = this.modes.watch(bytes);
    this.overlay?.follow(bytes);
    this.tail = Buffer.concat([this.tail, bytes.subarray(-TAIL)]).subarray(-TAIL);
    return this.options.stdout.isTTY === true && !this.options.isDumb ? kept : bytes;
  }

  private reportIdle(): void {
    for (const tell of this.idle.splice(0)) tell();
  }
}

/** Returns whether the last output ended its line. */
function endsLine(tail: Buffer): boolean {
  const shown = tail
    .toString('latin1')
    .replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g, '');
  return shown === '' || /[\r\n]$/.test(shown);
}

interface Handle {
  /** The handle's own descriptor; that of the stream may be shared with programs that make it blocking. */
  readonly fd?: number;
  setBlocking?(isBlocking: boolean): unknown;
}

/**
 * Switches a terminal stream between blocking and non-blocking writes. By default Node blocks when the terminal stops.
 * @returns the descriptor in that mode; null if there is none
 */
export function setBlocking(
  stream: OutputStream & { readonly _handle?: Handle | null },
  isBlocking: boolean,
): number | null {
  const { _handle: handle } = stream;
  const isDone = handle?.setBlocking?.(isBlocking) === 0;
  return isDone && handle.fd !== undefined && handle.fd >= 0 ? handle.fd : null;
}
