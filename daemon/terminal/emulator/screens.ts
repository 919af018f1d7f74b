/**
 * Screens of sessions, for clients that attach later: emulated in one worker thread that runs while screens exist. Every session
 * has one, because a session without a recording has no other source of a picture.
 */

import { Worker } from 'node:worker_threads';
import { Fault } from '../../../src/kernel/fault.js';
import type { Service } from '../../../src/kernel/service.js';
import { clampSize } from '../../../src/terminal/limits.js';
import type { SnapshotHead } from '../../../src/terminal/notes.js';
import type { Core } from '../../core/core.js';
import { OutputBatch, SharedSlots } from '../output-slots.js';
import type { FromEmulator, ToEmulator } from './screen-scheduler.js';

/** A picture of a screen: bytes that draw it on any terminal, whatever it showed before. */
export interface Picture {
  readonly head: SnapshotHead;
  readonly bytes: Buffer;
}

export interface Screen {
  /** Output offset up to which output has been parsed. */
  readonly parsed: number;
  /** Writes output. All calls are handled in order. */
  write(bytes: Buffer): void;
  resize(cols: number, rows: number): void;
  /** Returns the screen after everything written so far. Rejects when the emulator has failed. */
  picture(): Promise<Picture>;
  close(): void;
}

export interface ScreenOptions {
  readonly cols: number;
  readonly rows: number;
  /** Offset of the first byte to be written. */
  readonly offset: number;
  /** Called when more output has been parsed. */
  readonly onParsed: (parsed: number) => void;
}

/** Opens screens. */
export interface Screens {
  open(options: ScreenOptions): Screen;
}

export interface CreateScreensOptions extends Pick<Core, 'logger'> {
  /** Milliseconds after which a thread without screens ends, to free its memory. */
  readonly idleAfter?: number;
  /** Maximum heap of the thread in megabytes. */
  readonly heap?: number;
}

export type EmulatedScreens = Screens & Service;

const IDLE_AFTER = 60_000;
/** Megabytes for a thousand screens of usual size and a few large ones. */
const HEAP = 512;

export const createScreens = (options: CreateScreensOptions): EmulatedScreens => new ThreadedScreens(options);

class ThreadedScreens implements EmulatedScreens {
  readonly name = 'terminal emulator';
  private readonly options: Required<CreateScreensOptions>;
  private thread: EmulatorThread | null = null;
  private idle: NodeJS.Timeout | undefined;

  constructor(options: CreateScreensOptions) {
    this.options = { idleAfter: IDLE_AFTER, heap: HEAP, ...options };
  }

  /** Does nothing: the thread starts with the first screen. */
  async start(): Promise<void> {}

  open(options: ScreenOptions): Screen {
    clearTimeout(this.idle);
    this.thread ??= this.begin();
    return this.thread.open({ ...options, cols: clampSize(options.cols), rows: clampSize(options.rows) });
  }

  async stop(): Promise<void> {
    clearTimeout(this.idle);
    await this.thread?.end();
    this.thread = null;
  }

  private begin(): EmulatorThread {
    const { logger, heap } = this.options;
    const thread: EmulatorThread = new EmulatorThread({
      logger,
      heap,
      onEnd: () => {
        if (this.thread === thread) this.thread = null;
      },
      onIdle: () => this.endLater(thread),
    });
    return thread;
  }

  private endLater(thread: EmulatorThread): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      if (this.thread === thread && thread.isIdle) void thread.end();
    }, this.options.idleAfter).unref();
  }
}

/** Milliseconds for which output is collected, because messages to a thread are expensive. */
const FLUSH_AFTER = 20;

export interface EmulatorThreadOptions extends Pick<Core, 'logger'> {
  /** Maximum heap in megabytes. */
  readonly heap: number;
  /** Called when the thread has crashed or ended. */
  readonly onEnd: () => void;
  /** Called when the last screen was closed. */
  readonly onIdle: () => void;
}

/** One emulator thread with its screens. When it crashes, all of them fail. */
export class EmulatorThread {
  private readonly options: EmulatorThreadOptions;
  private readonly worker: Worker;
  private readonly screens = new Map<number, EmulatedScreen>();
  private readonly unsent = new Set<EmulatedScreen>();
  private readonly ended: Promise<void>;
  private readonly slots: SharedSlots;
  private flushing: NodeJS.Timeout | undefined;
  private lastId = 0;
  private isEnding = false;

  constructor(options: EmulatorThreadOptions) {
    this.options = options;
    this.worker = new Worker(new URL('./emulator.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: options.heap },
    });
    this.slots = new SharedSlots((slot, memory) => this.post({ do: 'slot', slot, memory }));
    this.worker.unref();
    this.worker.on('message', (message: FromEmulator) => this.handle(message));
    this.worker.on('error', ({ message }) =>
      options.logger.error('the terminal emulator failed; open terminals no longer have a screen picture', {
        reason: message,
        terminals: this.screens.size,
      }),
    );
    this.ended = new Promise((resolve) => {
      this.worker.once('exit', () => {
        this.failAll();
        resolve();
      });
    });
  }

