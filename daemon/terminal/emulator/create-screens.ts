/** The screens of all terminals, in one thread that runs while there are any. */
import type { Logger } from '../../../src/kernel/logger.js';
import type { Service } from '../../../src/kernel/service.js';
import { clampSize } from '../../../src/terminal/limits.js';
import type { Screen, ScreenOptions, Screens } from '../screen.js';
import { EmulatorThread } from './emulator-thread.js';

export interface CreateScreensOptions {
  readonly logger: Logger;
  /** A thread without screens ends after that long and gives its memory back, in milliseconds. */
  readonly idleAfter?: number;
  /** What the thread's heap may grow to, in megabytes. */
  readonly heap?: number;
}

export type EmulatedScreens = Screens & Service;

const IDLE_AFTER = 60_000;
/** A thousand screens of a usual size, and room for a few large ones. */
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

  /** The thread starts with the first screen. */
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
