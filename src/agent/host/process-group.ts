/** The processes that a command has started and that have not left for a group of their own. */
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from './alive.js';

/** What processes have to end by themselves after SIGTERM, and to be gone after SIGKILL, in milliseconds. */
const TERMINATE_MS = 10_000;
const KILL_MS = 5_000;
/** Between two looks, so that a number that the system gives to others is not signalled. */
const LOOK_MS = 50;

export class ProcessGroup {
  private readonly leader: number;

  constructor(leader: number) {
    this.leader = leader;
  }

  /** Asks all of them to end, and ends those that do not. What not even that ends is left to the system. */
  async end(): Promise<void> {
    this.signal('SIGTERM');
    // A stopped process would not hear it.
    this.signal('SIGCONT');
    if (await this.isGoneWithin(TERMINATE_MS)) return;
    this.signal('SIGKILL');
    await this.isGoneWithin(KILL_MS);
  }

  private async isGoneWithin(milliseconds: number): Promise<boolean> {
    const end = performance.now() + milliseconds;
    while (isAlive(-this.leader)) {
      if (performance.now() >= end) return false;
      await delay(LOOK_MS);
    }
    return true;
  }

  private signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.leader, name);
    } catch {
      // They are gone, or belong to another user.
    }
  }
}
