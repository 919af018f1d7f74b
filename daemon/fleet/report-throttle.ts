/** Keeps what is done to us over and over from filling the audit log. */
import type { Clock } from '../../src/kernel/clock.js';

/** The same is reported at most that often, in milliseconds. */
const EVERY = 60_000;
/** Reports that are remembered; the oldest are forgotten first. */
const REMEMBERED = 10_000;

export class ReportThrottle {
  private readonly clock: Clock;
  private readonly last = new Map<string, number>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** True, and noted, unless the same was reported within the last minute. */
  passes(what: string): boolean {
    const now = this.clock.monotonic();
    const before = this.last.get(what);
    if (before !== undefined && now - before < EVERY) return false;
    this.last.delete(what);
    this.last.set(what, now);
    const [oldest] = this.last.keys();
    if (this.last.size > REMEMBERED && oldest !== undefined) this.last.delete(oldest);
    return true;
  }
}
