/** Notices a wall clock that jumps, tells of it, and says which time age is judged by until the clock can be believed. */
import { toTimestamp } from '../../src/kernel/clock.js';
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import { getMeta, setMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import { lastAuditRow, newestAuditTime } from './audit-store.js';
import { BELIEVED_MS, ClockTrust, JUMP_MS } from './clock-trust.js';
import type { Core } from './core.js';
import { type DomainEvent, SYSTEM } from './domain-event.js';

type ClockWatchOptions = Pick<Core, 'clock' | 'db' | 'logger' | 'uow'>;

/** A report about the clock. */
interface ClockReport {
  /** RFC 3339, by the wall clock. */
  readonly now: string;
  /** Milliseconds of the wall clock's time that nothing confirms; below zero after it was set back. */
  readonly doubt_ms: number;
  /** True while nothing is deleted for its age until an operator confirms the clock. */
  readonly waits: boolean;
  /** By how many milliseconds the newest event of the audit log lies ahead of the clock, 0 when none does. */
  readonly ahead_ms: number;
}

interface ClockProblem {
  readonly code: 'clock_jumped' | 'times_ahead';
  readonly detail: string;
}

/** In `meta`, as JSON. */
const KEY = 'clock';
const TICK_MS = 60_000;

interface Kept {
  readonly wall: number;
  readonly doubt: number;
  /** Events up to this time may lie ahead of the clock: an operator knows of them. */
  readonly known: number;
}

export class ClockWatch implements Service {
  readonly name = 'clock watch';
  private readonly options: ClockWatchOptions;
  private trust: ClockTrust;
  private known = 0;
  /** The latest time in the audit log, in Unix milliseconds. */
  private newest = 0;
  /** Jumps that the audit log does not hold yet. */
  private untold: DomainEvent[] = [];
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();

  constructor(options: ClockWatchOptions) {
    this.options = options;
    this.trust = new ClockTrust(this.reading(), null);
  }

  /** Compares the clock with the newest time that the store knows. */
  async start(): Promise<void> {
    const { db, clock } = this.options;
    const kept = await readKept(db);
    const last = await lastAuditRow(db);
    this.newest = await newestAuditTime(db);
    this.known = kept?.known ?? 0;
    // Newer events may have been written while the orchestrator was stopped, by a clock that was not watched.
    const wall = kept?.wall ?? last?.timestamp ?? 0;
    if (wall > 0) {
      const before = { wall, steady: clock.monotonic() };
      this.trust = new ClockTrust(before, { wall, doubt: kept?.doubt ?? 0 });
      const step = this.trust.read(this.reading());
      // Time passes while nothing runs.
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

  /** The time by which age is judged, in Unix milliseconds: behind the wall clock while that is not believed. */
  readonly ageTime = (): number => {
    this.look();
    return this.trust.time;
  };

  report(): ClockReport {
    this.look();
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

  /** Takes the wall clock as right; returns what was wrong before. */
  async accept(): Promise<ClockReport> {
    const before = this.report();
    const { uow } = this.options;
    await uow.write(async (tx, emit) => {
      const known = Math.max(this.known, this.newest);
      await setMeta(tx, KEY, JSON.stringify({ wall: this.options.clock.now(), doubt: 0, known } satisfies Kept));
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

  /** Looks at the clock, tells the audit log of jumps, and keeps what the next start needs. Never rejects. */
  async tick(): Promise<void> {
    const { db, uow, logger } = this.options;
    this.look();
    const untold = this.untold.splice(0);
    try {
      await uow.write(async (tx, emit) => {
        await setMeta(tx, KEY, JSON.stringify({ ...this.trust.memory, known: this.known } satisfies Kept));
        for (const event of untold) emit(event);
      });
      this.newest = await newestAuditTime(db);
    } catch (error) {
      this.untold.unshift(...untold);
      logger.error('the time of the clock could not be kept, it is tried again', { reason: messageOf(error) });
    }
  }

  private look(): void {
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
    this.untold.push({
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

async function readKept(db: Queryable): Promise<Kept | null> {
  const text = await getMeta(db, KEY);
  return text === null ? null : JSON.parse(text);
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** `3 days`, `1 hour`. */
function spanOf(ms: number): string {
  const [name, size] = UNITS.find((unit) => ms >= unit[1]) ?? ['second', 1000];
  const count = Math.round(ms / size);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
