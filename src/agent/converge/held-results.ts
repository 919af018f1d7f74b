/** Keeps the results of wanted resources until the removals of the run are done. */
import type { RunItem } from '../../wire/messages.js';
import { NO_NOTES, type Notes } from './ledger.js';
import type { OnResults } from './run.js';

export class HeldResults {
  private readonly held = new Map<number, RunItem>();
  /** The order in which the results occurred, by the positions of the resources. */
  private readonly places = new Map<number, number>();
  private readonly passOn: OnResults;
  private readonly wanted: number;

  /** @param wanted number of wanted resources, which come first in the run */
  constructor(wanted: number, passOn: OnResults) {
    this.wanted = wanted;
    this.passOn = passOn;
  }

  /** Passes on all but successes of wanted resources. The ledger's entries do not wait, so that a crash repeats nothing. */
  readonly take = async (items: readonly RunItem[], notes: Notes): Promise<void> => {
    for (const { index } of items) this.places.set(index, this.places.size);
    const passed = items.filter((item) => !this.isHeld(item));
    for (const item of items) if (this.isHeld(item)) this.held.set(item.index, item);
    await this.passOn(passed, notes);
  };

  /** Replaces held results by what became of the resources since. */
  replace(items: readonly RunItem[]): void {
    for (const item of items) {
      const before = this.held.get(item.index);
      if (before !== undefined) this.held.set(item.index, merged(before, item));
    }
  }

  /** Passes the held results on. */
  async release(): Promise<void> {
    const items = [...this.held.values()];
    this.held.clear();
    if (items.length > 0) await this.passOn(items, NO_NOTES);
  }

  /** Returns results in the order in which they occurred, which is not that in which they were passed on. */
  inOrder(items: readonly RunItem[]): readonly RunItem[] {
    const placeOf = ({ index }: RunItem) => this.places.get(index) ?? 0;
    return [...items].sort((a, b) => placeOf(a) - placeOf(b));
  }

  private isHeld({ index, result }: RunItem): boolean {
    return index < this.wanted && (result.status === 'unchanged' || result.status === 'changed');
  }
}

/** Returns the result of two passes over one resource. */
function merged(before: RunItem, after: RunItem): RunItem {
  if (after.result.status === 'unchanged') return before;
  const { existed } = before;
  const { result } = after;
  const duration_ms = before.result.duration_ms + result.duration_ms;
  if (result.status !== 'changed') return { ...after, existed, result: { ...result, duration_ms } };
  const reason = 'a removal of this apply had changed it, so it was put right again';
  return { ...after, existed, result: { ...result, reason, duration_ms } };
}
