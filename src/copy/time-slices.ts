/** Bounds how long a copy of small files holds the event loop, so that heartbeats and other copies of its process go on. */
import { setImmediate } from 'node:timers/promises';

/** Milliseconds of synchronous calls until other work gets its turn. */
const SLICE = 8;

export class TimeSlices {
  private begin = performance.now();

  /** Lets other work of the process run if the slice is used up. */
  async pause(): Promise<void> {
    if (performance.now() - this.begin < SLICE) return;
    await setImmediate();
    this.begin = performance.now();
  }
}
