/** Checks that the operator is active and that the agent is approved when a request arrives. */

import type { Right } from '../../src/contract/rights.js';
import { Fault } from '../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../src/kernel/ids.js';
import { findActiveOperator, rightsOfRow } from '../auth/operator-store.js';
import type { Queryable } from '../database/schema.js';
import { findAgent } from '../fleet/agent-store.js';
import { tagsOf } from '../fleet/tag-store.js';

export const isActiveOperator = async (db: Queryable, operatorId: string): Promise<boolean> =>
  (await findActiveOperator(db, operatorId)) !== null;

/** Returns true if the operator is active and holds the right on the machine now. */
export async function mayUse(db: Queryable, operatorId: string, right: Right, nodeId: string): Promise<boolean> {
  const row = await findActiveOperator(db, operatorId);
  if (row === null) return false;
  const rights = rightsOfRow(row);
  if (!rights.isLimited) return rights.has(right);
  return rights.may(right, { nodeId, tags: await tagsOf(db, nodeId) });
}

/** Throws `unauthenticated` when the operator was removed, which may happen while the request is in flight. */
export async function requireOperator(db: Queryable, operatorId: string): Promise<void> {
  if (!(await isActiveOperator(db, operatorId))) throw operatorRemoved();
}

export const operatorRemoved = (): Fault =>
  new Fault('unauthenticated', 'the operator was removed', { hint: 'ask an admin to be added again' });

interface ApprovedAgent {
  readonly nodeId: NodeId;
  readonly name: string | null;
}

/** Returns an approved agent. Throws `agent_not_found`, `agent_not_approved`. */
export async function approvedAgent(db: Queryable, nodeId: string): Promise<ApprovedAgent> {
  const row = isNodeId(nodeId) ? await findAgent(db, nodeId) : null;
  if (row === null || !isNodeId(row.node_id)) {
    throw new Fault('agent_not_found', `there is no agent "${nodeId}"`, {
      hint: 'see what there is: orch agents list',
    });
  }
  if (row.status === 'approved') return { nodeId: row.node_id, name: row.name };
  throw new Fault('agent_not_approved', `agent ${nodeId} is ${row.status}, not approved`, {
    hint: `approve it first: orch agents approve ${nodeId} --name NAME`,
    data: { status: row.status },
  });
}
