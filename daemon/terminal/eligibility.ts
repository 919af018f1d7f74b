/** Checks that the operator is active and that the agent is approved when a request arrives. */

import type { Right } from '../../src/contract/rights.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../src/kernel/ids.js';
import type { TerminalMode } from '../../src/terminal/notes.js';
import { rightsAt } from '../auth/operator-store.js';
import type { Queryable } from '../database/schema.js';
import { findAgent } from '../fleet/agent-store.js';
import { tagsOf } from '../fleet/tag-store.js';
import type { SessionFacts } from './session/session-core.js';

/** Returns true if the operator is active and holds the right on the machine now. */
export async function mayUse(
  { db, clock }: { readonly db: Queryable; readonly clock: Pick<Clock, 'now'> },
  operatorId: string,
  right: Right,
  nodeId: string,
): Promise<boolean> {
  const rights = await rightsAt(db, operatorId, clock.now());
  if (!rights.isLimited) return rights.has(right);
  return rights.may(right, { nodeId, tags: await tagsOf(db, nodeId) });
}

/** Returns the right to a session of one's own, or, for a session of another operator, to watch it or to type in it. */
export function rightTo({ kind, operatorId: owner }: Owned, operatorId: string, mode: TerminalMode): Right {
  if (operatorId === owner) return kind === 'shell' ? 'terminal' : 'exec';
  return mode === 'write' ? 'take-pen' : 'watch';
}

type Owned = Pick<SessionFacts, 'kind' | 'operatorId'>;

/** The fault of an operator who was removed, or lost the right, while the request was in flight. */
export const operatorRemoved = (): Fault =>
  new Fault('unauthenticated', 'you were removed, or lost the right to this', { hint: 'ask an admin' });

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
