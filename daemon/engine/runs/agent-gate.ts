/** Checks that an agent exists, is approved, connected and free before an operation starts on it. */
import { Fault } from '../../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../../src/kernel/ids.js';
import type { Core } from '../../core/core.js';
import type { Queryable } from '../../database/schema.js';
import { type AgentRow, findAgent } from '../../fleet/agent-store.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import { notConnected } from '../../fleet/not-connected.js';
import { type AgentInputs, readAgentInputs } from '../agent-inputs.js';

interface LateReports {
  /** Returns an operation that has ended, and of which the agent has not reported everything. */
  late(nodeId: NodeId): { readonly id: string } | undefined;
}

interface AgentGateOptions extends Pick<Core, 'db'> {
  readonly link: AgentLink;
  readonly live: LateReports;
}

export class AgentGate {
  private readonly options: AgentGateOptions;

  constructor(options: AgentGateOptions) {
    this.options = options;
  }

  /**
   * Returns the agent if it is approved, connected and owes no report of an earlier operation. Throws `agent_not_found`,
   * `agent_not_approved`, `agent_not_connected` or `operation_in_progress`.
   */
  async pass(nodeId: string): Promise<AgentWithInputs> {
    const { db, link, live } = this.options;
    const agent = refuseUnapproved(await agentWithInputs(db, nodeId));
    if (!link.isConnected(agent.nodeId)) {
      throw notConnected(agentLabel(agent), link.holdOf(agent.nodeId));
    }
    const late = live.late(agent.nodeId);
    if (late === undefined) return agent;
    throw new Fault(
      'operation_in_progress',
      `agent ${agentLabel(agent)} still reports what it did in operation ${late.id}`,
      {
        hint: `wait for it: orch ops watch ${late.id}`,
        data: { operation_id: late.id },
      },
    );
  }
}

/** An agent that exists, with its row. */
export interface KnownAgent {
  readonly nodeId: NodeId;
  readonly row: AgentRow;
}

/** An agent with what its desired set depends on. */
export interface AgentWithInputs extends KnownAgent {
  readonly inputs: AgentInputs;
}

/** Returns the agent. Throws `agent_not_found`. */
export async function knownAgent(db: Queryable, nodeId: string): Promise<KnownAgent> {
  const row = isNodeId(nodeId) ? await findAgent(db, nodeId) : null;
  if (row !== null && isNodeId(row.node_id)) return { nodeId: row.node_id, row };
  throw agentNotFound(nodeId);
}

/** Returns the agent with its inputs. Throws `agent_not_found`. */
export async function agentWithInputs(db: Queryable, nodeId: string): Promise<AgentWithInputs> {
  const [inputs] = isNodeId(nodeId) ? await readAgentInputs(db, [nodeId]) : [];
  if (inputs !== undefined && isNodeId(inputs.row.node_id))
    return { nodeId: inputs.row.node_id, row: inputs.row, inputs };
  throw agentNotFound(nodeId);
}

export const agentNotFound = (nodeId: string): Fault =>
  new Fault('agent_not_found', `there is no agent "${nodeId}"`, { hint: 'see what there is: orch agents list' });

/** Returns the agent if it is approved. Throws `agent_not_found` or `agent_not_approved`. */
export async function approvedAgent(db: Queryable, nodeId: string): Promise<KnownAgent> {
  return refuseUnapproved(await knownAgent(db, nodeId));
}

/** Returns the agent. Throws `agent_not_approved`. */
export function refuseUnapproved<Agent extends KnownAgent>(agent: Agent): Agent {
  const { nodeId, row } = agent;
  if (row.status === 'approved') return agent;
  throw new Fault('agent_not_approved', `agent ${nodeId} is ${row.status}, not approved`, {
    hint: `approve it first: orch agents approve ${nodeId} --name NAME`,
    data: { status: row.status },
  });
}

/** Returns the name of the agent for messages, or its node ID if it has none. */
export const agentLabel = ({ row }: KnownAgent): string => row.name ?? row.node_id;
