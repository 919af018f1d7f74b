/** Order of work: one after another for each agent, or a number of pieces at the same time. */

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
