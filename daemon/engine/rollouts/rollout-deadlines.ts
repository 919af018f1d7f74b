/**
 * The deadlines of a rollout: the end of the soak of its current wave, and the time until which offline agents are waited for.
 * Stored deadlines are converted to the monotonic clock, which runs on whatever happens to the wall clock.
 */
import type { Clock } from '../../../src/kernel/clock.js';
import type { RolloutRow } from './rollout-store.js';

type StoredDeadlines = Pick<RolloutRow, 'soaking_until' | 'expires_at'>;

export class RolloutDeadlines {
  private readonly clock: Clock;
  /** Milliseconds. */
  private readonly soak: number;
  private readonly wait: number;
  /** Monotonic milliseconds; null without a soak. */
  private soakedAt: number | null = null;
  /** Unix milliseconds; null when offline agents are not waited for. */
  private expiresAt: number | null = null;
  /** `expiresAt` in monotonic milliseconds. */
  private expiry: number | null = null;

  constructor(clock: Clock, { soakSecs, whenOnlineSecs }: Pick<RolloutRow['pace'], 'soakSecs' | 'whenOnlineSecs'>) {
    this.clock = clock;
    this.soak = soakSecs * 1000;
    this.wait = (whenOnlineSecs ?? 0) * 1000;
  }

  /** End of the soak of the current wave in monotonic milliseconds; null without a soak. */
  get soakEnd(): number | null {
    return this.soakedAt;
  }

  /** True once the soak of the current wave is over; false without a soak. */
  get isSoaked(): boolean {
    return this.soakedAt !== null && this.clock.monotonic() >= this.soakedAt;
  }

  /** True while offline agents are waited for. A clock that is set must not let an agent start after its time. */
  get isAwaiting(): boolean {
    const { clock, expiresAt, expiry } = this;
    return expiry !== null && expiresAt !== null && clock.monotonic() < expiry && clock.now() < expiresAt;
  }

  /** True when the time in which offline agents are waited for is over. */
  get isExpired(): boolean {
    return this.expiresAt !== null && !this.isAwaiting;
  }

  /** Takes stored deadlines. A soak that is known, and a time that has not changed, stay as they are. */
  read({ soaking_until, expires_at }: StoredDeadlines): void {
    if (soaking_until === null) this.soakedAt = null;
    else this.soakedAt ??= this.after(soaking_until, this.soak);
    if (expires_at === this.expiresAt) return;
    this.expiresAt = expires_at;
    this.expiry = expires_at === null ? null : this.after(expires_at, this.wait);
  }

  /** Begins the soak of the current wave. Returns its end in Unix milliseconds, to be stored. */
  beginSoak(): number {
    this.soakedAt = this.clock.monotonic() + this.soak;
    return this.clock.now() + this.soak;
  }

  endSoak(): void {
    this.soakedAt = null;
  }

  /** Returns a time in monotonic milliseconds. What remains is never more than the whole time. */
  private after(until: number, whole: number): number {
    return this.clock.monotonic() + Math.min(whole, Math.max(0, until - this.clock.now()));
  }
}
