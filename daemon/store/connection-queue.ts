/** Lets the users of the one connection take turns, in the order they came. */
import { Fault } from '../../src/kernel/fault.js';

/** How long turns may follow each other before the rest of the process gets a chance. */
const STRETCH_MS = 10;
/** Far more than any transaction takes, because those await nothing but the store. */
const PATIENCE_MS = 10_000;

interface Waiter {
  readonly start: () => void;
  readonly timer: NodeJS.Timeout;
}

export class ConnectionQueue {
  private readonly waiting: Waiter[] = [];
  private held = false;
  /** When the first turn since the event loop last went round began. */
  private stretchStart: number | null = null;

  /**
   * Settles when it is the caller's turn, who then has to call `release`. Throws `store_unavailable` when the turn does not
   * come: a transaction hangs, perhaps because it asks the database instead of its own transaction.
   */
  acquire(): Promise<void> {
    const isFree = !this.held;
    this.held = true;
    if (isFree && !this.isLongStretch()) return Promise.resolve();
    if (isFree) setImmediate(() => this.next());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        reject(
          new Fault('store_unavailable', `the store was busy for ${PATIENCE_MS / 1000} seconds`, { hint: 'try again' }),
        );
      }, PATIENCE_MS);
      const waiter: Waiter = { start: resolve, timer };
      this.waiting.push(waiter);
    });
  }

  release(): void {
    if (this.waiting.length > 0 && this.isLongStretch()) setImmediate(() => this.next());
    else this.next();
  }

  private next(): void {
    const waiter = this.waiting.shift();
    if (!waiter) {
      this.held = false;
      return;
    }
    clearTimeout(waiter.timer);
    waiter.start();
  }

  private isLongStretch(): boolean {
    const now = performance.now();
    if (this.stretchStart === null) {
      this.stretchStart = now;
      setImmediate(() => {
        this.stretchStart = null;
      });
    }
    return now - this.stretchStart >= STRETCH_MS;
  }
}
