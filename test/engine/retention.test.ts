import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import { Retention, type RetentionDays } from '../../daemon/housekeeping.js';
import { findNotification, insertNotification } from '../../daemon/notify/notification-store.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench } from '../support/engine.js';

const DAY = 86_400_000;

function retention(bench: Bench, change: Partial<RetentionDays> = {}): Retention {
  const { db, clock, newId } = bench;
  const uow = new TransactionalWriter({ db, clock, newId, publish: (event) => bench.events.push(event) });
  return new Retention({
    uow,
    ageTime: () => clock.now(),
    days: () => ({ operations: 365, rollouts: 365, outputs: 90, drift: 30, notifications: 90, ...change }),
  });
}

/** An agent that applied something with an output, and the same again, on each of so many days. */
async function applying(days: number) {
  const bench = await openBench();
  const agent = await bench.agent('1');
  agent.outputs.set('/a', { stdout: 'done\n', stderr: '', exit_code: 0, truncated: false });
  const ids: string[] = [];
  for (let day = 0; day < days; day += 1) {
    await bench.upload('site', { '/a': `content of day ${day}` });
    ids.push((await bench.apply(agent, ['site'])).operation_id);
    bench.clock.advance(DAY);
  }
  const left = async () =>
    (await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 99, offset: 0, status: null })).operations
      .map(({ operation_id }) => ids.indexOf(operation_id))
      .reverse();
  const withOutput = async () => {
    const rows = await bench.db.selectFrom('operation_outputs').select('operation_id').execute();
    return rows.map(({ operation_id }) => ids.indexOf(operation_id));
  };
  return { bench, agent, ids, left, withOutput };
}

describe('retention', () => {
  it('deletes operations and outputs that are too old, and leaves one event each', async () => {
    const { bench, left, withOutput } = await applying(6);
    const job = retention(bench, { operations: 4, outputs: 2 });
    await job.run();
    expect(await left()).toEqual([2, 3, 4, 5]);
    expect(await withOutput()).toEqual([4, 5]);
    const pruned = bench.events.filter(({ type }) => type.endsWith('_pruned'));
    expect(pruned).toMatchObject([
      {
        type: 'state.operations_pruned',
        actor: { type: 'system' },
        summary: '2 operations from before 2026-03-03T00:00:00.000Z were deleted',
        metadata: { count: 2, before: '2026-03-03T00:00:00.000Z' },
      },
      { type: 'state.outputs_pruned', metadata: { count: 2, before: '2026-03-05T00:00:00.000Z' } },
    ]);
    await job.run();
    await job.run();
    expect(bench.events.filter(({ type }) => type.endsWith('_pruned'))).toEqual(pruned);
    bench.clock.advance(DAY);
    await job.run();
    expect(await left()).toEqual([3, 4, 5]);
  });

  it('deletes ended and halted rollouts with the operations, and keeps the others', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': 'x' });
    const target = { kind: 'agents', nodeIds: [agent.nodeId] } as const;
    const begin = async (change: object = {}) => {
      const pace = { ...DEFAULT_PACE, ...change };
      const request = { target, modules: ['site'], limits: NO_LIMITS, expect: null, pace };
      const { id } = await bench.engine.rollouts.apply(request, ALICE);
      await bench.settle();
      return id;
    };
    await begin();
    agent.mishaps.set('/a', 'fail');
    const failed = await begin();
    await bench.disconnect(agent);
    const waiting = await begin({ whenOnlineSecs: 9_000_000 });
    bench.clock.advance(2 * DAY);
    const late = await begin();
    await retention(bench, { rollouts: 1 }).run();
    const { rollouts } = await bench.engine.rollouts.list({
      rights: ALL_RIGHTS,
      limit: 9,
      offset: 0,
      state: null,
      assignment: null,
    });
    expect(rollouts.map(({ rollout_id }) => rollout_id)).toEqual([late, waiting]);
    expect(bench.events.filter(({ type }) => type === 'rollout.pruned')).toMatchObject([{ metadata: { count: 2 } }]);
    expect((await rejection(bench.engine.rollouts.get(failed))).code).toBe('rollout_not_found');
    expect(await bench.db.selectFrom('rollout_agents').select('rollout_id').execute()).toHaveLength(2);
  });

  it('keeps what the managed state rests on, and what is under way', async () => {
    const { bench, agent, ids, left } = await applying(2);
    const other = await bench.agent('2');
    other.mute = true;
    await bench.start(other, ['site']);
    bench.clock.advance(1000 * DAY);
    await retention(bench).run();
    expect((await left()).slice(0, 1)).toEqual([1]);
    expect((await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 9, offset: 0, status: null })).total).toBe(
      2,
    );
    expect(await bench.engine.state.get(agent.nodeId)).toMatchObject({ operation_id: ids[1] });
  });

  it('deletes old drift records with an event', async () => {
    const { bench, agent } = await applying(1);
    await bench.drift(agent);
    bench.clock.advance(40 * DAY);
    await bench.drift(agent);
    await retention(bench).run();
    expect(bench.events.at(-1)).toMatchObject({ type: 'drift.pruned', metadata: { count: 1 } });
  });

  it('deletes old notifications with an event, and leaves the newer ones', async () => {
    const bench = await openBench();
    const raise = (id: string) =>
      insertNotification(bench.db, {
        id,
        event_id: id,
        event_type: 'drift.detected',
        severity: 'warning',
        summary: 'web-01 has drifted',
        timestamp: bench.clock.now(),
        actor: SYSTEM,
        target: SYSTEM,
        metadata: {},
      });
    await raise('old');
    bench.clock.advance(60 * DAY);
    await raise('new');
    bench.clock.advance(40 * DAY);
    await retention(bench).run();
    expect(bench.events.at(-1)).toMatchObject({ type: 'notification.pruned', metadata: { count: 1 } });
    expect(await findNotification(bench.db, 'old')).toBeNull();
    expect(await findNotification(bench.db, 'new')).not.toBeNull();
  });
});
