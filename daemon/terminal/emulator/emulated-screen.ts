/** The relay's end of one screen: gathers its output for the thread, and gives the thread's answers to whoever asked. */
import { Fault } from '../../../src/kernel/fault.js';
import { clampSize } from '../../../src/terminal/limits.js';
import type { Picture, Screen } from '../screen.js';
import type { ToEmulator } from './emulator-messages.js';

/** That much output does not wait for more. */
const ENOUGH = 64 * 1024;

export interface EmulatedScreenOptions {
  readonly id: number;
  readonly offset: number;
  readonly onParsed: (parsed: number) => void;
  readonly post: (message: ToEmulator, transfer?: readonly ArrayBuffer[]) => void;
  /** `flush` is to be called soon. */
  readonly onUnsent: () => void;
  readonly onClose: () => void;
}

interface Question {
  readonly resolve: (picture: Picture) => void;
  readonly reject: (fault: Fault) => void;
}

export class EmulatedScreen implements Screen {
  private readonly options: EmulatedScreenOptions;
  private unsent: Buffer[] = [];
  private unsentBytes = 0;
  private written: number;
  private readonly questions: Question[] = [];
  private hasFailed = false;
  private isClosed = false;
  parsed: number;

  constructor(options: EmulatedScreenOptions) {
    this.options = options;
    this.written = options.offset;
    this.parsed = options.offset;
  }

  get id(): number {
    return this.options.id;
  }

  /** Keeps the buffer until it is flushed; it must not change. */
  write(bytes: Buffer): void {
    if (bytes.length === 0 || this.isClosed) return;
    this.written += bytes.length;
    if (this.hasFailed) {
      this.tellAll();
      return;
    }
    this.unsent.push(bytes);
    this.unsentBytes += bytes.length;
    if (this.unsentBytes >= ENOUGH) this.flush();
    else this.options.onUnsent();
  }

  resize(cols: number, rows: number): void {
    if (this.hasFailed || this.isClosed) return;
    this.flush();
    this.options.post({ do: 'resize', id: this.id, cols: clampSize(cols), rows: clampSize(rows) });
  }

  picture(): Promise<Picture> {
    if (this.hasFailed || this.isClosed) return Promise.reject(noPicture());
    this.flush();
    return new Promise((resolve, reject) => {
      this.questions.push({ resolve, reject });
      this.options.post({ do: 'picture', id: this.id });
    });
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.unsent = [];
    if (!this.hasFailed) this.options.post({ do: 'close', id: this.id });
    this.refuse();
    this.options.onClose();
  }

  /** Sends what was gathered, as a copy: the buffers themselves are somebody else's. */
  flush(): void {
    if (this.unsentBytes === 0 || this.hasFailed || this.isClosed) return;
    const bytes = new Uint8Array(this.unsentBytes);
    let at = 0;
    for (const piece of this.unsent) {
      bytes.set(piece, at);
      at += piece.length;
    }
    this.unsent = [];
    this.unsentBytes = 0;
    this.options.post({ do: 'write', id: this.id, bytes }, [bytes.buffer]);
  }

  /** The thread has parsed up to there. */
  advance(offset: number): void {
    if (offset <= this.parsed || this.isClosed) return;
    this.parsed = offset;
    this.options.onParsed(offset);
  }

  answer(picture: Picture): void {
    this.questions.shift()?.resolve(picture);
  }

  /** Nothing comes from the thread any more: all output counts as parsed, so that the session goes on. */
  fail(): void {
    if (this.hasFailed || this.isClosed) return;
    this.hasFailed = true;
    this.unsent = [];
    this.unsentBytes = 0;
    this.refuse();
    this.tellAll();
  }

  /** Not at once: whoever writes does not expect the answer within. */
  private tellAll(): void {
    queueMicrotask(() => this.advance(this.written));
  }

  private refuse(): void {
    for (const { reject } of this.questions.splice(0)) reject(noPicture());
  }
}

const noPicture = (): Fault => new Fault('internal', 'there is no picture of this terminal');
