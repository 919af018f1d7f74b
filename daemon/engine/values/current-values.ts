/** The values of inputs that are stored, kept as long as their revision stays the same. */
import type { GivenValues } from '../../../src/language/inputs/choose.js';
import { type SetValues, valuesOfSets, withAssignments } from '../../../src/language/inputs/fleet-values.js';
import { getMeta } from '../../database/meta.js';
import type { Queryable } from '../../database/schema.js';
import type { CurrentAssignment } from '../assignments/assignment-store.js';
import { listValueSets, VALUES_REVISION } from './value-store.js';

interface Held extends SetValues {
  readonly revision: string | null;
}

export class CurrentValues {
  private held: Held | null = null;

  /**
   * Returns the values of an agent: those of value sets, and above them those of the assignments that match it.
   * @param revision that of all value sets, which the caller has read
   */
  async of(
    db: Queryable,
    { values: revision }: { readonly values: string | null },
    assignments: readonly CurrentAssignment[],
  ): Promise<GivenValues> {
    return withAssignments(await this.at(db, revision), assignments);
  }

  /** Returns the values of value sets. */
  async all(db: Queryable): Promise<SetValues> {
    return this.at(db, await getMeta(db, VALUES_REVISION));
  }

  private async at(db: Queryable, revision: string | null): Promise<SetValues> {
    if (this.held?.revision === revision) return this.held;
    const made = { revision, ...valuesOfSets(revision === null ? [] : await listValueSets(db)) };
    this.held = made;
    return made;
  }
}
