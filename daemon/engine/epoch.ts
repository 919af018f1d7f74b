/** The rising pair of numbers that every apply carries: an agent refuses a pair that is not above the highest it has seen. */
import { getMeta, setMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';

interface EpochNumber {
  /** Incremented when the store is restored to an earlier state. */
  readonly epoch: number;
  readonly generation: number;
}

const FIRST: EpochNumber = { epoch: 1, generation: 0 };
/** Meta key of the highest reserved number, as `epoch.generation`. */
export const EPOCH_KEY = 'engine.generation';

/** Numbers reserved at a time: one apply in so many writes to `meta`. A restart skips the rest. */
const RESERVED = 100;

/** Returns the current epoch of the store. */
export const storedEpoch = async (db: Queryable): Promise<number> => numberOf(await getMeta(db, EPOCH_KEY)).epoch;

interface BeginEpochOptions {
  /** Unix milliseconds. */
  readonly now: number;
  /** Epochs of other stores that had the same agents. */
  readonly others: readonly number[];
}

/**
 * Returns the time of the last restore in Unix milliseconds, or 0 if the store was never restored. The result is later than the
 * restore by one millisecond for each generation reserved since: it is the generation that `beginEpoch` started.
 */
export const epochBegun = async (db: Queryable): Promise<number> => {
  const { epoch, generation } = numberOf(await getMeta(db, EPOCH_KEY));
  return epoch === FIRST.epoch ? 0 : generation;
};

/**
 * Moves the store to an epoch above its own and `others`; returns the new epoch. Its generations start at the current time. If
 * one backup is restored twice, on hosts that do not know each other, the later restore still has the higher number.
 */
export async function beginEpoch(db: Queryable, { now, others }: BeginEpochOptions): Promise<number> {
  const epoch = Math.max(await storedEpoch(db), ...others) + 1;
  await setMeta(db, EPOCH_KEY, `${epoch}.${now}`);
  return epoch;
}

/** Returns the epoch in a value stored under `EPOCH_KEY`. */
export const epochOf = (text: string | null): number => numberOf(text).epoch;

function numberOf(text: string | null): EpochNumber {
  const [epoch, generation] = (text ?? '').split('.').map(Number);
  return epoch && generation !== undefined ? { epoch, generation } : FIRST;
}

export class Epoch {
  private last = FIRST;
  /** Highest generation that the store has reserved. */
  private reserved = FIRST.generation;

  async load(db: Queryable): Promise<void> {
    this.last = numberOf(await getMeta(db, EPOCH_KEY));
    this.reserved = this.last.generation;
  }

  /** The current epoch of the store. */
  get current(): number {
    return this.last.epoch;
  }

  /** Returns the next number. Skipping a number is harmless. */
  next(): EpochNumber {
    this.last = { epoch: this.last.epoch, generation: this.last.generation + 1 };
    return this.last;
  }

  /**
   * Reserves a number in the transaction that stores its apply, so that no later process returns it again. Call the result after
   * the commit.
   */
  async reserve(tx: Queryable, { epoch, generation }: EpochNumber): Promise<() => void> {
    if (generation <= this.reserved) return () => undefined;
    const end = generation + RESERVED;
    await setMeta(tx, EPOCH_KEY, `${epoch}.${end}`);
    return () => {
      this.reserved = Math.max(this.reserved, end);
    };
  }
}
