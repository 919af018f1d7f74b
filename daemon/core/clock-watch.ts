/**
 * Detects jumps of the wall clock, reports them, and provides the time by which age is judged until the clock is
 * trusted.
 */
import { toTimestamp } from '../../src/kernel/clock.js';
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { ServeClock } from '../../src/programs/serve.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import { lastAuditRow, newestAuditTime } from './audit-store.js';
import { BELIEVED_MS, ClockTrust, JUMP_MS } from './clock-trust.js';
import type { Core } from './core.js';
import { type DomainEvent, SYSTEM } from './domain-event.js';

type ClockWatchOptions = Pick<Core, 'clock' | 'db' | 'logger' | 'uow'>;

interface ClockProblem {
  readonly code: 'clock_jumped' | 'times_ahead';
  readonly detail: string;
}

/** Key in `meta`; the value is JSON. */
const KEY = 'clock';
const TICK_MS = 60_000;

interface Kept {
  readonly wall: number;
  readonly doubt: number;
  /** Unix milliseconds up to which an operator has acknowledged events ahead of the clock. */
  readonly known: number;
}

export class ClockWatch implements Service {
  readonly name = 'clock watch';
  private readonly options: ClockWatchOptions;
  private trust: ClockTrust;
  private known = 0;
  /** Latest time in the audit log in Unix milliseconds. */
  private newest = 0;
  /** Jumps not yet recorded in the audit log. */
  private unrecorded: DomainEvent[] = [];
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();

  constructor(options: ClockWatchOptions) {
    this.options = options;
    this.trust = new ClockTrust(this.reading(), null);
  }

  /** Compares the clock with the newest time in the store. */
  async start(): Promise<void> {
    const { db, clock } = this.options;
    const kept = (await getMetaJson<Kept>(db, KEY)) ?? null;
    const last = await lastAuditRow(db);
    this.newest = await newestAuditTime(db);
    this.known = kept?.known ?? 0;
    // The stored reading wins over the newest event, which may have been written while the orchestrator was stopped,
    // by a clock that was not watched.
    const wall = kept?.wall ?? last?.timestamp ?? 0;
    if (wall > 0) {
      const before = { wall, steady: clock.monotonic() };
      this.trust = new ClockTrust(before, { wall, doubt: kept?.doubt ?? 0 });
      const step = this.trust.read(this.reading());
      // A step forward is normal here: time passes while the orchestrator is stopped.
      if (step < 0 || step > BELIEVED_MS) this.noteJump(step, 'since the orchestrator last ran');
    }
    await this.tick();
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.tick());
    }, TICK_MS);
    this.timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.round;
    await this.tick();
  }

  /** Returns the time by which age is judged, in Unix milliseconds; behind the wall clock while that is not trusted. */
  readonly ageTime = (): number => {
    this.check();
    return this.trust.time;
  };

  report(): ServeClock {
    this.check();
    const now = this.options.clock.now();
    const ahead = this.newest - now;
    return {
      now: toTimestamp(now),
      doubt_ms: Math.round(this.trust.doubt),
      waits: this.trust.needsOperator,
      ahead_ms: ahead > JUMP_MS && this.newest > this.known ? Math.round(ahead) : 0,
    };
  }

  problems(): readonly ClockProblem[] {
    const { doubt_ms, waits, ahead_ms } = this.report();
    const problems: ClockProblem[] = [];
    if (waits) {
      const detail = `the clock is ${spanOf(doubt_ms)} ahead of the time that the orchestrator has seen pass; nothing is deleted for its age until the clock is right again or confirmed with: orch serve accept-clock`;
      problems.push({ code: 'clock_jumped', detail });
    }
    if (ahead_ms > 0) {
      const detail = `the audit log holds events from up to ${spanOf(ahead_ms)} ahead of the clock; set the clock right, or confirm it with: orch serve accept-clock`;
      problems.push({ code: 'times_ahead', detail });
    }
    return problems;
  }

  /** Trusts the wall clock. Returns the report from before. */
  async accept(): Promise<ServeClock> {
    const before = this.report();
    const { uow } = this.options;
    await uow.write(async (tx, emit) => {
      const known = Math.max(this.known, this.newest);
      await setMetaJson<Kept>(tx, KEY, { wall: this.options.clock.now(), doubt: 0, known });
      emit({
        type: 'orchestrator.clock_accepted',
        actor: SYSTEM,
        target: SYSTEM,
        summary: `The clock of the orchestrator was confirmed as right: ${before.now}`,
        metadata: { ...before },
      });
    });
    this.known = Math.max(this.known, this.newest);
    this.trust.accept();
    return before;
  }

  /** Reads the clock, records jumps in the audit log, and stores the state for the next start. Never rejects. */
  async tick(): Promise<void> {
    const { db, uow, logger } = this.options;
    this.check();
    const untold = this.unrecorded.splice(0);
    try {
      await uow.write(async (tx, emit) => {
        await setMetaJson<Kept>(tx, KEY, { ...this.trust.memory, known: this.known });
        for (const event of untold) emit(event);
      });
      this.newest = await newestAuditTime(db);
    } catch (error) {
      this.unrecorded.unshift(...untold);
      logger.error('the time of the clock could not be kept, it is tried again', { reason: messageOf(error) });
    }
  }

  private check(): void {
    const step = this.trust.read(this.reading());
    if (step !== 0) this.noteJump(step, 'while the orchestrator ran');
  }

  private noteJump(step: number, when: string): void {
    const { clock, logger } = this.options;
    const direction = step > 0 ? 'ahead' : 'back';
    const { needsOperator: waits } = this.trust;
    const summary = `The clock of the orchestrator went ${direction} by ${spanOf(Math.abs(step))} ${when}`;
    const hint = waits
      ? 'nothing is deleted for its age until the clock is right again or accepted: orch serve accept-clock'
      : '';
    logger.warn(summary, { milliseconds: Math.round(step), ...(waits ? { hint } : {}) });
    this.unrecorded.push({
      type: 'orchestrator.clock_jumped',
      actor: SYSTEM,
      target: SYSTEM,
      summary: waits ? `${summary}; ${hint}` : summary,
      metadata: { milliseconds: Math.round(step), now: toTimestamp(clock.now()), waits },
    });
  }

  private reading() {
    const { clock } = this.options;
    return { wall: clock.now(), steady: clock.monotonic() };
  }
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** Formats a duration for messages: `3 days`, `1 hour`. */
function spanOf(ms: number): string {
  const [name, size] = UNITS.find((unit) => ms >= unit[1]) ?? ['second', 1000];
  const count = Math.round(ms / size);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
