/** Rate limiter: counts events of the last minute, per subject. */
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';

interface RateLimiterOptions extends Pick<Core, 'clock'> {
  /** Maximum events within a window. */
  readonly limit: number;
  /** Limited events, for the message: "logins of this address". */
  readonly what: string;
}

const WINDOW_MS = 60_000;
/** Maximum subjects remembered; beyond it the least recently active one is dropped. */
const SUBJECTS = 10_000;

export class RateLimiter {
  private readonly options: RateLimiterOptions;
  /** Event times on the monotonic clock, at most `limit` per subject. */
  private readonly times = new Map<string, number[]>();

  constructor(options: RateLimiterOptions) {
    this.options = options;
  }

  /**
   * Counts one event, and returns a function that takes the count back. Throws `rate_limited`, with
   * `data.retry_after` in seconds, when the subject has used up its limit.
   */
  take(subject: string): () => void {
    const { clock, limit } = this.options;
    const now = clock.monotonic();
    const recent = (this.times.get(subject) ?? []).filter((time) => time > now - WINDOW_MS);
    const [first] = recent;
    if (first !== undefined && recent.length >= limit) throw this.refusal(first + WINDOW_MS - now);
    // Moved to the end, so that the least recently active subject is dropped first.
    this.times.delete(subject);
    this.times.set(subject, [...recent, now]);
    this.forgetOldest();
    return () => this.giveBack(subject, now);
  }

  private giveBack(subject: string, time: number): void {
    const times = this.times.get(subject) ?? [];
    const at = times.lastIndexOf(time);
    if (at >= 0) this.times.set(subject, times.toSpliced(at, 1));
  }

  private forgetOldest(): void {
    if (this.times.size <= SUBJECTS) return;
    const [oldest] = this.times.keys();
    if (oldest !== undefined) this.times.delete(oldest);
  }

  private refusal(waitMs: number): Fault {
    const { what, limit } = this.options;
    const seconds = Math.max(1, Math.ceil(waitMs / 1000));
    return new Fault('rate_limited', `too many ${what}: at most ${limit} a minute`, {
      hint: `try again in ${seconds} seconds`,
      data: { retry_after: seconds },
    });
  }
}
