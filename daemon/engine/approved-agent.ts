/** The agent that something is to be done on. */
import { Fault } from '../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../src/kernel/ids.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, findAgent } from '../fleet/agent-store.js';

export interface KnownAgent {
  readonly nodeId: NodeId;
  readonly row: AgentRow;
}

/** Throws `agent_not_found`. */
export async function knownAgent(db: Queryable, nodeId: string): Promise<KnownAgent> {
  const row = isNodeId(nodeId) ? await findAgent(db, nodeId) : null;
  if (row !== null && isNodeId(row.node_id)) return { nodeId: row.node_id, row };
  throw new Fault('agent_not_found', `there is no agent "${nodeId}"`, { hint: 'see what there is: orch agents list' });
}

/** Throws `agent_not_found` or `agent_not_approved`. */
export async function approvedAgent(db: Queryable, nodeId: string): Promise<KnownAgent> {
  const agent = await knownAgent(db, nodeId);
  if (agent.row.status === 'approved') return agent;
  throw new Fault('agent_not_approved', `agent ${nodeId} is ${agent.row.status}, not approved`, {
    hint: `approve it first: orch agents approve ${nodeId} --name NAME`,
    data: { status: agent.row.status },
  });
}

/** The agent as people know it. */
export const agentLabel = ({ row }: KnownAgent): string => row.name ?? row.node_id;
