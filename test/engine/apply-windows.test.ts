/** Applies by operators, by rollouts and by assignments that maintenance windows hold back. */

import { describe, expect, it } from 'vitest';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { listOperations } from '../../daemon/engine/operations/operation-store.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import { MaintenanceWatch } from '../../daemon/maintenance/maintenance-watch.js';
import { MaintenanceWindows } from '../../daemon/maintenance/maintenance-windows.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';
import { until } from '../support/until.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A connected agent, an enforced assignment of module web, and the maintenance windows of the store. */
async function enforced() {
  let watch: MaintenanceWatch | undefined;
  const bench = await openBench({
    windows: {
      isPaused: (labels) => watch?.isPaused(labels) ?? false,
      closedFor: (assignments) => watch?.closedFor(assignments) ?? null,
    },
  });
  const tools = { db: bench.db, uow: bench.uow, clock: bench.clock, newId: bench.newId, logger: silentLogger };
  watch = new MaintenanceWatch(tools);
  const windows = new MaintenanceWindows({ ...tools, onChanged: (rows) => watch?.take(rows) });
  await bench.upload('web', { '/a': '1' });
  const agent = await bench.agent('a', { connected: false });
  await bench.arrive(agent);
  const assignment = { name: 'all', modules: ['web'], selector: 'platform=linux', description: null };
  await bench.engine.assignments.create({ ...assignment, mode: 'enforce' }, ALICE);
  const create = (from: number, until: number, scope: object) => {
    const now = bench.clock.now();
    const [starts_at, ends_at] = [(now + from) / 1000, (now + until) / 1000];
    return windows.create({ reason: 'nights', starts_at, ends_at, ...scope }, ALICE);
  };
  return { bench, agent, windows, create, permit: (from: number, until: number) => create(from, until, PERMIT) };
}

const PERMIT = { kind: 'permit', assignments: ['all'] } as const;

const appliesOf = async (bench: Bench, { nodeId }: ScriptedAgent) =>
  (await listOperations(bench.db, { nodeId, limit: 100 })).map(({ requested_by, state }) => `${requested_by} ${state}`);

describe('an assignment with permits', () => {
  it('is enforced in its window, and not before', async () => {
    const { bench, agent, permit } = await enforced();
    await permit(HOUR, 2 * HOUR);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual([]);
    bench.clock.advance(HOUR);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['enforce:all succeeded']);
  });

  it('is not enforced late on an agent that was away during the window', async () => {
    const { bench, agent, permit, windows } = await enforced();
    const { id } = await permit(HOUR, 2 * HOUR);
    await bench.leave(agent);
    bench.clock.advance(3 * HOUR);
    await bench.arrive(agent);
    bench.clock.advance(24 * HOUR);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual([]);
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('never_applied');
    await windows.remove(id, ALICE);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['enforce:all succeeded']);
  });

  it('is refused to operators outside, with the next window, unless they override it', async () => {
    const { bench, agent, permit } = await enforced();
    await permit(HOUR, 2 * HOUR);
    const fault = await rejection(bench.start(agent, []));
    expect(fault).toMatchObject({ code: 'outside_window', data: { assignment: 'all', retry_after: 3600 } });
    expect(fault.message).toBe(
      'assignment all is applied only within its maintenance windows, and the next one is from 2026-03-01T13:00:00.000Z until 2026-03-01T14:00:00.000Z',
    );
    expect(fault.hint).toContain('--outside-window');
    const request = { target: { kind: 'assignment', name: 'all' }, modules: [], pace: DEFAULT_PACE } as const;
    const rollout = { ...request, limits: NO_LIMITS, expect: null };
    expect((await rejection(bench.engine.rollouts.apply(rollout, ALICE))).code).toBe('outside_window');
    await bench.engine.rollouts.apply({ ...rollout, limits: { ...NO_LIMITS, outsideWindow: true } }, ALICE);
    await until(async () => {
      await bench.settle();
      return (await appliesOf(bench, agent)).some((apply) => apply.endsWith(' succeeded'));
    }, 'the rollout has applied');
    expect(await appliesOf(bench, agent)).toEqual([`${ALICE.actor.id} succeeded`]);
    const order = {
      nodeId: agent.nodeId,
      modules: [],
      limits: { ...NO_LIMITS, outsideWindow: true },
      expect: null,
    };
    await bench.engine.applies.start(order, ALICE);
    await bench.settle();
    expect(await appliesOf(bench, agent)).toHaveLength(2);
  });

  it('does not reach an agent that takes the apply only after the window', async () => {
    const { bench, agent, permit } = await enforced();
    await permit(0, HOUR);
    agent.mute = true;
    const id = await bench.start(agent, []);
    await bench.settle();
    bench.clock.advance(HOUR);
    await bench.restart();
    agent.mute = false;
    await bench.arrive(agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'failed',
      error: { code: 'not_delivered', message: expect.stringContaining('only within its maintenance windows') },
    });
    expect(agent.machine.size).toBe(0);
  });

  it('is applied outside by an apply of one agent that overrides it, also when the orchestrator restarts before delivery', async () => {
    const { bench, agent, permit } = await enforced();
    await permit(HOUR, 2 * HOUR);
    agent.mute = true;
    const limits = { ...NO_LIMITS, outsideWindow: true };
    const { operation } = await bench.engine.applies.start(
      { nodeId: agent.nodeId, modules: [], limits, expect: null },
      ALICE,
    );
    await bench.settle();
    await bench.restart();
    agent.mute = false;
    await bench.arrive(agent);
    expect(await bench.engine.operations.get(operation.id)).toMatchObject({ status: 'succeeded', error: null });
    expect(await appliesOf(bench, agent)).toEqual([`${ALICE.actor.id} succeeded`]);
  });

  it('is applied outside by a rollout that overrides it, also when the orchestrator restarts before delivery', async () => {
    const { bench, agent, permit } = await enforced();
    await permit(HOUR, 2 * HOUR);
    agent.mute = true;
    const request = {
      target: { kind: 'assignment', name: 'all' },
      modules: [],
      pace: DEFAULT_PACE,
      limits: { ...NO_LIMITS, outsideWindow: true },
      expect: null,
    } as const;
    const { id } = await bench.engine.rollouts.apply(request, ALICE);
    await bench.settle();
    await bench.restart();
    agent.mute = false;
    await bench.arrive(agent);
    expect((await bench.engine.rollouts.get(id)).state).toBe('succeeded');
    expect(await appliesOf(bench, agent)).toEqual([`${ALICE.actor.id} succeeded`]);
  });
});

describe('a pause', () => {
  it.each([
    ['of these agents', 'platform=linux', []],
    ['of other agents', 'platform=windows', ['enforce:all succeeded']],
  ])('%s holds back their automatic applies alone', async (_what, selector, during) => {
    const { bench, agent, create } = await enforced();
    await create(0, HOUR, { selector });
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(during);
    bench.clock.advance(HOUR);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['enforce:all succeeded']);
  });
});
