/** How often an operator's client may ask for something that costs others: a picture, a word to the writer, a round trip. */

/** At once, and per second after that; nobody types that fast. */
const BURST = 20;
const PER_SECOND = 5;

export class AskBudget {
  private left = BURST;
  private at: number;

  /** @param now milliseconds of the monotonic clock */
  constructor(now: number) {
    this.at = now;
  }

  /** Whether it may ask now; counts it when it may. */
  take(now: number): boolean {
    this.left = Math.min(BURST, this.left + ((now - this.at) / 1000) * PER_SECOND);
    this.at = now;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
