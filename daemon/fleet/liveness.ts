/** Whether the other end of a connection is alive, by when it was last heard. */
import type { Clock } from '../../src/kernel/clock.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';

/** Called with true whenever something is heard, and with false at the end. */
export type Watcher = (isAlive: boolean) => void;

export class Liveness {
  private readonly clock: Clock;
  private readonly watchers = new Set<Watcher>();
  private lastHeard: number;
  private lastAsked: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.lastHeard = clock.monotonic();
    this.lastAsked = this.lastHeard;
  }

  heard(): void {
    this.lastHeard = this.clock.monotonic();
    this.tell(true);
  }

  /** A ping was sent. */
  asked(): void {
    this.lastAsked = this.clock.monotonic();
  }

  ended(): void {
    this.tell(false);
  }

  isDead(): boolean {
    return this.clock.monotonic() - this.lastHeard >= LINK_LIMITS.deadAfter;
  }

  isPingDue(): boolean {
    return this.clock.monotonic() - this.lastAsked >= LINK_LIMITS.pingInterval;
  }

  /** Returns what ends the watch. */
  watch(watcher: Watcher): () => void {
    this.watchers.add(watcher);
    return () => {
      this.watchers.delete(watcher);
    };
  }

  private tell(isAlive: boolean): void {
    for (const watcher of [...this.watchers]) watcher(isAlive);
  }
}
