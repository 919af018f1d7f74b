/** docs/reference/metrics.md names every metric of the orchestrator with its type and labels, and no other. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { insertOperation } from '../../daemon/engine/operations/operation-store.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { OwnMetrics } from '../../daemon/metrics/own-metrics.js';
import { agentRow, node, openStore, operationRow } from '../support/database.js';

const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');

const documented = new Map(
  [...page.matchAll(/^\| `(\w+)` \| (\w+) \|([^|]*)\| [^|]+ \|$/gm)].map(([, name = '', type = '', labels = '']) => [
    name,
    { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label) },
  ]),
);

/** Labels that the format of histograms adds. */
const FORMAT_LABELS: ReadonlySet<string | undefined> = new Set(['le']);
/** Metrics that only Linux has. */
const LINUX_ONLY = /^process_(virtual_memory|heap|open_fds|max_fds)/;

/** Returns the metrics of an orchestrator in which each of them has a sample. */
async function exported(): Promise<string> {
  const { db } = await openStore();
  await insertAgent(db, agentRow({ node_id: node('a'), name: 'a', status: 'approved' }));
  await insertOperation(db, operationRow({ operation_id: 'OP', node_id: node('a'), state: 'running' }));
  const own = new OwnMetrics({
    db,
    // A store on PostgreSQL has all metrics that one on SQLite has.
    store: { kind: 'postgres', latencyMs: () => 2 },
    version: '1.2.3',
    connected: () => 1,
    terminals: () => 2,
    overdueChecks: () => 4,
    standings: () => ({ behind: 5 }),
    problems: () => [{ code: 'clock_jumped' }],
    queues: { notifications: () => 1 },
  });
  own.countEvent('agent.approved');
  own.answered({ route: 'getStatus', method: 'GET', status: 200, seconds: 0.004 });
  return own.text();
}

describe('the reference of metrics', () => {
  it('names every metric with its type, and no other', async () => {
    const types = [...(await exported()).matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]);
    const expected = [...documented].map(([name, { type }]) => [name, type]);
    const isHere = ([name = '']: readonly (string | undefined)[]) =>
      process.platform === 'linux' || !LINUX_ONLY.test(name);
    expect(expected.filter(isHere).sort()).toEqual(types.filter(isHere).sort());
  });

  it('names the labels of every metric', async () => {
    const found = new Map<string, Set<string>>();
    for (const [, name = '', labels = ''] of (await exported()).matchAll(/^(\w+)\{([^}]*)\}/gm)) {
      const metric = name.replace(/_(bucket|sum|count)$/, '');
      const names = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label as string);
      found.set(metric, new Set([...(found.get(metric) ?? []), ...names]));
    }
    expect(found.size).toBeGreaterThan(8);
    for (const [metric, labels] of found) {
      const expected = [...labels].filter((label) => !FORMAT_LABELS.has(label));
      expect([...(documented.get(metric)?.labels ?? [])].sort(), metric).toEqual(expected.sort());
    }
  });
});
