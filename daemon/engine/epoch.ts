/** The rising pair of numbers that every apply carries: an agent refuses one that is not above the highest it has seen. */
import { getMeta, setMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';

interface EpochNumber {
  /** Grows when the store was put back to an earlier state. */
  readonly epoch: number;
  readonly generation: number;
}

const FIRST: EpochNumber = { epoch: 1, generation: 0 };
/** Where a store keeps the number. */
export const EPOCH_KEY = 'engine.generation';

/** The epoch that the store is in. */
export const storedEpoch = async (db: Queryable): Promise<number> => numberOf(await getMeta(db, EPOCH_KEY)).epoch;

interface BeginEpochOptions {
  /** Unix milliseconds. */
  readonly now: number;
  /** Epochs of other stores that had the same agents. */
  readonly others: readonly number[];
}

/**
 * Since when the store was not put back, in Unix milliseconds, or somewhat later; 0 when it never was. As `beginEpoch` has it,
 * and grown by one with each apply since.
 */
export const epochBegun = async (db: Queryable): Promise<number> => {
  const { epoch, generation } = numberOf(await getMeta(db, EPOCH_KEY));
  return epoch === FIRST.epoch ? 0 : generation;
};

/**
 * Puts the store into an epoch above its own and the others; returns that. Its generations go on from the time: when one
 * backup is put back twice, on hosts that know nothing of each other, the second one still is above the first.
 */
export async function beginEpoch(db: Queryable, { now, others }: BeginEpochOptions): Promise<number> {
  const epoch = Math.max(await storedEpoch(db), ...others) + 1;
  await setMeta(db, EPOCH_KEY, `${epoch}.${now}`);
  return epoch;
}

/** The epoch in what the store keeps under `EPOCH_KEY`. */
export const epochOf = (text: string | null): number => numberOf(text).epoch;

function numberOf(text: string | null): EpochNumber {
  const [epoch, generation] = (text ?? '').split('.').map(Number);
  return epoch && generation !== undefined ? { epoch, generation } : FIRST;
}

export class Epoch {
  /** Where the store keeps the highest number, as `epoch.generation`. */
  readonly key = EPOCH_KEY;
  private last = FIRST;

  async load(db: Queryable): Promise<void> {
    this.last = numberOf(await getMeta(db, this.key));
  }

  /** The epoch that the store is in. */
  get current(): number {
    return this.last.epoch;
  }

  /** The next number. One that is not used is lost, which does no harm. */
  next(): EpochNumber {
    this.last = { epoch: this.last.epoch, generation: this.last.generation + 1 };
    return this.last;
  }

  text({ epoch, generation }: EpochNumber): string {
    return `${epoch}.${generation}`;
  }
}
