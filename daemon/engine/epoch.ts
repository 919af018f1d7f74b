/** The rising pair of numbers that every apply carries: an agent refuses one that is not above the highest it has seen. */
import { getMeta } from '../store/meta.js';
import type { Queryable } from '../store/queryable.js';

export interface EpochNumber {
  /** Grows when the store was put back to an earlier state. */
  readonly epoch: number;
  readonly generation: number;
}

const FIRST: EpochNumber = { epoch: 1, generation: 0 };
const KEY = 'engine.generation';

/** The epoch that the store is in. */
export const storedEpoch = async (db: Queryable): Promise<number> => numberOf(await getMeta(db, KEY)).epoch;

function numberOf(text: string | null): EpochNumber {
  const [epoch, generation] = (text ?? '').split('.').map(Number);
  return epoch && generation !== undefined ? { epoch, generation } : FIRST;
}

export class Epoch {
  /** Where the store keeps the highest number, as `epoch.generation`. */
  readonly key = KEY;
  private last = FIRST;

  async load(db: Queryable): Promise<void> {
    this.last = numberOf(await getMeta(db, this.key));
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
