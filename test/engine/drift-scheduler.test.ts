/** Scheduled drift checks, with a clock that the test moves. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { type DriftSchedule, DriftScheduler } from '../../daemon/engine/drift/drift-scheduler.js';
import { deleteDriftBefore } from '../../daemon/engine/drift/drift-store.js';
import { updateAgent } from '../../daemon/fleet/agent-store.js';
import { type Logger, silentLogger } from '../../src/kernel/logger.js';
import { type Bench, openBench } from '../support/engine.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SCHEDULE: DriftSchedule = { enabled: true, interval: HOUR, maxConcurrent: 8, skipRecentlyApplied: 5 * MINUTE };

function schedulerOf(bench: Bench, change: Partial<DriftSchedule> = {}, logger: Logger = silentLogger) {
  let schedule = { ...SCHEDULE, ...change };
  let maintenance = false;
  const { db, clock, fleet, engine } = bench;
  const scheduler = new DriftScheduler({
    db,
    clock,
    logger,
    link: fleet,
    drift: engine.drift,
    schedule: () => schedule,
    isMaintenance: () => maintenance,
  });
  onTestFinished(() => scheduler.stop());
  return {
    scheduler,
    set: (next: Partial<DriftSchedule>) => {
      schedule = { ...schedule, ...next };
    },
    maintain: (on: boolean) => {
      maintenance = on;
    },
    /** Lets minutes pass, one look each. */
    pass: async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute += 1) {
        await scheduler.tick();
        await bench.settle();
        bench.clock.advance(MINUTE);
      }
    },
  };
}

/** Agents to which something was applied two hours ago. */
async function managed(digits: string) {
  const bench = await openBench();
  await bench.upload('site', { '/site': 'x' });
  const agents = [];
  for (const digit of digits) {
    const agent = await bench.agent(digit);
    await bench.apply(agent, ['site']);
    agents.push(agent);
  }
  bench.clock.advance(2 * HOUR);
  return { bench, agents };
}

const records = (bench: Bench) => bench.engine.drift.list({ rights: ALL_RIGHTS, limit: 500, status: null });
const nodesChecked = async (bench: Bench) => (await records(bench)).map(({ node_id }) => node_id[0]).sort();

