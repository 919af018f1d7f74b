/** How long to wait before the next attempt to connect: doubling, with full jitter, so that a fleet does not come at once. */

export interface BackoffOptions {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Milliseconds; the first ceiling. */
  readonly first?: number;
  /** Milliseconds; no ceiling is above. */
  readonly last?: number;
  /** Milliseconds; a connection that was up for less counts as a failed attempt. */
  readonly steady?: number;
}

export class Backoff {
  private readonly random: () => number;
  private readonly first: number;
  private readonly last: number;
  private readonly steady: number;
  private ceiling: number;

  constructor({ random, first = 1_000, last = 60_000, steady = 5_000 }: BackoffOptions) {
    this.random = random;
    this.first = first;
    this.last = last;
    this.steady = steady;
    this.ceiling = first;
  }

  /**
   * Milliseconds to wait now: anything from 0 up to the ceiling, which then doubles.
   * @param most milliseconds for this once, where somebody waits
   */
  next(most = this.last): number {
    const delay = Math.floor(this.random() * Math.min(this.ceiling, most));
    this.ceiling = Math.min(this.ceiling * 2, this.last);
    return delay;
  }

  /** There is another place to try. */
  reset(): void {
    this.ceiling = this.first;
  }

  /** A connection ended that was up for that many milliseconds; after a steady one the waiting starts anew. */
  ended(upMs: number): void {
    if (upMs >= this.steady) this.reset();
  }
}
