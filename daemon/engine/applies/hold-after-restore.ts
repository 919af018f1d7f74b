/** Keeps a store that may be behind its machines from changing them before an operator has looked. */
import type { EpochReset } from '../../../src/programs/store.js';
import type { Queryable } from '../../database/schema.js';
import { holdAssignments } from '../assignments/assignment-store.js';
import { haltOpenRollouts } from '../rollouts/rollout-store.js';

type Held = Pick<EpochReset, 'rollouts' | 'assignments'>;

/**
 * Halts all rollouts that are under way, and the automatic applies of all assignments until `orch assignments resume`.
 * @param revision text that was never used before as the revision of the assignments
 */
export async function holdUntilResumed(
  tx: Queryable,
  { reason, revision }: { readonly reason: string; readonly revision: string },
): Promise<Held> {
  return {
    rollouts: await haltOpenRollouts(tx, reason),
    assignments: await holdAssignments(tx, reason, revision),
  };
}