describe('the drift scheduler', () => {
  it('checks each agent once in an interval, and not all at the same time', async () => {
    const { bench } = await managed('159d');
    const { pass } = schedulerOf(bench);
    const counts: number[] = [];
    for (let quarter = 0; quarter < 4; quarter += 1) {
      await pass(15);
      counts.push((await records(bench)).length);
    }
    expect(counts).toEqual([1, 2, 3, 4]);
    expect(await nodesChecked(bench)).toEqual(['1', '5', '9', 'd']);
    await pass(60);
    expect(await nodesChecked(bench)).toEqual(['1', '1', '5', '5', '9', '9', 'd', 'd']);
    expect(await records(bench)).toMatchObject(
      Array(8).fill({ trigger: 'scheduled', requested_by: null, status: 'in_sync' }),
    );
    // The second check of each agent finds what the first one found.
    expect(bench.eventTypes('drift')).toEqual(Array(4).fill('drift.checked'));
    expect(bench.events.findLast(({ type }) => type === 'drift.checked')?.actor.type).toBe('system');
  });

  it('tells drift once when it begins and once when it is over', async () => {
    const { bench, agents } = await managed('1');
    const { pass } = schedulerOf(bench);
    agents[0]?.machine.set('/site', 'by hand');
    await pass(125);
    const applied = agents[0];
    if (applied) await bench.apply(applied, ['site']);
    await pass(125);
    expect(bench.eventTypes('drift').filter((type) => type !== 'drift.checked')).toEqual([
      'drift.detected',
      'drift.resolved',
    ]);
  });

  it('tells of a check only if it finds something else than the last one, or was asked for', async () => {
    const { bench, agents } = await managed('1');
    const { pass } = schedulerOf(bench);
    const [agent] = agents;
    if (agent === undefined) throw new Error('there is no agent');
    await pass(60);
    await pass(60);
    expect(bench.eventTypes('drift')).toEqual(['drift.checked']);
    await bench.drift(agent);
    expect(bench.eventTypes('drift')).toHaveLength(2);
    const content = agent.machine.get('/site');
    agent.machine.set('/site', 'by hand');
    await pass(60);
    await pass(60);
    expect(bench.eventTypes('drift').slice(2)).toEqual(['drift.checked', 'drift.detected', 'drift.checked']);
    if (content !== undefined) agent.machine.set('/site', content);
    await pass(60);
    await pass(60);
    expect(bench.eventTypes('drift').slice(5)).toEqual(['drift.checked', 'drift.resolved']);
    expect((await records(bench)).map(({ status }) => status)).toEqual([
      'in_sync',
      'in_sync',
      'drifted',
      'drifted',
      'in_sync',
      'in_sync',
      'in_sync',
    ]);
    const unchanged = (await records(bench)).filter(({ status }) => status === 'in_sync');
    for (const { summary } of unchanged) expect(summary).toMatchObject({ total: 1, unchanged: 1, pending: 0 });
  });

  it('has no more checks under way than it may', async () => {
    const { bench, agents } = await managed('123456');
    const { scheduler, pass } = schedulerOf(bench, { maxConcurrent: 2 });
    await scheduler.tick();
    for (const agent of agents) agent.diligent = false;
    // All of them become due together.
    bench.clock.advance(HOUR);
    await pass(2);
    const underWay = agents.filter(({ received }) =>
      received.some((one) => one.type === 'run' && one.mode === 'drift'),
    );
    expect(underWay).toHaveLength(2);
    for (const agent of agents) agent.diligent = true;
    await pass(6);
    expect(new Set(await nodesChecked(bench)).size).toBe(6);
  });

  it('begins the next check when one ends', async () => {
    const { bench } = await managed('123456');
    const { scheduler } = schedulerOf(bench, { maxConcurrent: 2 });
    await scheduler.tick();
    bench.clock.advance(HOUR);
    await scheduler.tick();
    await bench.settle();
    expect(await nodesChecked(bench)).toEqual(['1', '2', '3', '4', '5', '6']);
  });

  it('reports checks that are late because all places are taken', async () => {
    const { bench, agents } = await managed('1234');
    const warnings: unknown[] = [];
    const logger = { ...silentLogger, warn: (...line: unknown[]) => void warnings.push(line) };
    const { scheduler, maintain, pass } = schedulerOf(bench, { maxConcurrent: 1 }, logger);
    await scheduler.tick();
    for (const agent of agents) agent.diligent = false;
    maintain(true);
    bench.clock.advance(HOUR);
    await pass(3);
    expect(scheduler.overdue).toBe(0);
    await scheduler.tick();
    maintain(false);
    await scheduler.tick();
    expect([scheduler.overdue, scheduler.problems()]).toEqual([0, []]);
    bench.clock.advance(MINUTE);
    await scheduler.tick();
    expect(scheduler.overdue).toBe(3);
    expect(scheduler.problems()).toMatchObject([
      { code: 'drift_overdue', detail: expect.stringContaining('drift.interval') },
    ]);
    expect(warnings).toEqual([
      [expect.stringContaining('late'), expect.objectContaining({ overdue: 3, max_concurrent: 1 })],
    ]);
    const gone = agents.at(-1);
    if (gone) await bench.disconnect(gone);
    expect(scheduler.overdue).toBe(2);
    for (const agent of agents) agent.diligent = true;
    await pass(20);
    expect([scheduler.overdue, warnings.length]).toEqual([0, 1]);
  });

  it('passes over agents that are offline, not approved, or have nothing applied, and takes them up later', async () => {
    const { bench, agents } = await managed('12');
    const [offline, rejected] = agents;
    await bench.agent('3');
    const { pass } = schedulerOf(bench);
    if (offline) await bench.disconnect(offline);
    await updateAgent(bench.db, rejected?.nodeId ?? '', { status: 'rejected' });
    await pass(65);
    expect(await records(bench)).toEqual([]);
    offline?.connect();
    await pass(2);
    expect(await nodesChecked(bench)).toEqual(['1']);
  });

  it('waits after an apply, and never runs beside one', async () => {
    const { bench, agents } = await managed('1');
    const [agent] = agents;
    if (agent === undefined) throw new Error('no agent');
    const { scheduler, pass } = schedulerOf(bench);
    await scheduler.tick();
    bench.clock.advance(HOUR);
    agent.diligent = false;
    const operation = await bench.start(agent, []).catch(() => bench.start(agent, ['site']));
    await pass(2);
    expect(agent.received.filter((one) => one.type === 'run').map((one) => 'mode' in one && one.mode)).toEqual([
      'apply',
      'apply',
    ]);
    agent.diligent = true;
    await bench.settle();
    expect((await bench.engine.operations.get(operation)).status).toBe('succeeded');
    await pass(4);
    expect(await records(bench)).toEqual([]);
    await pass(3);
    expect(await records(bench)).toHaveLength(1);
  });

  it('obeys new settings at once', async () => {
    const { bench } = await managed('1');
    const { set, pass } = schedulerOf(bench, { enabled: false });
    await pass(65);
    expect(await records(bench)).toEqual([]);
    set({ enabled: true, interval: 10 * MINUTE });
    await pass(30);
    expect((await records(bench)).length).toBeGreaterThanOrEqual(2);
    set({ enabled: false });
    const before = (await records(bench)).length;
    await pass(30);
    expect(await records(bench)).toHaveLength(before);
  });

  it('begins nothing while a maintenance window is active, and what is asked for by hand all the same', async () => {
    const { bench, agents } = await managed('15');
    const { maintain, pass } = schedulerOf(bench);
    maintain(true);
    await pass(90);
    expect(await records(bench)).toEqual([]);
    if (agents[0]) await bench.drift(agents[0]);
    expect(await records(bench)).toMatchObject([{ trigger: 'manual', status: 'in_sync' }]);
    maintain(false);
    await pass(2);
    expect(await nodesChecked(bench)).toEqual(['1', '1', '5']);
  });

  it('goes on when the clock was set back', async () => {
    const { bench } = await managed('1');
    const { pass } = schedulerOf(bench);
    await pass(60);
    bench.clock.setWall(bench.clock.now() - 20 * HOUR);
    bench.clock.advance(30 * HOUR);
    await pass(62);
    expect((await records(bench)).length).toBeGreaterThanOrEqual(2);
  });

  it('goes on when the clock was ahead during the last apply', async () => {
    const { bench, agents } = await managed('1');
    const right = bench.clock.now();
    const { pass } = schedulerOf(bench);
    bench.clock.setWall(right + 400 * 24 * HOUR);
    if (agents[0]) await bench.apply(agents[0], ['site']);
    bench.clock.setWall(right);
    await pass(62);
    expect(await nodesChecked(bench)).toContain('1');
  });

  it('ends its checks when it stops', async () => {
    const { bench, agents } = await managed('1');
    const { scheduler, pass } = schedulerOf(bench);
    await scheduler.tick();
    for (const agent of agents) agent.diligent = false;
    bench.clock.advance(HOUR);
    await pass(1);
    await scheduler.stop();
    expect(await records(bench)).toMatchObject([{ status: 'cancelled' }]);
  });
});

describe('old drift records', () => {
  it('are deleted, but for the newest one with a result of each agent', async () => {
    const { bench, agents } = await managed('12');
    const [first, second] = agents;
    if (first === undefined || second === undefined) throw new Error('no agents');
    for (let check = 0; check < 3; check += 1) {
      await bench.drift(first);
      bench.clock.advance(1000);
    }
    const kept = await bench.drift(second);
    bench.clock.advance(24 * HOUR);
    const newest = await bench.drift(first);
    expect(await deleteDriftBefore(bench.db, bench.clock.now() - HOUR, 2)).toBe(2);
    expect(await deleteDriftBefore(bench.db, bench.clock.now() - HOUR, 100)).toBe(1);
    expect(await deleteDriftBefore(bench.db, bench.clock.now() - HOUR, 100)).toBe(0);
    expect((await records(bench)).map(({ drift_id }) => drift_id)).toEqual([newest.drift_id, kept.drift_id]);
  });
});
