/** Whether an operator may store a module: it has to be theirs to apply wherever the module could come, now or later. */
import type { Rights } from '../../core/rights.js';
import type { Queryable } from '../../database/schema.js';
import { coversModule } from '../assignments/assignments.js';
import { agentsOfOpenRollouts } from '../rollouts/rollout-store.js';
import type { Followers } from './followers.js';

/**
 * Returns true if the operator may store modules, and apply to every machine that an assignment of this one can match, that follows
 * it, or to which an open rollout brings it.
 */
export async function mayStore(db: Queryable, followers: Followers, rights: Rights, module: string): Promise<boolean> {
  if (!rights.has('modules')) return false;
  if (!rights.isLimited) return true;
  if (!(await coversModule(db, rights, module))) return false;
  const fleet = await followers.read(db);
  const reach = await followers.reach(db, module, fleet);
  const nodeIds = [...reach.followers.map(({ agent }) => agent.node_id), ...(await agentsOfOpenRollouts(db, module))];
  return nodeIds.every((nodeId) => rights.may('apply', { nodeId, tags: fleet.tags.get(nodeId) ?? {} }));
}
