/**
 * Lets sockets that have much to be read take turns, so that in each round of the event loop one of them is read, and
 * those with a key or its echo wait for little.
 */

/** What reads on when it is its turn. */
export type ReadOn = () => void;

export class BulkTurns {
  private readonly waiting: ReadOn[] = [];
  private isScheduled = false;
  private count = 0;

  /** A number that is another one in each round of the event loop in which it is asked for. */
  get round(): number {
    this.schedule();
    return this.count;
  }

  /** In a later round; whoever has waited longest is first. */
  wait(readOn: ReadOn): void {
    this.waiting.push(readOn);
    this.schedule();
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.count += 1;
      this.waiting.shift()?.();
      if (this.waiting.length > 0) this.schedule();
    });
  }
}
