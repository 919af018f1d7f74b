/** Plays a recording on a terminal, in its own time or faster, and leaves the terminal as it was. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../kernel/clock.js';
import { Neutralizer } from '../../terminal/recording/neutralizer.js';
import type { CastItem } from '../../terminal/recording/read-cast.js';

export interface ReplayOptions {
  /** How often as fast as it was. */
  readonly speed: number;
  /** No pause is longer than that, in seconds of the recording. */
  readonly idleLimit: number;
  /** Begins with the screen of that time, in seconds. */
  readonly from: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly signal: AbortSignal;
  /** Resolves with false when nobody looks any more. */
  readonly write: (text: string) => Promise<boolean>;
}

/** @returns the status with which the program ended, when the recording got that far and tells it */
export async function replay(items: AsyncIterable<CastItem>, options: ReplayOptions): Promise<string | null> {
  const { write, signal } = options;
  const neutralizer = new Neutralizer();
  const pace = new Pace(options);
  let status: string | null = null;
  try {
    for await (const item of items) {
      await pace.until(item.at);
      if (signal.aborted) return null;
      if (item.kind === 'exit') status = item.status;
      if (item.kind !== 'output') continue;
      const text = neutralizer.write(item.text);
      if (text !== '' && !(await write(text))) return null;
    }
    return status;
  } finally {
    await write(`${neutralizer.undo()}\r\n`).catch(() => false);
  }
}

class Pace {
  private readonly options: ReplayOptions;
  private last: number;
  /** When the next item is to be shown, on the monotonic clock. */
  private due: number;

  constructor(options: ReplayOptions) {
    this.options = options;
    this.last = options.from;
    this.due = options.clock.monotonic();
  }

  /** Resolves when it is time, or the signal is aborted. */
  async until(at: number): Promise<void> {
    if (at <= this.last) return;
    const { speed, idleLimit, clock, signal } = this.options;
    this.due += (Math.min(at - this.last, idleLimit) / speed) * 1000;
    this.last = at;
    const now = clock.monotonic();
    // A terminal that takes its time does not make the rest hurry.
    this.due = Math.max(this.due, now);
    for (let left = this.due - now; left > 0 && !signal.aborted; left = this.due - clock.monotonic()) {
      await sleep(Math.min(left, LONGEST_SLEEP), undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Of a timer, in milliseconds. */
const LONGEST_SLEEP = 3_600_000;
