/** Serialises work per agent, and splits long computations into slices of the event loop. */
import { setImmediate } from 'node:timers/promises';
import type { Steps } from '../../src/kernel/steps.js';

/** One queue per agent: work on the same agent runs sequentially, and agents do not wait for each other. */
export class Lanes {
  private readonly tails = new Map<string, Promise<void>>();

  /** Runs `work` after all earlier work in this lane has settled. */
  enter<T>(lane: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(lane);
    const result = before === undefined ? work() : before.then(work);
    const tail: Promise<void> = result.then(
      () => this.leave(lane, tail),
      () => this.leave(lane, tail),
    );
    this.tails.set(lane, tail);
    return result;
  }

  private leave(lane: string, tail: Promise<void>): void {
    if (this.tails.get(lane) === tail) this.tails.delete(lane);
  }
}

/** Limits how many pieces of work are done at the same time; the others wait, first come, first served. */
export class Places {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(count: number) {
    this.free = count;
  }

  /** Runs `work` once there is a place. */
  async enter<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((admit) => this.waiting.push(admit));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }
}

/** Works through the items in order, `count` of them at a time. Rejects at the first that rejects; the others go on. */
export async function inWorkers<T>(
  items: readonly T[],
  count: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const workRest = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, workRest));
}

/** Maximum time between two turns of the event loop, in milliseconds, if no single step takes longer. */
const SLICE_MS = 4;

/** Runs the steps to their end and yields to the event loop after each slice. Must not be called within a transaction. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let began = performance.now(); ; ) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() - began < SLICE_MS) continue;
    await setImmediate();
    began = performance.now();
  }
}
