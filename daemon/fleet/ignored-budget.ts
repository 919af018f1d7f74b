/** Limits how much an agent may send that this release does not know, and so ignores. */
import type { Clock } from '../../src/kernel/clock.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';

/** A small message costs as much as this many characters. */
const LEAST = 256;

/** A bucket of characters: a burst fits, and a steady stream is slowed down to the rate at which it fills again. */
export class IgnoredBudget {
  private readonly clock: Clock;
  private left: number = LINK_LIMITS.ignored.burst;
  private filledAt: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.filledAt = clock.monotonic();
  }

  /** Charges ignored characters. Returns the milliseconds for which nothing more must be read; 0 within the budget. */
  charge(characters: number): number {
    const { burst, perSecond } = LINK_LIMITS.ignored;
    const now = this.clock.monotonic();
    const filled = Math.min(burst, this.left + ((now - this.filledAt) / 1000) * perSecond);
    // The debt is bounded, so that the agent's answers to pings are read in time.
    this.left = Math.max(-burst, filled - Math.max(LEAST, characters));
    this.filledAt = now;
    return this.left >= 0 ? 0 : Math.ceil((-this.left / perSecond) * 1000);
  }
}
