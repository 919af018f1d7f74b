/** The fleet at one moment, as `orch top` shows it. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { AuditEvent } from '../../contract/audit.js';
import type { Operation } from '../../contract/operations.js';
import type { TerminalSession } from '../../contract/terminal.js';
import { isFault } from '../../kernel/fault.js';
import type { MetricsSample } from '../../kernel/metrics-sample.js';
import { allAgents } from '../nodes/agent-pages.js';

export interface FleetAgent {
  readonly agent: Agent;
  /** What it measured last; null when nothing. */
  readonly sample: MetricsSample | null;
}

export interface FleetSnapshot {
  readonly agents: readonly FleetAgent[];
  /** Those that run now. */
  readonly operations: readonly Operation[];
  /** Those that are open; null for who may not know. */
  readonly terminals: readonly TerminalSession[] | null;
  /** The newest first. */
  readonly events: readonly AuditEvent[];
}

const EVENTS = 10;

export async function readFleet(api: ApiClient, signal: AbortSignal): Promise<FleetSnapshot> {
  const [agents, metrics, operations, terminals, audit] = await Promise.all([
    allAgents(api, { signal }),
    api.call('listLatestMetrics', { signal }),
    api.call('listOperations', { query: { status: 'running' }, signal }),
    activeTerminals(api, signal),
    api.call('listAuditEvents', { query: { limit: EVENTS }, signal }),
  ]);
  const samples = new Map(metrics.map(({ node_id, sample }) => [node_id, sample]));
  return {
    agents: agents.map((agent) => ({ agent, sample: samples.get(agent.node_id) ?? null })),
    operations: operations.operations,
    terminals,
    events: audit.events,
  };
}

async function activeTerminals(api: ApiClient, signal: AbortSignal): Promise<readonly TerminalSession[] | null> {
  try {
    return await api.call('listTerminals', { query: { status: 'active' }, signal });
  } catch (error) {
    if (isFault(error, 'role_forbidden', 'admin_required')) return null;
    throw error;
  }
}

/** For programs. */
export const fleetBody = ({ agents, operations, terminals, events }: FleetSnapshot): unknown => ({
  agents: agents.map(({ agent, sample }) => ({
    node_id: agent.node_id,
    name: agent.name,
    status: agent.status,
    connected: agent.connected,
    sample,
  })),
  operations,
  terminals,
  events,
});
