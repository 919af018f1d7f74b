/** The fleet as `orch top` shows it: a snapshot, its sort orders, and the history of processor load. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { AuditEvent } from '../../contract/audit.js';
import type { Operation } from '../../contract/operations.js';
import type { RolloutRecord } from '../../contract/rollouts.js';
import type { Standing } from '../../contract/standing-names.js';
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

/** Number of newest events. */
const EVENTS = 10;

/** A part of the snapshot that is read by itself. */
export const FLEET_PARTS = ['agents', 'metrics', 'rollouts', 'operations', 'terminals'] as const;
export type FleetPart = (typeof FLEET_PARTS)[number];

export async function readFleet(api: ApiClient, signal: AbortSignal): Promise<FleetSnapshot> {
  const nothing: FleetSnapshot = { agents: [], rollouts: [], operations: [], terminals: null, events: [] };
  const [change, audit] = await Promise.all([
    readParts(api, new Set(FLEET_PARTS), signal),
    api.call('listAuditEvents', { query: { limit: EVENTS }, signal }),
  ]);
  return { ...change(nothing), events: audit.events };
}

/** Reads parts. Returns the change that they make of a snapshot, which may have gone on meanwhile. */
export async function readParts(
  api: ApiClient,
  parts: ReadonlySet<FleetPart>,
  signal: AbortSignal,
): Promise<(fleet: FleetSnapshot) => FleetSnapshot> {
  const only = <T>(part: FleetPart, read: () => Promise<T>): Promise<T | undefined> =>
    parts.has(part) ? read() : Promise.resolve(undefined);
  const [agents, metrics, rollouts, operations, terminals] = await Promise.all([
    only('agents', () => allAgents(api, { signal })),
    only('metrics', () => api.call('listLatestMetrics', { signal })),
    only('rollouts', () => activeRollouts(api, signal)),
    only('operations', () => api.call('listOperations', { query: { status: 'running' }, signal })),
    only('terminals', () => activeTerminals(api, signal)),
  ]);
  const samples = metrics && new Map(metrics.map(({ node_id, sample }) => [node_id, sample]));
  return (fleet) => ({
    ...fleet,
    agents: withAgents(fleet.agents, agents, samples),
    rollouts: rollouts ?? fleet.rollouts,
    operations: operations?.operations ?? fleet.operations,
    terminals: terminals === undefined ? fleet.terminals : terminals,
  });
}

function withAgents(
  known: readonly FleetAgent[],
  agents: readonly Agent[] | undefined,
  samples: ReadonlyMap<string, MetricsSample> | undefined,
): readonly FleetAgent[] {
  const before = new Map(known.map(({ agent, sample }) => [agent.node_id, sample]));
  return (agents ?? known.map(({ agent }) => agent)).map((agent) => ({
    agent,
    sample: (samples ?? before).get(agent.node_id) ?? null,
  }));
}

/** Returns the snapshot with a new event. */
export const withEvent = (fleet: FleetSnapshot, event: AuditEvent): FleetSnapshot => ({
  ...fleet,
  events: [event, ...fleet.events.filter(({ id }) => id !== event.id)].slice(0, EVENTS),
});

/** Returns the parts that an event may have changed. */
export function changedParts({ event_type: type }: Pick<AuditEvent, 'event_type'>): readonly FleetPart[] {
  return CHANGED[type.split('.')[0] ?? ''] ?? [];
}

/** Parts by the first word of an event type. */
const CHANGED: Readonly<Record<string, readonly FleetPart[]>> = {
  agent: ['agents'],
  assignment: ['agents'],
  drift: ['agents'],
  enforcement: ['agents'],
  module: ['agents'],
  rollout: ['agents', 'rollouts', 'operations'],
  state: ['agents', 'rollouts', 'operations'],
  terminal: ['terminals'],
};

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
    if (isFault(error, 'role_forbidden', 'admin_required', 'not_granted')) return null;
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

/** Sort orders, in the order of the columns. */
export const SORTS = ['name', 'status', 'standing', 'cpu', 'memory', 'disk', 'uptime'] as const;
export type Sort = (typeof SORTS)[number];

export const SORT_KEYS: Readonly<Record<string, Sort>> = {
  c: 'cpu',
  m: 'memory',
  d: 'disk',
  u: 'uptime',
  s: 'status',
  x: 'standing',
  n: 'name',
};

export const memoryOf = ({ sample }: FleetAgent): number | null =>
  sample === null ? null : percentOf(sample.memory_used, sample.memory_total);

export const diskOf = ({ sample }: FleetAgent): number | null =>
  sample === null ? null : percentOf(sample.disk_used, sample.disk_total);

/**
 * Sorts agents, problems first: largest share, shortest uptime, not connected. Agents without the value come last.
 * @param isReversed true for problems last; agents without the value stay last
 */
export function sortFleet(agents: readonly FleetAgent[], sort: Sort, isReversed = false): readonly FleetAgent[] {
  const sign = isReversed ? -1 : 1;
  const rank = RANKS[sort];
  const names = new Map(agents.map((one) => [one, agentName(one.agent)]));
  const byName = (a: FleetAgent, b: FleetAgent) => ((names.get(a) ?? '') < (names.get(b) ?? '') ? -1 : 1);
  return agents.toSorted((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    if (left === right) return sort === 'name' ? sign * byName(a, b) : byName(a, b);
    if (left === null || right === null) return left === null ? 1 : -1;
    return sign * (right - left);
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
  standing: ({ agent: { standing, automation_stopped: stopped } }) =>
    standing === null ? null : NEED[standing] + (stopped === null ? 0 : 10),
  name: () => 0,
};

/** How much a standing needs attention. */
const NEED: Readonly<Record<Standing, number>> = {
  drifted: 5,
  behind: 4,
  never_applied: 3,
  on_trial: 2,
  in_sync: 1,
  unmanaged: 0,
};

/** Number of kept measurements per agent. */
const KEPT = 60;

/** The last measurements of an agent, oldest first. */
interface Track {
  /** Unix seconds of the newest. */
  readonly at: number;
  /** Processor load in percent. */
  readonly values: readonly (number | null)[];
}

/** Processor load of each agent, by node ID. */
export type ProcessorHistory = ReadonlyMap<string, Track>;

/** Returns the history with the measurements of a snapshot. Ignores known ones, and drops agents that are gone. */
export function addMeasurements(history: ProcessorHistory, { agents }: FleetSnapshot): ProcessorHistory {
  const tracks = agents.flatMap(({ agent, sample }): readonly (readonly [string, Track])[] => {
    const known = history.get(agent.node_id);
    if (sample === null || known?.at === sample.collected_at) return known ? [[agent.node_id, known]] : [];
    const values = [...(known?.values ?? []), sample.cpu_usage].slice(-KEPT);
    return [[agent.node_id, { at: sample.collected_at, values }]];
  });
  return new Map(tracks);
}
