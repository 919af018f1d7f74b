/** Tracks which maintenance windows are active, and records their start and end in the audit log. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { AgentLabels } from '../../src/language/clause.js';
import { matches, parseSelector, type Selector } from '../../src/language/selector.js';
import type { Core } from '../core/core.js';
import {
  hasEnded,
  isActive,
  listWindows,
  pausesAll,
  transitionEvent,
  transitionsUntil,
  updateWindow,
  type WindowRow,
} from './window-store.js';

type MaintenanceWatchOptions = Pick<Core, 'clock' | 'db' | 'logger' | 'uow'>;

/** Interval of clock checks in milliseconds; the store is only read when a window begins or ends. */
const TICK = 1_000;

/** A window with its parsed selector. */
type WatchedWindow = WindowRow & { readonly parsed: Selector | null };

/** An assignment whose applies no window permits now. */
export interface ClosedAssignment {
  readonly assignment: string;
  /** The next permit, in Unix milliseconds, and the milliseconds until it starts; null if none is to come. */
  readonly next: { readonly starts_at: number; readonly ends_at: number; readonly starts_in: number } | null;
}

export class MaintenanceWatch implements Service {
  readonly name = 'maintenance windows';
  private readonly options: MaintenanceWatchOptions;
  private windows: readonly WatchedWindow[] = [];
  private round: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(options: MaintenanceWatchOptions) {
    this.options = options;
  }

  /** Records the starts and ends that passed while the orchestrator was stopped. */
  async start(): Promise<void> {
    this.take(await listWindows(this.options.db));
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

  /** Returns true while a window pauses the whole fleet, by the current wall clock. */
  isMaintenance(): boolean {
    const now = this.options.clock.now();
    return this.windows.some((row) => pausesAll(row, now));
  }

  /** Returns true while an active pause is limited to some agents. */
  pausesSome(): boolean {
    const now = this.options.clock.now();
    return this.windows.some((row) => row.kind === 'pause' && row.selector !== null && isActive(row, now));
  }

  /** Returns true while a window pauses an agent with these labels. */
  isPaused(labels: AgentLabels): boolean {
    const now = this.options.clock.now();
    return this.windows.some(
      (row) => row.kind === 'pause' && isActive(row, now) && (row.parsed === null || matches(row.parsed, labels)),
    );
  }

  /**
   * Returns the first of these assignments that has permits of which none is active, or null. Permits that have ended count: after
   * its last one an assignment stays closed until those windows are deleted, so that nothing is applied late. A permit whose end is
   * recorded does not open again when the clock is set back.
   */
  closedFor(assignments: readonly string[]): ClosedAssignment | null {
    const now = this.options.clock.now();
    for (const assignment of assignments) {
      const permits = this.windows.filter((row) => row.kind === 'permit' && row.assignments.includes(assignment));
      if (permits.length === 0 || permits.some((row) => isActive(row, now) && !hasEnded(row, now))) continue;
      const ahead = permits.filter((row) => row.starts_at > now && !hasEnded(row, now));
      const [next] = ahead.sort((a, b) => a.starts_at - b.starts_at);
      if (next === undefined) return { assignment, next: null };
      const { starts_at, ends_at } = next;
      return { assignment, next: { starts_at, ends_at, starts_in: starts_at - now } };
    }
    return null;
  }

  /** Takes all windows as a change has left them. */
  take(rows: readonly WindowRow[]): void {
    this.windows = rows.map((row) => ({ ...row, parsed: row.selector === null ? null : parseSelector(row.selector) }));
  }

  /** Records what is due. Never rejects; a failed write is retried at the next tick. */
  async tick(): Promise<void> {
    const now = this.options.clock.now();
    if (transitionsUntil(now, this.windows).length === 0) return;
    try {
      this.take(await this.recordDue(now));
    } catch (error) {
      const reason = messageOf(error);
      this.options.logger.error('the start or end of a maintenance window could not be recorded', { reason });
    }
  }

  private recordDue(now: number): Promise<readonly WindowRow[]> {
    return this.options.uow.write(async (tx, emit) => {
      for (const moment of transitionsUntil(now, await listWindows(tx))) {
        await updateWindow(tx, moment.row.window_id, { told: moment.told });
        emit(transitionEvent(moment, null));
      }
      return listWindows(tx);
    });
  }
}
