/** The orders in which `orch top` shows agents, each behind a key. */

import { percentOf } from '../commands/metrics-view.js';
import { agentName } from '../format.js';
import type { FleetAgent } from './fleet-snapshot.js';

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

/** Trouble first: the largest share, the shortest uptime, who is not there; whoever told nothing comes last. */
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

/** The highest comes first. */
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
