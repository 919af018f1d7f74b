/** Counts what happened within the last minute, for each subject apart. */
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';

interface RateLimiterOptions extends Pick<Core, 'clock'> {
  /** How many within a window. */
  readonly limit: number;
  /** What is limited, for the message: "logins of this address". */
  readonly what: string;
}

const WINDOW_MS = 60_000;
/** Subjects that are remembered; beyond it those that came first are forgotten. */
const SUBJECTS = 10_000;

export class RateLimiter {
  private readonly options: RateLimiterOptions;
  /** Times on the monotonic clock, at most `limit` of each subject. */
  private readonly times = new Map<string, number[]>();

  constructor(options: RateLimiterOptions) {
    this.options = options;
  }

  /** Counts one. Throws `rate_limited`, with `data.retry_after` in seconds, when the subject has used up its limit. */
  take(subject: string): void {
    const { clock, limit } = this.options;
    const now = clock.monotonic();
    const recent = (this.times.get(subject) ?? []).filter((time) => time > now - WINDOW_MS);
    const [first] = recent;
    if (first !== undefined && recent.length >= limit) throw this.refusal(first + WINDOW_MS - now);
    // Put last, so that those that were active stay the longest.
    this.times.delete(subject);
    this.times.set(subject, [...recent, now]);
    this.forgetOldest();
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
