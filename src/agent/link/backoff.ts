/** The pause before the next attempt to connect: doubling, with full jitter, so that a fleet does not reconnect at once. */

interface BackoffOptions {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** First ceiling in milliseconds. */
  readonly first?: number;
  /** Maximum ceiling in milliseconds. */
  readonly last?: number;
  /** Milliseconds; a shorter connection counts as a failed attempt. */
  readonly minConnectedMs?: number;
}

export class Backoff {
  private readonly random: () => number;
  private readonly first: number;
  private readonly last: number;
  private readonly minConnectedMs: number;
  private ceiling: number;

  constructor({ random, first = 1_000, last = 60_000, minConnectedMs = 5_000 }: BackoffOptions) {
    this.random = random;
    this.first = first;
    this.last = last;
    this.minConnectedMs = minConnectedMs;
    this.ceiling = first;
  }

  /**
   * Returns a random pause from 0 up to the ceiling, in milliseconds, and doubles the ceiling.
   * @param most limit of this pause in milliseconds
   */
  next(most = this.last): number {
    const delay = Math.floor(this.random() * Math.min(this.ceiling, most));
    this.ceiling = Math.min(this.ceiling * 2, this.last);
    return delay;
  }

  /** Restarts at the first ceiling. */
  reset(): void {
    this.ceiling = this.first;
  }

  /** Notes the end of a connection; one that was up for `steady` milliseconds resets the ceiling. */
  ended(upMs: number): void {
    if (upMs >= this.minConnectedMs) this.reset();
  }
}
