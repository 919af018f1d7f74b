/** Knows at any moment whether a maintenance window is active, and tells the audit log when one begins and ends. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import { isActive, listWindows, momentEvent, momentsUntil, updateWindow, type WindowRow } from './window-store.js';

type MaintenanceWatchOptions = Pick<Core, 'clock' | 'db' | 'logger' | 'uow'>;

/** How often it looks at the clock, in milliseconds; looking at the store takes something that is due. */
const TICK = 1_000;

export class MaintenanceWatch implements Service {
  readonly name = 'maintenance windows';
  private readonly options: MaintenanceWatchOptions;
  private windows: readonly WindowRow[] = [];
  private round: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(options: MaintenanceWatchOptions) {
    this.options = options;
  }

  /** Tells what came to pass while nobody watched. */
  async start(): Promise<void> {
    await this.load();
    await this.tick();
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.tick());
    }, TICK);
    this.timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.round;
  }

  /** Whether any window is active now, by the wall clock, wherever it was set. */
  isMaintenance(): boolean {
    const now = this.options.clock.now();
    return this.windows.some((row) => isActive(row, now));
  }

  /** To be called whenever windows have changed. */
  async load(): Promise<void> {
    this.windows = await listWindows(this.options.db);
  }

  /** Never rejects; what could not be told is due the next time. */
  async tick(): Promise<void> {
    const now = this.options.clock.now();
    if (momentsUntil(now, this.windows).length === 0) return;
    try {
      await this.tell(now);
      await this.load();
    } catch (error) {
      const reason = messageOf(error);
      this.options.logger.error('a maintenance window began or ended and the audit log was not told', { reason });
    }
  }

  private async tell(now: number): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      for (const moment of momentsUntil(now, await listWindows(tx))) {
        await updateWindow(tx, moment.row.window_id, { told: moment.told });
        emit(momentEvent(moment, null));
      }
    });
  }
}