  get isIdle(): boolean {
    return this.screens.size === 0;
  }

  open(options: ScreenOptions): EmulatedScreen {
    this.lastId += 1;
    const id = this.lastId;
    const screen = new EmulatedScreen({
      id,
      offset: options.offset,
      onParsed: options.onParsed,
      slots: this.slots,
      post: (message, transfer) => this.post(message, transfer),
      onPending: () => this.flushLater(screen),
      onClose: () => this.forget(screen),
    });
    this.screens.set(id, screen);
    const { cols, rows, offset } = options;
    this.post({ do: 'open', id, cols, rows, offset });
    return screen;
  }

  /** Ends the thread. Its screens fail. */
  async end(): Promise<void> {
    this.isEnding = true;
    this.failAll();
    await this.worker.terminate();
    await this.ended;
  }

  private post(message: ToEmulator, transfer: readonly ArrayBuffer[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private handle(message: FromEmulator): void {
    switch (message.is) {
      case 'parsed':
        for (const [id, offset] of message.offsets) this.screens.get(id)?.advance(offset);
        return;
      case 'free':
        for (const slot of message.slots) this.slots.release(slot);
        return;
      case 'picture': {
        const { id, cols, rows, offset, bytes } = message;
        const picture = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        this.screens.get(id)?.answer({ head: { cols, rows, offset }, bytes: picture });
        return;
      }
      case 'failed':
        this.options.logger.error('the screen of a terminal can no longer be emulated', { reason: message.reason });
        this.screens.get(message.id)?.fail();
    }
  }

  private flushLater(screen: EmulatedScreen): void {
    this.unsent.add(screen);
    this.flushing ??= setTimeout(() => {
      this.flushing = undefined;
      for (const waiting of this.unsent) waiting.flush();
      this.unsent.clear();
    }, FLUSH_AFTER).unref();
  }

  private forget(screen: EmulatedScreen): void {
    this.unsent.delete(screen);
    if (this.screens.delete(screen.id) && this.isIdle && !this.isEnding) this.options.onIdle();
  }

  private failAll(): void {
    clearTimeout(this.flushing);
    for (const screen of this.screens.values()) screen.fail();
    this.screens.clear();
    this.unsent.clear();
    this.options.onEnd();
  }
}

export interface EmulatedScreenOptions {
  readonly id: number;
  readonly offset: number;
  readonly onParsed: (parsed: number) => void;
  readonly slots: SharedSlots;
  readonly post: (message: ToEmulator, transfer?: readonly ArrayBuffer[]) => void;
  /** Called when `flush` is needed soon. */
  readonly onPending: () => void;
  readonly onClose: () => void;
}

interface Question {
  readonly resolve: (picture: Picture) => void;
  readonly reject: (fault: Fault) => void;
}

/** The relay's side of one screen: collects its output for the thread, and delivers pictures. */
export class EmulatedScreen implements Screen {
  private readonly options: EmulatedScreenOptions;
  private readonly gathering: OutputBatch;
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
    this.gathering = new OutputBatch(slots, (place, transfer) => post({ do: 'write', id, ...place }, transfer));
  }

  get id(): number {
    return this.options.id;
  }

  /** Writes output. Copies the bytes. */
  write(bytes: Buffer): void {
    if (bytes.length === 0 || this.isClosed) return;
    this.written += bytes.length;
    if (this.hasFailed) {
      this.reportProgress();
      return;
    }
    this.gathering.add(bytes);
    if (this.gathering.waiting > 0) this.options.onPending();
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

  /** Sends the collected output. */
  flush(): void {
    if (!this.hasFailed && !this.isClosed) this.gathering.flush();
  }

  /** Records that the thread has parsed up to the offset. */
  advance(offset: number): void {
    if (offset <= this.parsed || this.isClosed) return;
    this.parsed = offset;
    this.options.onParsed(offset);
  }

  answer(picture: Picture): void {
    this.questions.shift()?.resolve(picture);
  }

  /** Handles the end of the thread. All output counts as parsed, so that the session continues. */
  fail(): void {
    if (this.hasFailed || this.isClosed) return;
    this.hasFailed = true;
    this.gathering.drop();
    this.refuse();
    this.reportProgress();
  }

  /** Reports asynchronously, because `write` must not call back synchronously. */
  private reportProgress(): void {
    queueMicrotask(() => this.advance(this.written));
  }

  private refuse(): void {
    for (const { reject } of this.questions.splice(0)) reject(noPicture());
  }
}

const noPicture = (): Fault => new Fault('internal', 'there is no picture of this terminal');
