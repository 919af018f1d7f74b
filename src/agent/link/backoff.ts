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

/**
 * Maximum ceiling in milliseconds after a refused attempt, and the number of refusals in a row for which it holds. They cover
 * half a minute, because an orchestrator that restarts refuses for a few seconds only. A refusal costs its machine next to
 * nothing.
 */
const REFUSED_CEILING = 3_000;
const REFUSALS = 20;

export class Backoff {
  private readonly random: () => number;
  private readonly first: number;
  private readonly last: number;
  private readonly minConnectedMs: number;
  private ceiling: number;
  private refusals = 0;

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
    this.refusals = 0;
  }

  /**
   * Notes the end of an attempt or a connection; a connection that was up for `minConnectedMs` resets the ceiling.
   * @param wasRefused true when nothing listened at the address
   */
  ended(upMs: number, wasRefused = false): void {
    if (upMs >= this.minConnectedMs) this.reset();
    if (!wasRefused || this.refusals >= REFUSALS) return;
    this.refusals += 1;
    this.ceiling = Math.min(this.ceiling, REFUSED_CEILING);
  }
}
