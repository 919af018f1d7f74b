/**
 * What existed before an apply changed anything: nothing that the apply brings counts as found, and what goes with one of its
 * changes counts as removed.
 */
import type { Pending } from './examined.js';
import type { Ledger } from './ledger.js';
import { addsOthers } from './resource-progress.js';
import type { Target } from './target.js';

export class Existence {
  private readonly desired: readonly Target[];
  private readonly ledger: Ledger;
  private readonly known = new Map<number, boolean>();
  /** True when the change of a path or group was announced, and when one was that may bring anything. */
  private readonly prepared = { forSome: false, forAll: false };

  constructor(desired: readonly Target[], ledger: Ledger) {
    this.desired = desired;
    this.ledger = ledger;
  }

  /**
   * Returns what to look at before these changes: the resources that the changes may bring, and the removals that they may do. A file may bring a unit, and packages
   * and scripts may bring anything. A kind with a memo has succeeded here before, so that its resource is managed already.
   * @param seen positions of resources whose existence the run knows
   */
  openBefore(
    pendings: readonly Pending[],
    removals: readonly Target[],
    seen: ReadonlySet<number>,
  ): { readonly wanted: readonly Target[]; readonly removed: readonly Target[] } {
    const forAll = pendings.some(({ target }) => addsOthers(target));
    if (this.prepared.forAll || (this.prepared.forSome && !forAll)) return { wanted: [], removed: [] };
    this.prepared.forSome = true;
    this.prepared.forAll = forAll;
    const isOpen = ({ index, kind }: Target) => kind !== null && !seen.has(index) && !this.known.has(index);
    const wanted = this.desired.filter(
      (target) =>
        isOpen(target) &&
        (forAll || target.kind?.family !== 'path') &&
        (target.kind?.memo === undefined || this.ledger.memo(target.key) === null),
    );
    return { wanted, removed: forAll ? removals.filter(isOpen) : [] };
  }

  note(index: number, exists: boolean): void {
    if (!this.known.has(index)) this.known.set(index, exists);
  }

  /** Notes that what exists is orch's own. */
  noteOwn({ index }: Target): void {
    this.known.set(index, false);
  }

  /** True if it is known to have existed before the first change that might bring or remove it. */
  wasThere({ index }: Target): boolean {
    return this.known.get(index) === true;
  }

  /** True if the resource existed before the apply, and is not what an earlier apply had begun to create. */
  before({ index, wasBegun }: Target, isThere: boolean): boolean {
    return (this.known.get(index) ?? isThere) && !wasBegun;
  }
}
