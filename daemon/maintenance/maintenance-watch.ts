/** Tracks which maintenance windows are active, and records their start and end in the audit log. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import {
  isActive,
  listWindows,
  transitionEvent,
  transitionsUntil,
  updateWindow,
  type WindowRow,
} from './window-store.js';

type MaintenanceWatchOptions = Pick<Core, 'clock' | 'db' | 'logger' | 'uow'>;

/** Interval of clock checks in milliseconds; the store is only read when a window begins or ends. */
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

  /** Records the starts and ends that passed while the orchestrator was stopped. */
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

  /** Returns true while any window is active by the current wall clock. */
  isMaintenance(): boolean {
    const now = this.options.clock.now();
    return this.windows.some((row) => isActive(row, now));
  }

  /** Reloads the windows; call it after every change. */
  async load(): Promise<void> {
    this.windows = await listWindows(this.options.db);
  }

  /** Records what is due. Never rejects; a failed write is retried at the next tick. */
  async tick(): Promise<void> {
    const now = this.options.clock.now();
    if (transitionsUntil(now, this.windows).length === 0) return;
    try {
      await this.recordDue(now);
      await this.load();
    } catch (error) {
      const reason = messageOf(error);
      this.options.logger.error('the start or end of a maintenance window could not be recorded', { reason });
    }
  }

  private async recordDue(now: number): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      for (const moment of transitionsUntil(now, await listWindows(tx))) {
        await updateWindow(tx, moment.row.window_id, { told: moment.told });
        emit(transitionEvent(moment, null));
      }
    });
  }
}
