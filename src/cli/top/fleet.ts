/** The fleet as `orch top` shows it: a snapshot, its sort orders, and the history of processor load. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { AuditEvent } from '../../contract/audit.js';
import type { Operation } from '../../contract/operations.js';
import type { RolloutRecord } from '../../contract/rollouts.js';
import type { TerminalSession } from '../../contract/terminal.js';
import { isFault } from '../../kernel/fault.js';
import type { MetricsSample } from '../../kernel/schema.js';
import { agentName } from '../format.js';
import { allAgents } from '../list-pages.js';
import { percentOf } from '../render/chart.js';

export interface FleetAgent {
  readonly agent: Agent;
  /** Latest measurement; null if there is none. */
  readonly sample: MetricsSample | null;
}

export interface FleetSnapshot {
  readonly agents: readonly FleetAgent[];
  /** Rollouts that are running or being reverted, newest first. */
  readonly rollouts: readonly RolloutRecord[];
  /** Running operations. */
  readonly operations: readonly Operation[];
  /** Open sessions; null if the role does not permit it. */
  readonly terminals: readonly TerminalSession[] | null;
  /** Newest audit events, newest first. */
  readonly events: readonly AuditEvent[];
}

const EVENTS = 10;

export async function readFleet(api: ApiClient, signal: AbortSignal): Promise<FleetSnapshot> {
  const [agents, metrics, rollouts, operations, terminals, audit] = await Promise.all([
    allAgents(api, { signal }),
    api.call('listLatestMetrics', { signal }),
    activeRollouts(api, signal),
    api.call('listOperations', { query: { status: 'running' }, signal }),
    activeTerminals(api, signal),
    api.call('listAuditEvents', { query: { limit: EVENTS }, signal }),
  ]);
  const samples = new Map(metrics.map(({ node_id, sample }) => [node_id, sample]));
  return {
    agents: agents.map((agent) => ({ agent, sample: samples.get(agent.node_id) ?? null })),
    rollouts,
    operations: operations.operations,
    terminals,
    events: audit.events,
  };
}

/** Returns none if the orchestrator is older than stored rollouts. */
async function activeRollouts(api: ApiClient, signal: AbortSignal): Promise<readonly RolloutRecord[]> {
  try {
    const lists = await Promise.all(
      (['running', 'reverting'] as const).map((state) => api.call('listRollouts', { query: { state }, signal })),
    );
    const all = lists.flatMap(({ rollouts }) => rollouts);
    return all.toSorted((a, b) => (a.rollout_id < b.rollout_id ? 1 : -1));
  } catch (error) {
    if (isFault(error, 'not_found')) return [];
    throw error;
  }
}

async function activeTerminals(api: ApiClient, signal: AbortSignal): Promise<readonly TerminalSession[] | null> {
  try {
    return await api.call('listTerminals', { query: { status: 'active' }, signal });
  } catch (error) {
    if (isFault(error, 'role_forbidden', 'admin_required')) return null;
    throw error;
  }
}

/** Returns the JSON body of a snapshot. */
export const fleetBody = ({ agents, rollouts, operations, terminals, events }: FleetSnapshot): unknown => ({
  agents: agents.map(({ agent, sample }) => ({
    node_id: agent.node_id,
    name: agent.name,
    status: agent.status,
    connected: agent.connected,
    sample,
  })),
  rollouts,
  operations,
  terminals,
  events,
});

export const SORTS = ['cpu', 'memory', 'disk', 'uptime', 'status', 'name'] as const;
export type Sort = (typeof SORTS)[number];

export const SORT_KEYS: Readonly<Record<string, Sort>> = {
  c: 'cpu',
  m: 'memory',
  d: 'disk',
  u: 'uptime',
  s: 'status',
  n: 'name',
};

export const memoryOf = ({ sample }: FleetAgent): number | null =>
  sample === null ? null : percentOf(sample.memory_used, sample.memory_total);

export const diskOf = ({ sample }: FleetAgent): number | null =>
  sample === null ? null : percentOf(sample.disk_used, sample.disk_total);

/** Sorts agents, problems first: largest share, shortest uptime, not connected. Agents without the value come last. */
export function sortFleet(agents: readonly FleetAgent[], sort: Sort): readonly FleetAgent[] {
  const rank = RANKS[sort];
  const names = new Map(agents.map((one) => [one, agentName(one.agent)]));
  const byName = (a: FleetAgent, b: FleetAgent) => ((names.get(a) ?? '') < (names.get(b) ?? '') ? -1 : 1);
  return agents.toSorted((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    if (left === right) return byName(a, b);
    if (left === null || right === null) return left === null ? 1 : -1;
    return right - left;
  });
}

/** Rank of an agent in each order, highest first. */
const RANKS: Readonly<Record<Sort, (one: FleetAgent) => number | null>> = {
  cpu: ({ sample }) => sample?.cpu_usage ?? null,
  memory: memoryOf,
  disk: diskOf,
  uptime: ({ sample }) => (sample?.uptime == null ? null : -sample.uptime),
  status: ({ agent }) => {
    if (agent.status === 'approved') return agent.connected ? 0 : 2;
    return agent.status === 'pending' ? 3 : 1;
  },
  name: () => 0,
};

/** Number of kept measurements per agent. */
const KEPT = 60;

export class ProcessorHistory {
  private readonly byNode = new Map<string, { at: number; readonly values: (number | null)[] }>();

  /** Adds the measurements of a snapshot. Ignores known ones. */
  add({ agents }: FleetSnapshot): void {
    for (const { agent, sample } of agents) {
      if (sample === null) continue;
      const known = this.byNode.get(agent.node_id) ?? { at: 0, values: [] };
      if (known.at === sample.collected_at) continue;
      known.at = sample.collected_at;
      known.values.push(sample.cpu_usage);
      if (known.values.length > KEPT) known.values.shift();
      this.byNode.set(agent.node_id, known);
    }
  }

  /** Returns the processor load of an agent in percent, newest last. */
  of(nodeId: string): readonly (number | null)[] {
    return this.byNode.get(nodeId)?.values ?? [];
  }
}
