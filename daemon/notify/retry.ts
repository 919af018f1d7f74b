/** When a delivery that has failed is tried again. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Behind each failed attempt but the last. */
const DELAYS: readonly number[] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];
/** A pause grows by this part of it at most, so that what has failed together does not come back together. */
const JITTER = 0.2;
/** A receiver is not waited for any longer, whatever it asks for. */
const LONGEST = 10 * HOUR;

export interface RetryOptions {
  /** Attempts so far, the one that has just failed among them. */
  readonly attempts: number;
  /** What the receiver has asked for. */
  readonly retryAfterMs: number | null;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Milliseconds until the next attempt; null when that was the last one. */
export function retryDelay({ attempts, retryAfterMs, random }: RetryOptions): number | null {
  const delay = DELAYS[attempts - 1];
  if (delay === undefined) return null;
  return Math.round(Math.max(delay * (1 + JITTER * random()), Math.min(retryAfterMs ?? 0, LONGEST)));
}

/** The value of a `Retry-After`, in milliseconds from now, at most the longest pause; null when it says nothing. */
export function readRetryAfter(text: string | null, now: number): number | null {
  if (text === null) return null;
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * SECOND : Date.parse(text) - now;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST);
}
