/** The relay's end of one screen: gathers its output for the thread, and gives the thread's answers to whoever asked. */
import { Fault } from '../../../src/kernel/fault.js';
import { clampSize } from '../../../src/terminal/limits.js';
import { Gathering, type SharedSlots } from '../output-slots.js';
import type { Picture, Screen } from '../screen.js';
import type { ToEmulator } from './emulator-messages.js';

export interface EmulatedScreenOptions {
  readonly id: number;
  readonly offset: number;
  readonly onParsed: (parsed: number) => void;
  readonly slots: SharedSlots;
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
  private readonly gathering: Gathering;
  private written: number;
  private readonly questions: Question[] = [];
  private hasFailed = false;
  private isClosed = false;
  parsed: number;

  constructor(options: EmulatedScreenOptions) {
    this.options = options;
    this.written = options.offset;
    this.parsed = options.offset;
    const { id, slots, post } = options;
    this.gathering = new Gathering(slots, (place, transfer) => post({ do: 'write', id, ...place }, transfer));
  }

  get id(): number {
    return this.options.id;
  }

  /** Copies the bytes. */
  write(bytes: Buffer): void {
    if (bytes.length === 0 || this.isClosed) return;
    this.written += bytes.length;
    if (this.hasFailed) {
      this.tellAll();
      return;
    }
    this.gathering.add(bytes);
    if (this.gathering.waiting > 0) this.options.onUnsent();
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
    this.gathering.drop();
    if (!this.hasFailed) this.options.post({ do: 'close', id: this.id });
    this.refuse();
    this.options.onClose();
  }

  /** Sends what was gathered. */
  flush(): void {
    if (!this.hasFailed && !this.isClosed) this.gathering.flush();
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
    this.gathering.drop();
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
