/** One thread of the emulator and the screens in it. When it breaks, they all fail, and nobody waits for them. */
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../../src/kernel/logger.js';
import { SharedSlots } from '../output-slots.js';
import type { ScreenOptions } from '../screen.js';
import { EmulatedScreen } from './emulated-screen.js';
import type { FromEmulator, ToEmulator } from './emulator-messages.js';

/** Output waits that long for more of it, in milliseconds: a message to a thread costs more than what it says. */
const FLUSH_AFTER = 20;

export interface EmulatorThreadOptions {
  readonly logger: Logger;
  /** The heap it may fill, in megabytes. */
  readonly heap: number;
  /** It works no more: it broke down or was ended. */
  readonly onEnd: () => void;
  /** The last screen was closed. */
  readonly onIdle: () => void;
}

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
    this.worker.on('message', (message: FromEmulator) => this.hear(message));
    this.worker.on('error', ({ message }) =>
      options.logger.error('the terminal emulator broke down; terminals that are open have no picture any more', {
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
      onUnsent: () => this.flushLater(screen),
      onClose: () => this.forget(screen),
    });
    this.screens.set(id, screen);
    const { cols, rows, offset } = options;
    this.post({ do: 'open', id, cols, rows, offset });
    return screen;
  }

  /** Ends the thread; its screens fail. */
  async end(): Promise<void> {
    this.isEnding = true;
    this.failAll();
    await this.worker.terminate();
    await this.ended;
  }

  private post(message: ToEmulator, transfer: readonly ArrayBuffer[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private hear(message: FromEmulator): void {
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
        this.options.logger.error('the screen of a terminal cannot be followed any more', { reason: message.reason });
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
