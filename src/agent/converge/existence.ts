/** Resources that existed before an apply changed anything, so that nothing that the apply brings counts as found. */
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
   * Returns the resources to look at before these changes: those that the changes may bring. A file may bring a unit, and packages
   * and scripts may bring anything. A kind with a memo has succeeded here before, so that its resource is managed already.
   * @param seen positions of resources whose existence the run knows
   */
  openBefore(pendings: readonly Pending[], seen: ReadonlySet<number>): readonly Target[] {
    const forAll = pendings.some(({ target }) => addsOthers(target));
    if (this.prepared.forAll || (this.prepared.forSome && !forAll)) return [];
    this.prepared.forSome = true;
    this.prepared.forAll = forAll;
    return this.desired.filter(
      ({ index, kind, key }) =>
        kind !== null &&
        !seen.has(index) &&
        !this.known.has(index) &&
        (forAll || kind.family !== 'path') &&
        (kind.memo === undefined || this.ledger.memo(key) === null),
    );
  }

  note(index: number, exists: boolean): void {
    if (!this.known.has(index)) this.known.set(index, exists);
  }

  /** Notes that what exists is orch's own. */
  noteOwn({ index }: Target): void {
    this.known.set(index, false);
  }

  /** True if the resource existed before the apply, and is not what an earlier apply had begun to create. */
  before({ index, wasBegun }: Target, isThere: boolean): boolean {
    return (this.known.get(index) ?? isThere) && !wasBegun;
  }
}
