/** The orchestrator's measurements: whom it asks and when, what it stores, and what it drops. */
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { deleteAgent, insertAgent } from '../../daemon/fleet/agent-store.js';
import { type HistoryPage, insertSamples, MetricsReader } from '../../daemon/metrics/metrics.js';
import { MetricsPoller } from '../../daemon/metrics/metrics-poller.js';
import { isFault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { MetricsSample } from '../../src/kernel/schema.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import { agentRow, ManualClock, openStore } from '../support/database.js';
import { nodeId } from '../support/engine.js';
import { until } from '../support/until.js';

const YEAR = 365 * 86_400_000;
const [A, B] = [nodeId('a'), nodeId('b')];
const sample = (collected_at: number): MetricsSample => ({
  collected_at,
  cpu_usage: 12.5,
  memory_used: 1,
  memory_total: 2,
  disk_used: null,
  disk_total: null,
  uptime: 3,
});

async function bench() {
  const { db } = await openStore();
  const clock = new ManualClock();
  const asked: [NodeId, number][] = [];
  const connected = new Set<NodeId>();
  for (const id of [A, B]) {
    await insertAgent(db, agentRow({ node_id: id, name: id.slice(0, 3), status: 'approved', created_at: clock.now() }));
  }
  const poller = new MetricsPoller({
    db,
    clock,
    ageTime: () => clock.now(),
    logger: silentLogger,
    link: {
      connected: () => connected,
      send: (id, messages: readonly OrchestratorMessage[]) => {
        for (const message of messages) if (message.type === 'metrics_request') asked.push([id, message.request_id]);
        return true;
      },
    },
    schedule: () => ({ interval: 60_000, retention: 3_600_000 }),
    random: () => 0,
  });
  onTestFinished(() => poller.stop());
  return { db, clock, asked, connected, poller, reader: new MetricsReader({ db, clock }) };
}

/** Lets the poller look once. */
async function tick(asked: readonly unknown[], more: number): Promise<void> {
  const before = asked.length;
  await until(() => asked.length >= before + more, `the poller has asked ${more} more`);
  expect(asked.length).toBe(before + more);
}

describe('the poller', () => {
  it('asks a new agent at once, each on a schedule of its own, and none that has gone', async () => {
    const { asked, clock, connected, poller } = await bench();
    connected.add(A);
    await poller.start();
    await tick(asked, 1);
    connected.add(B);
    clock.advance(10_000);
    await tick(asked, 1);
    expect(asked.map(([id]) => id)).toEqual([A, B]);
    clock.advance(25_000);
    await tick(asked, 1);
    expect(asked.at(-1)?.[0]).toBe(A);
    connected.delete(A);
    clock.advance(60_000);
    await tick(asked, 1);
    expect(asked.at(-1)?.[0]).toBe(B);
  });

  it('stores what it was answered, and nothing that it has not asked for', async () => {
    const { asked, connected, poller, reader, clock } = await bench();
    connected.add(A);
    await poller.start();
    await tick(asked, 1);
    const request = asked[0]?.[1] ?? -1;
    const refused = (id: NodeId, request_id: number) => {
      try {
        poller.receive(id, { request_id, sample: sample(1) });
      } catch (error) {
        return isFault(error, 'protocol_violation');
      }
      return false;
    };
    expect(refused(B, request)).toBe(true);
    expect(refused(A, request + 1)).toBe(true);
    poller.receive(A, { request_id: request, sample: sample(1_700_000_000) });
    expect(refused(A, request)).toBe(true);
    await poller.stop();
    expect(await reader.latest(A)).toEqual(sample(1_700_000_000));
    expect(await reader.latest(B)).toBeNull();
    expect(await reader.history(B, { limit: 10 })).toBeNull();
    expect(await reader.latestOfAll()).toEqual([{ node_id: A, sample: sample(1_700_000_000) }]);
    expect(clock.now()).toBeGreaterThan(0);
  });

  it('takes answers that come after the next request', async () => {
    const { asked, connected, poller, reader, clock } = await bench();
    connected.add(A);
    await poller.start();
    await tick(asked, 1);
    clock.advance(60_000);
    await tick(asked, 1);
    const [first = -1, second = -1] = asked.map(([, request]) => request);
    poller.receive(A, { request_id: first, sample: sample(1) });
    clock.advance(1);
    poller.receive(A, { request_id: second, sample: sample(2) });
    await poller.stop();
    const { history } = (await reader.history(A, { limit: 10 })) ?? {};
    expect(history?.samples.map(({ collected_at }) => collected_at)).toEqual([1, 2]);
  });

  it('stores later what the store could not take', async () => {
    const { db, asked, connected, poller, reader } = await bench();
    connected.add(A);
    await poller.start();
    await tick(asked, 1);
    await sql`alter table metrics_samples rename to away`.execute(db);
    poller.receive(A, { request_id: asked[0]?.[1] ?? -1, sample: sample(7) });
    await poller.stop();
    await sql`alter table away rename to metrics_samples`.execute(db);
    await poller.stop();
    expect(await reader.latest(A)).toEqual(sample(7));
  });
});

describe('the history', () => {
  it('is the newest ones, oldest first, since a time, and not of an agent that was removed', async () => {
    const { db, clock, reader } = await bench();
    const start = clock.now();
    await insertSamples(db, [{ node_id: A, received_at: start, ...sample(99) }]);
    await deleteAgent(db, A);
    await insertAgent(db, agentRow({ node_id: A, created_at: clock.now() }));
    const rows = Array.from({ length: 5 }, (_, n) => ({ node_id: A, received_at: start + n * 1000, ...sample(n) }));
    await insertSamples(db, rows);
    clock.advance(5000);
    const ages = async (query: { since?: number; limit: number }) =>
      (await reader.history(A, query))?.history.samples.map(({ collected_at }) => collected_at);
    expect(await ages({ limit: 100 })).toEqual([0, 1, 2, 3, 4]);
    expect(await ages({ limit: 2 })).toEqual([3, 4]);
    const pages: (readonly number[])[] = [];
    let before: number | null = null;
    do {
      const page: HistoryPage | null = await reader.history(A, { limit: 2, before });
      pages.push(page?.history.samples.map(({ collected_at }) => collected_at) ?? []);
      before = page?.next ?? null;
    } while (before !== null);
    expect(pages).toEqual([[3, 4], [1, 2], [0]]);
    expect(await ages({ limit: 100, since: Math.ceil(start / 1000) + 3 })).toEqual(
      [3, 4].slice(start % 1000 === 0 ? 0 : 1),
    );
    await expect(reader.latest(nodeId('c'))).rejects.toThrow('there is no agent');
  });

  it('is not hidden by samples, or an agent, of a clock that was ahead', async () => {
    const { db, clock, reader } = await bench();
    const right = clock.now();
    clock.setWall(right + YEAR);
    const late = nodeId('d');
    await insertAgent(db, agentRow({ node_id: late, created_at: clock.now() }));
    await insertSamples(db, [{ node_id: late, received_at: clock.now(), ...sample(1) }]);
    clock.setWall(right);
    await insertSamples(db, [{ node_id: late, received_at: clock.now(), ...sample(2) }]);
    expect(await reader.latest(late)).toEqual(sample(2));
    expect(await reader.latestOfAll()).toEqual([{ node_id: late, sample: sample(2) }]);
    expect((await reader.history(late, { limit: 9 }))?.history.samples).toEqual([sample(2)]);
  });

  it('is dropped when it is older than the retention', async () => {
    const { db, clock, poller, reader } = await bench();
    const start = clock.now();
    const rows = Array.from({ length: 6_000 }, (_, n) => ({ node_id: A, received_at: start + n, ...sample(n) }));
    await insertSamples(db, rows);
    clock.advance(3_600_000 + 5_500);
    await poller.prune();
    const left = await reader.history(A, { limit: 10_000 });
    expect(left?.history.samples.map(({ collected_at }) => collected_at)).toEqual(
      Array.from({ length: 500 }, (_, n) => 5_500 + n),
    );
  });
});
