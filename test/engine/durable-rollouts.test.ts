/** Rollouts that are paused, halted, retried and interrupted: what is stored, and what goes on. */

import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS, NO_RIGHTS, Rights } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE, type RequestedPace } from '../../daemon/engine/rollouts/rollout-pace.js';
import { busyNodes } from '../../daemon/engine/rollouts/rollout-store.js';
import { deleteAgent, updateAgent } from '../../daemon/fleet/agent-store.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, nodeId, openBench, type ScriptedAgent } from '../support/engine.js';

const BOB = { ...ALICE, actor: { id: 'b0b'.padEnd(32, '0'), name: 'bob', type: 'operator' } } as const;
const MINUTE = 60_000;

/** So many agents of one assignment; none works by itself. */
async function fleet(count: number, options: Parameters<typeof openBench>[0] = {}) {
  const bench = await openBench(options);
  const agents: ScriptedAgent[] = [];
  for (const digit of '123456789abcdef'.slice(0, count)) agents.push(await bench.agent(digit));
  await bench.upload('site', { '/site': 'x' });
  await bench.engine.assignments.create({ name: 'all', modules: ['site'], selector: '*', description: null }, ALICE);
  for (const agent of agents) agent.diligent = false;
  return { bench, agents };
}

/** Begins a rollout and lets everything come to rest. Returns its ID. */
async function begin(bench: Bench, pace: Partial<RequestedPace> = {}, context = ALICE): Promise<string> {
  const target = { kind: 'assignment', name: 'all' } as const;
  const request = {
    target,
    modules: [],
    limits: NO_LIMITS,
    expect: null,
    pace: { ...DEFAULT_PACE, ...pace },
  };
  const run = await bench.engine.rollouts.apply(request, context);
  await bench.settle();
  return run.id;
}

const get = (bench: Bench, id: string) => bench.engine.rollouts.get(id);

const states = async (bench: Bench, id: string) => (await get(bench, id)).agents.map(({ state }) => state);

/** Waits until what the check looks at is as expected. */
async function soon(bench: Bench, check: () => Promise<void>): Promise<void> {
  for (let round = 0; ; round += 1) {
    await bench.settle();
    try {
      return await check();
    } catch (error) {
      if (round === 100) throw error;
    }
  }
}

const reaches = (bench: Bench, id: string, expected: object) =>
  soon(bench, async () => expect(await get(bench, id)).toMatchObject(expected));

const becomes = (bench: Bench, id: string, expected: readonly string[]) =>
  soon(bench, async () => expect(await states(bench, id)).toEqual(expected));

/** Lets agents work, and waits until everything has come to rest. */
async function work(bench: Bench, ...agents: readonly (ScriptedAgent | undefined)[]): Promise<void> {
  for (const agent of agents) if (agent !== undefined) agent.diligent = true;
  await bench.settle();
}

/** Lets time pass, and the engine look at the clock. */
async function pass(bench: Bench, ms: number): Promise<void> {
  bench.clock.advance(ms);
  await bench.engine.tick();
  await bench.settle();
}

const runsOf = (agent: ScriptedAgent | undefined) => agent?.received.filter(({ type }) => type === 'run').length;

async function restart(bench: Bench, agents: readonly ScriptedAgent[]): Promise<void> {
  await bench.restart();
  for (const agent of agents) agent.connect();
  await bench.settle();
}

describe('busy agents', () => {
  it('are those of unfinished rollouts and operations', async () => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench, { concurrency: 1 });
    await becomes(bench, id, ['running', 'waiting']);
    await bench.engine.rollouts.pause(id, null, ALICE);
    await work(bench, ...agents);
    await becomes(bench, id, ['succeeded', 'waiting']);
    const ids = [nodeId('1'), nodeId('2')];
    expect([...(await busyNodes(bench.db))].sort()).toEqual(ids);
    await bench.engine.rollouts.resume(id, ALICE);
    await reaches(bench, id, { state: 'succeeded' });
    expect(await busyNodes(bench.db)).toEqual(new Set());
    await bench.db.updateTable('operations').set({ state: 'running' }).where('node_id', '=', nodeId('2')).execute();
    expect(await busyNodes(bench.db)).toEqual(new Set([nodeId('2')]));
  });
});

describe('a paused rollout', () => {
  it('starts no other agent until it is resumed, and those in flight finish', async () => {
    const { bench, agents } = await fleet(3);
    const id = await begin(bench, { concurrency: 1 });
    await becomes(bench, id, ['running', 'waiting', 'waiting']);
    expect(await bench.engine.rollouts.pause(id, 'lunch', ALICE)).toMatchObject({ state: 'paused', reason: 'lunch' });
    await work(bench, ...agents);
    await becomes(bench, id, ['succeeded', 'waiting', 'waiting']);
    expect((await rejection(bench.engine.rollouts.retry(id, ALICE))).code).toBe('rollout_in_progress');
    await restart(bench, agents);
    await reaches(bench, id, { state: 'paused', reason: 'lunch', counts: { waiting: 2 } });
    expect(await bench.engine.rollouts.resume(id, BOB)).toMatchObject({ state: 'running', reason: null });
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded', requested_by: ALICE.actor.id });
    const started = bench.events.filter(({ type }) => type === 'state.apply_started');
    expect(started.map(({ actor }) => actor.name)).toEqual(['alice', 'bob', 'bob']);
    expect(bench.events.filter(({ type }) => type.startsWith('rollout.'))).toMatchObject([
      {
        type: 'rollout.paused',
        actor: ALICE.actor,
        summary: 'alice paused a rollout of assignment all on 3 agents: lunch',
      },
      { type: 'rollout.resumed', actor: BOB.actor, summary: 'bob resumed a rollout of assignment all on 3 agents' },
      { type: 'rollout.succeeded', summary: 'a rollout of assignment all on 3 agents has succeeded' },
    ]);
    const { rollouts } = bench.engine;
    for (const refused of [rollouts.pause(id, null, ALICE), rollouts.resume(id, ALICE), rollouts.cancel(id, ALICE)]) {
      expect(await rejection(refused)).toMatchObject({
        code: 'rollout_finished',
        hint: `see what it did: orch rollouts show ${id}`,
      });
    }
    expect((await rejection(bench.engine.rollouts.retry(id, ALICE))).message).toContain('nothing to retry');
  });

  it('is cancelled with the agents that wait', async () => {
    const { bench, agents } = await fleet(3);
    const id = await begin(bench, { concurrency: 1 });
    await bench.engine.rollouts.pause(id, null, ALICE);
    await bench.while(bench.engine.rollouts.cancel(id, ALICE));
    await reaches(bench, id, { state: 'cancelled', finished_at: null });
    expect((await rejection(bench.engine.rollouts.retry(id, ALICE))).message).toContain('agents in flight');
    await work(bench, ...agents);
    const { agents: ended, ...record } = await get(bench, id);
    expect(record).toMatchObject({ state: 'cancelled', finished_at: expect.any(Number) });
    expect(ended.map(({ state, error }) => [state, error?.message])).toEqual([
      ['failed', 'the apply was cancelled'],
      ['skipped', 'not started: alice cancelled the rollout'],
      ['skipped', 'not started: alice cancelled the rollout'],
    ]);
  });
});

describe('a halted rollout', () => {
  it('goes on when it is resumed, and its bound counts anew', async () => {
    const { bench, agents } = await fleet(4);
    agents[0]?.mishaps.set('/site', 'fail');
    agents[2]?.mishaps.set('/site', 'fail');
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { maxFailures: 1 });
    await reaches(bench, id, { state: 'halted', reason: '1 agent has failed', finished_at: null });
    await restart(bench, agents);
    await becomes(bench, id, ['failed', 'waiting', 'waiting', 'waiting']);
    await bench.engine.rollouts.resume(id, ALICE);
    await bench.settle();
    await becomes(bench, id, ['failed', 'succeeded', 'failed', 'waiting']);
    await reaches(bench, id, { state: 'halted' });
    await bench.engine.rollouts.resume(id, ALICE);
    await bench.settle();
    await reaches(bench, id, { state: 'failed', reason: '2 agents did not succeed' });
    expect(bench.eventTypes('rollout.')).toEqual([
      'rollout.halted',
      'rollout.resumed',
      'rollout.halted',
      'rollout.resumed',
      'rollout.failed',
    ]);
  });

  it('is retried: the agents that failed wait again', async () => {
    const { bench, agents } = await fleet(3);
    agents[0]?.mishaps.set('/site', 'fail');
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { canary: 1 });
    await reaches(bench, id, {
      state: 'halted',
      reason: '1 of 1 canary agents did not succeed',
      wave: { number: 1, of: 2 },
    });
    agents[0]?.mishaps.clear();
    expect(await bench.engine.rollouts.retry(id, BOB)).toMatchObject({ state: 'running', counts: { waiting: 3 } });
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded', reason: null, wave: { number: 2, of: 2 } });
  });

  it('can leave a canary behind that failed', async () => {
    const { bench, agents } = await fleet(3);
    agents[0]?.mishaps.set('/site', 'fail');
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { canary: 1 });
    await bench.engine.rollouts.resume(id, ALICE);
    await bench.settle();
    await becomes(bench, id, ['failed', 'succeeded', 'succeeded']);
    await reaches(bench, id, { state: 'failed' });
  });
});

describe('an ended rollout', () => {
  it('is retried for agents that failed, were offline, or were left out', async () => {
    const { bench, agents } = await fleet(3);
    const [first, second, third] = agents;
    first?.mishaps.set('/site', 'fail');
    if (second) await bench.disconnect(second);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench);
    await becomes(bench, id, ['failed', 'unreachable', 'succeeded']);
    first?.mishaps.clear();
    second?.connect();
    await bench.settle();
    await bench.engine.rollouts.retry(id, ALICE);
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded', counts: { succeeded: 3 } });
    expect([runsOf(first), runsOf(second), runsOf(third)]).toEqual([2, 1, 1]);
    const { operations } = await bench.engine.operations.list({
      rights: ALL_RIGHTS,
      limit: 9,
      offset: 0,
      status: null,
      rollout: id,
    });
    expect(operations).toHaveLength(4);
  });

  it('is listed by state and assignment, newest first', async () => {
    const { bench, agents } = await fleet(1);
    await work(bench, ...agents);
    const ids = [await begin(bench), await begin(bench), await begin(bench, { concurrency: 1 })];
    const page = { rights: ALL_RIGHTS, limit: 2, offset: 0, state: null, assignment: null };
    const listed = await bench.engine.rollouts.list(page);
    expect([listed.total, listed.rollouts.map(({ rollout_id }) => rollout_id)]).toEqual([3, [ids[2], ids[1]]]);
    expect((await bench.engine.rollouts.list({ ...page, offset: 2 })).rollouts).toHaveLength(1);
    expect((await bench.engine.rollouts.list({ ...page, state: 'running' })).total).toBe(0);
    expect((await bench.engine.rollouts.list({ ...page, state: 'succeeded', assignment: 'all' })).total).toBe(3);
    expect((await bench.engine.rollouts.list({ ...page, assignment: 'none' })).rollouts).toEqual([]);
    expect((await rejection(bench.engine.operations.detail(ids[0] ?? ''))).hint).toBe(
      `that is a rollout: orch rollouts show ${ids[0]}`,
    );
  });
});

describe('a restart', () => {
  it('halts rollouts where the settings say so, and agents in flight finish', async () => {
    const { bench, agents } = await fleet(3, { onRestart: () => 'halt' });
    const id = await begin(bench, { concurrency: 1 });
    await restart(bench, agents);
    await reaches(bench, id, { state: 'halted', reason: 'the orchestrator restarted' });
    await work(bench, ...agents);
    await becomes(bench, id, ['succeeded', 'waiting', 'waiting']);
    await bench.engine.rollouts.resume(id, ALICE);
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded' });
  });

  it('halts the rollouts of an operator who may no longer apply', async () => {
    let isAllowed = true;
    const { bench, agents } = await fleet(2, {
      rightsOf: async (_db, { id }) => (isAllowed || id === BOB.actor.id ? ALL_RIGHTS : NO_RIGHTS),
    });
    const id = await begin(bench, { concurrency: 1 });
    isAllowed = false;
    await restart(bench, agents);
    const reason = 'operator alice was removed, has expired or may no longer apply';
    await reaches(bench, id, { state: 'halted', reason });
    await work(bench, ...agents);
    await bench.engine.rollouts.resume(id, BOB);
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded' });
  });

  it('halts when the time of its operator is over', async () => {
    let isOver = false;
    const { bench, agents } = await fleet(2, { rightsOf: async () => (isOver ? NO_RIGHTS : ALL_RIGHTS) });
    const id = await begin(bench, { concurrency: 1 });
    isOver = true;
    const { actor } = ALICE;
    await bench.uow.write(async (_tx, emit) =>
      emit({ type: 'operator.expired', actor: SYSTEM, target: actor, summary: 'over', metadata: {} }),
    );
    await bench.settle();
    await reaches(bench, id, { state: 'halted' });
    await work(bench, ...agents);
    await becomes(bench, id, ['succeeded', 'waiting']);
  });

  it('halts before the next agent when its operator has lost the right on it', async () => {
    let lost: string | null = null;
    const { bench, agents } = await fleet(2, {
      rightsOf: async () =>
        lost === null ? null : new Rights('operator', [{ rights: ['apply'], selector: `node_id notin (${lost})` }]),
    });
    for (const agent of agents) agent.diligent = true;
    lost = agents[1]?.nodeId ?? '';
    const id = await begin(bench, { concurrency: 1 });
    const reason = expect.stringMatching(/^operator alice may no longer apply to /);
    await reaches(bench, id, { state: 'halted', reason, counts: { succeeded: 1, waiting: 1 } });
    lost = null;
    await bench.engine.rollouts.resume(id, BOB);
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded' });
  });

  it('waits for agents to return, and takes them for offline after two minutes', async () => {
    const { bench, agents } = await fleet(3);
    const id = await begin(bench, { concurrency: 1 });
    await bench.restart();
    for (const agent of agents) agent.diligent = true;
    agents[0]?.connect();
    await bench.settle();
    await becomes(bench, id, ['succeeded', 'waiting', 'waiting']);
    agents[1]?.connect();
    await bench.settle();
    await pass(bench, MINUTE);
    await becomes(bench, id, ['succeeded', 'succeeded', 'waiting']);
    await pass(bench, MINUTE);
    await becomes(bench, id, ['succeeded', 'succeeded', 'unreachable']);
    await reaches(bench, id, { state: 'failed' });
  });

  it('leaves out an agent that was starting when the rollout was cancelled and the orchestrator died', async () => {
    const { bench, agents } = await fleet(1);
    agents[0]?.disconnect();
    const id = await begin(bench, { whenOnlineSecs: 600 });
    expect(await states(bench, id)).toEqual(['waiting']);
    const cancelled = { state: 'cancelled', reason: 'alice cancelled the rollout' } as const;
    await bench.db.updateTable('rollouts').set(cancelled).where('rollout_id', '=', id).execute();
    await bench.restart();
    await reaches(bench, id, { state: 'cancelled', finished_at: expect.any(Number) });
    expect(await states(bench, id)).toEqual(['skipped']);
  });

  it('finishes a cancelled rollout whose agents are in flight', async () => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench, { concurrency: 1 });
    await bench.while(bench.engine.rollouts.cancel(id, ALICE));
    await restart(bench, agents);
    await work(bench, ...agents);
    await reaches(bench, id, { state: 'cancelled', finished_at: expect.any(Number) });
    await becomes(bench, id, ['failed', 'skipped']);
  });

  it('holds on to a rollout while the store refuses to be written', async () => {
    const { bench, agents } = await fleet(3);
    const id = await begin(bench, { concurrency: 1 });
    bench.isStoreBroken = true;
    await work(bench, ...agents);
    await pass(bench, 1000);
    bench.isStoreBroken = false;
    agents[0]?.disconnect();
    bench.engine.traffic.disconnected(nodeId('1'));
    agents[0]?.connect();
    await bench.settle();
    await pass(bench, 1000);
    await pass(bench, 1000);
    await reaches(bench, id, { state: 'succeeded', counts: { succeeded: 3 } });
  });
});

describe('waves', () => {
  it('follow one another, with a soak between them that a restart does not prolong', async () => {
    const { bench, agents } = await fleet(5);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { waves: [1, '50%'], soakSecs: 600 });
    const soaking = await get(bench, id);
    expect(soaking.pace.waves).toEqual([1, 2, 2]);
    expect(soaking.wave).toEqual({ number: 1, of: 3, soaking_until: Math.floor(bench.clock.now() / 1000) + 600 });
    await pass(bench, 4 * MINUTE);
    await restart(bench, agents);
    expect((await get(bench, id)).wave).toEqual(soaking.wave);
    await pass(bench, 6 * MINUTE - 1);
    await reaches(bench, id, { counts: { succeeded: 1, waiting: 4 } });
    await pass(bench, 1);
    await reaches(bench, id, { wave: { number: 2 }, counts: { succeeded: 3, waiting: 2 } });
    await pass(bench, 10 * MINUTE);
    await reaches(bench, id, { state: 'running', wave: { number: 3 }, counts: { succeeded: 5 } });
    await pass(bench, 10 * MINUTE);
    await reaches(bench, id, { state: 'succeeded', wave: { number: 3, soaking_until: null } });
  });

  it('soak by the time that passes, whatever the clock says', async () => {
    const { bench, agents } = await fleet(2);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { canary: 1, soakSecs: 600 });
    bench.clock.setWall(bench.clock.now() + 24 * 60 * MINUTE);
    await pass(bench, MINUTE);
    await reaches(bench, id, { counts: { succeeded: 1, waiting: 1 } });
    bench.clock.setWall(bench.clock.now() - 48 * 60 * MINUTE);
    await pass(bench, 9 * MINUTE);
    await reaches(bench, id, { counts: { succeeded: 2 } });
  });

  it('soak at most once more in full when the clock was set back while the orchestrator was stopped', async () => {
    const { bench, agents } = await fleet(2);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { canary: 1, soakSecs: 600 });
    bench.clock.setWall(bench.clock.now() - 24 * 60 * MINUTE);
    await restart(bench, agents);
    await pass(bench, 9 * MINUTE);
    await reaches(bench, id, { counts: { succeeded: 1 } });
    await pass(bench, MINUTE);
    await reaches(bench, id, { counts: { succeeded: 2 } });
  });

  it('that do not ascend are refused', async () => {
    const { bench } = await fleet(1);
    expect(await rejection(begin(bench, { waves: ['50%', '10%'] }))).toMatchObject({
      code: 'invalid_body',
      message: 'the waves do not ascend: 10% comes after 50%',
    });
  });
});

describe('offline agents', () => {
  it('are skipped on request, and do not count', async () => {
    const { bench, agents } = await fleet(3);
    if (agents[0]) await bench.disconnect(agents[0]);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { maxFailures: 1, skipOffline: true });
    await reaches(bench, id, { state: 'succeeded', counts: { skipped: 1, succeeded: 2 } });
  });

  it('are waited for, hold up no wave, and are applied when they return, also after a restart', async () => {
    const { bench, agents } = await fleet(4);
    const [first, second, third, fourth] = agents;
    for (const agent of [first, third]) if (agent) await bench.disconnect(agent);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { canary: 2, whenOnlineSecs: 3600 });
    // One canary has succeeded, so the one that is away holds nothing up.
    await becomes(bench, id, ['waiting', 'succeeded', 'waiting', 'succeeded']);
    await reaches(bench, id, { state: 'running' });
    third?.connect();
    await bench.settle();
    await becomes(bench, id, ['waiting', 'succeeded', 'succeeded', 'succeeded']);
    await bench.restart();
    for (const agent of [second, third, fourth]) agent?.connect();
    await bench.settle();
    await pass(bench, 30 * MINUTE);
    first?.connect();
    await bench.settle();
    await reaches(bench, id, { state: 'succeeded' });
    expect(agents.map(runsOf)).toEqual([1, 1, 1, 1]);
  });

  it('hold up the next wave as long as no agent of theirs was applied', async () => {
    const { bench, agents } = await fleet(3);
    for (const agent of agents) await bench.disconnect(agent);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { canary: 1, whenOnlineSecs: 3600 });
    agents[2]?.connect();
    await bench.settle();
    await becomes(bench, id, ['waiting', 'waiting', 'waiting']);
    agents[0]?.connect();
    await bench.settle();
    await becomes(bench, id, ['succeeded', 'waiting', 'succeeded']);
  });

  it.each(['with', 'without'])('are unreachable when their time is over, %s a clock that is set back', async (how) => {
    const { bench, agents } = await fleet(2);
    if (agents[0]) await bench.disconnect(agents[0]);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { whenOnlineSecs: 600 });
    if (how === 'with') bench.clock.setWall(bench.clock.now() - 60 * MINUTE);
    await pass(bench, 10 * MINUTE - 1);
    await becomes(bench, id, ['waiting', 'succeeded']);
    await pass(bench, 1);
    await becomes(bench, id, ['unreachable', 'succeeded']);
    agents[0]?.connect();
    await bench.settle();
    expect(runsOf(agents[0])).toBe(0);
    await reaches(bench, id, { state: 'failed' });
  });

  it('are not started after their time when they return from a restart', async () => {
    const { bench, agents } = await fleet(2);
    const [first, second] = agents;
    if (first) await bench.disconnect(first);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { whenOnlineSecs: 600 });
    await becomes(bench, id, ['waiting', 'succeeded']);
    await bench.restart();
    second?.connect();
    await bench.settle();
    // The time ends while the orchestrator still waits for the agents that it had before.
    bench.clock.advance(MINUTE);
    bench.clock.setWall(bench.clock.now() + 9 * MINUTE);
    first?.connect();
    await bench.settle();
    await becomes(bench, id, ['unreachable', 'succeeded']);
    expect(runsOf(first)).toBe(0);
  });

  it('are unreachable after their time, while those that are connected when their wave begins are started', async () => {
    const { bench, agents } = await fleet(3);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { waves: [1], soakSecs: 1200, whenOnlineSecs: 600 });
    if (agents[2]) await bench.disconnect(agents[2]);
    await pass(bench, 20 * MINUTE);
    await becomes(bench, id, ['succeeded', 'succeeded', 'unreachable']);
  });

  it.each(['before', 'after'])('are not started after their time when they return %s it in a pause', async (when) => {
    const { bench, agents } = await fleet(2);
    const [first] = agents;
    if (first) await bench.disconnect(first);
    for (const agent of agents) agent.diligent = true;
    const id = await begin(bench, { whenOnlineSecs: 600 });
    await becomes(bench, id, ['waiting', 'succeeded']);
    await bench.engine.rollouts.pause(id, null, ALICE);
    if (when === 'before') {
      first?.connect();
      await bench.settle();
    }
    await pass(bench, 10 * MINUTE);
    first?.connect();
    await bench.settle();
    await becomes(bench, id, ['waiting', 'succeeded']);
    await bench.engine.rollouts.resume(id, ALICE);
    await becomes(bench, id, ['unreachable', 'succeeded']);
    expect(runsOf(first)).toBe(0);
    await reaches(bench, id, { state: 'failed' });
  });

  it('are started when a retry prolongs the time after which they have returned', async () => {
    const { bench, agents } = await fleet(2);
    const [first, second] = agents;
    if (first) await bench.disconnect(first);
    const id = await begin(bench, { whenOnlineSecs: 600 });
    await becomes(bench, id, ['waiting', 'running']);
    await bench.engine.rollouts.operatorRemoved(ALICE.actor);
    bench.clock.setWall(bench.clock.now() + 10 * MINUTE);
    first?.connect();
    await bench.settle();
    await becomes(bench, id, ['waiting', 'running']);
    await bench.engine.rollouts.retry(id, BOB);
    await becomes(bench, id, ['running', 'running']);
    await work(bench, first, second);
    await reaches(bench, id, { state: 'succeeded' });
  });

  it('are not started when the clock was set beyond their time, and not after a halt', async () => {
    const { bench, agents } = await fleet(3);
    if (agents[0]) await bench.disconnect(agents[0]);
    for (const agent of agents) agent.diligent = true;
    const late = await begin(bench, { whenOnlineSecs: 600 });
    bench.clock.setWall(bench.clock.now() + 60 * MINUTE);
    agents[0]?.connect();
    await bench.settle();
    expect(runsOf(agents[0])).toBe(0);
    await becomes(bench, late, ['unreachable', 'succeeded', 'succeeded']);
    if (agents[0]) await bench.disconnect(agents[0]);
    agents[1]?.mishaps.set('/site', 'fail');
    const halted = await begin(bench, { whenOnlineSecs: 600, maxFailures: 1 });
    agents[0]?.connect();
    await bench.settle();
    await becomes(bench, halted, ['waiting', 'failed', 'waiting']);
    expect(runsOf(agents[0])).toBe(0);
  });
});

describe('agents that change during a rollout', () => {
  it('are left out when they are rejected or removed, also while they are waited for', async () => {
    const { bench, agents } = await fleet(4);
    if (agents[2]) await bench.disconnect(agents[2]);
    const id = await begin(bench, { concurrency: 1, whenOnlineSecs: 3600 });
    if (agents[1]) await bench.reject(agents[1]);
    await work(bench, ...agents);
    await becomes(bench, id, ['succeeded', 'skipped', 'waiting', 'succeeded']);
    await deleteAgent(bench.db, nodeId('3'));
    await bench.engine.traffic.revoked(nodeId('3'));
    await bench.settle();
    const { agents: ended, state } = await get(bench, id);
    expect(ended.map(({ error }) => error?.code ?? null)).toEqual([
      null,
      'agent_not_approved',
      'agent_not_found',
      null,
    ]);
    expect(state).toBe('succeeded');
  });

  it('in flight end as failed when they are removed', async () => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench);
    if (agents[0]) await bench.reject(agents[0]);
    await work(bench, agents[1]);
    const { agents: ended, state } = await get(bench, id);
    expect([state, ...ended.map(({ error }) => error?.message ?? null)]).toEqual([
      'failed',
      'the agent was rejected or removed',
      null,
    ]);
  });

  it('keep the name that they had when it began', async () => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench, { concurrency: 1 });
    await updateAgent(bench.db, nodeId('2'), { name: 'renamed' });
    await work(bench, ...agents);
    expect((await get(bench, id)).agents.map(({ name, state }) => [name, state])).toEqual([
      ['web-1', 'succeeded'],
      ['web-2', 'succeeded'],
    ]);
  });
});

it('waits for an apply that only the agent knows, without an alarm', async () => {
  const { bench, agents } = await fleet(1);
  for (const agent of agents) agent.hasOtherApply = true;
  const id = await begin(bench);
  await work(bench, ...agents);
  await reaches(bench, id, {
    state: 'running',
    agents: [{ state: 'waiting', error: { code: 'operation_in_progress' } }],
  });
  for (const agent of agents) agent.hasOtherApply = false;
  await pass(bench, 1_000);
  await becomes(bench, id, ['succeeded']);
  expect(bench.events.filter(({ type }) => type === 'rollout.failed')).toEqual([]);
});

describe('two rollouts', () => {
  it('that meet on one machine apply to it one at a time, and the second waits without an alarm', async () => {
    const { bench, agents } = await fleet(2);
    const first = await begin(bench);
    const second = await begin(bench, {}, BOB);
    const { agents: waiting } = await get(bench, second);
    expect(waiting.map(({ state, error }) => [state, error?.code])).toEqual([
      ['waiting', 'operation_in_progress'],
      ['waiting', 'operation_in_progress'],
    ]);
    await work(bench, ...agents);
    await becomes(bench, first, ['succeeded', 'succeeded']);
    await pass(bench, 1_000);
    await becomes(bench, second, ['succeeded', 'succeeded']);
    await reaches(bench, second, { state: 'succeeded', reason: null });
    expect(agents.map(runsOf)).toEqual([2, 2]);
    expect(bench.events.filter(({ type }) => type === 'rollout.failed')).toEqual([]);
  });

  it('that wait can be cancelled, and wait again after a restart', async () => {
    const { bench, agents } = await fleet(1);
    const first = await begin(bench);
    const second = await begin(bench, {}, BOB);
    const third = await begin(bench, {}, BOB);
    await bench.engine.rollouts.cancel(third, BOB);
    await becomes(bench, third, ['skipped']);
    await restart(bench, agents);
    await becomes(bench, second, ['waiting']);
    await work(bench, ...agents);
    await becomes(bench, first, ['succeeded']);
    await pass(bench, 1_000);
    await becomes(bench, second, ['succeeded']);
    expect(agents.map(runsOf)).toEqual([2]);
  });

  it('fail in the end when the other operation does not end', async () => {
    const { bench } = await fleet(1);
    await begin(bench);
    const second = await begin(bench, {}, BOB);
    for (let ticks = 0; ticks < 600; ticks += 1) await bench.engine.tick();
    await reaches(bench, second, { state: 'failed', agents: [{ error: { code: 'operation_in_progress' } }] });
  });
});

describe('an agent that falls silent in its apply', () => {
  const told = (bench: Bench) =>
    bench.events.map(({ type }) => type).filter((type) => /^rollout[.](?!applied)/.test(type));

  /** An agent at work that loses its connection, until it counts as lost. */
  async function silence(bench: Bench, agent: ScriptedAgent | undefined): Promise<ScriptedAgent> {
    if (agent === undefined) throw new Error('no agent');
    await bench.disconnect(agent);
    await pass(bench, 61_000);
    return agent;
  }

  async function back(bench: Bench, agent: ScriptedAgent): Promise<void> {
    agent.connect();
    await work(bench, agent);
    await pass(bench, 1_000);
  }

  it('counts as in flight, and its end corrects what was said', async () => {
    const { bench, agents } = await fleet(3);
    const id = await begin(bench, { concurrency: 1 });
    const silent = await silence(bench, agents[0]);
    await reaches(bench, id, { agents: [{ state: 'failed', error: { code: 'agent_timeout' } }, {}, {}] });
    for (let minute = 0; minute < 5; minute += 1) await pass(bench, MINUTE);
    expect(agents.map(({ isBusy }) => isBusy)).toEqual([true, false, false]);
    await back(bench, silent);
    expect(agents.map(({ isBusy }) => isBusy)).toEqual([false, true, false]);
    await work(bench, ...agents);
    await reaches(bench, id, { state: 'succeeded', reason: null, counts: { succeeded: 3, failed: 0 } });
    expect(told(bench)).toEqual(['rollout.succeeded']);
  });

  it('holds the others up for a quarter of an hour at most', async () => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench, { concurrency: 1 });
    await becomes(bench, id, ['running', 'waiting']);
    await silence(bench, agents[0]);
    await becomes(bench, id, ['failed', 'waiting']);
    await pass(bench, 14 * MINUTE);
    expect(agents[1]?.isBusy).toBe(false);
    await pass(bench, MINUTE);
    expect(agents[1]?.isBusy).toBe(true);
  });

  it.each([
    ['at once', async () => undefined],
    ['after a restart', async (bench: Bench, agents: readonly ScriptedAgent[]) => restart(bench, agents.slice(1))],
  ])('corrects a rollout that has ended, %s', async (_when, between) => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench);
    const silent = await silence(bench, agents[0]);
    await work(bench, agents[1]);
    await reaches(bench, id, { state: 'failed', reason: '1 agent did not succeed' });
    await between(bench, agents);
    await back(bench, silent);
    await reaches(bench, id, { state: 'succeeded', reason: null, counts: { succeeded: 2, failed: 0 } });
    expect(told(bench)).toEqual(['rollout.failed', 'rollout.succeeded']);
    expect(bench.events.at(-1)?.summary).toContain('web-1 was silent, and has reported its end');
  });

  it('is one less of those that did not succeed', async () => {
    const { bench, agents } = await fleet(3);
    agents[2]?.mishaps.set('/site', 'fail');
    const id = await begin(bench);
    const silent = await silence(bench, agents[0]);
    await work(bench, agents[1], agents[2]);
    await reaches(bench, id, { state: 'failed', reason: '2 agents did not succeed' });
    await back(bench, silent);
    await reaches(bench, id, {
      state: 'failed',
      reason: '1 agent did not succeed',
      counts: { succeeded: 2, failed: 1 },
    });
    expect(told(bench)).toEqual(['rollout.failed']);
  });

  it('starts nothing in a rollout that has halted because of it', async () => {
    const { bench, agents } = await fleet(2);
    const id = await begin(bench, { canary: 1 });
    const silent = await silence(bench, agents[0]);
    await reaches(bench, id, { state: 'halted' });
    await back(bench, silent);
    const reason = '1 of 1 canary agents did not succeed; later web-1 reported that it has succeeded';
    await reaches(bench, id, { state: 'halted', reason, agents: [{ state: 'succeeded' }, { state: 'waiting' }] });
    await bench.engine.rollouts.resume(id, ALICE);
    await work(bench, ...agents);
    await reaches(bench, id, { state: 'succeeded', counts: { succeeded: 2 } });
  });

  it('corrects a rollout also when its operation had been given up', async () => {
    const { bench, agents } = await fleet(1);
    const [agent] = agents;
    if (agent === undefined) throw new Error('no agent');
    const id = await begin(bench);
    await bench.disconnect(agent);
    await bench.restart();
    await pass(bench, 16 * MINUTE);
    await reaches(bench, id, { state: 'failed', agents: [{ state: 'failed', error: { code: 'interrupted' } }] });
    await back(bench, agent);
    await reaches(bench, id, { state: 'succeeded', agents: [{ state: 'succeeded', error: null }] });
  });
});

describe('the operator of a rollout', () => {
  it('takes no further agent with them when they are removed', async () => {
    const { bench, agents } = await fleet(3);
    const [mine, theirs] = [await begin(bench, { concurrency: 1 }), await begin(bench, { canary: 1 }, BOB)];
    await bench.engine.rollouts.operatorRemoved(ALICE.actor);
    await work(bench, ...agents);
    await reaches(bench, mine, { state: 'halted', reason: 'operator alice was removed' });
    await becomes(bench, mine, ['succeeded', 'waiting', 'waiting']);
    await pass(bench, 1_000);
    await reaches(bench, theirs, { state: 'succeeded' });
  });
});

describe('health checks at the end of a soak', () => {
  const CHECKED = `name: site
supports: [{platform: linux}]
resources:
  - resource: {file-unix: {path: /site, content: x}}
verify:
  - name: answers
    script: {program: sh, run: 'true'}
`;

  async function checked(count: number) {
    const made = await fleet(count);
    await made.bench.engine.modules.upload({ name: 'site', content: CHECKED }, ALICE);
    for (const agent of made.agents) agent.diligent = true;
    return made;
  }

  it('let the next wave start when all are well', async () => {
    const { bench, agents } = await checked(3);
    const id = await begin(bench, { canary: 1, soakSecs: 60 });
    await becomes(bench, id, ['succeeded', 'waiting', 'waiting']);
    await pass(bench, MINUTE);
    await becomes(bench, id, ['succeeded', 'succeeded', 'succeeded']);
    const asked = (agent: ScriptedAgent | undefined) =>
      agent?.received.filter((message) => message.type === 'run' && message.mode === 'verify').length;
    expect(agents.map(asked)).toEqual([1, 0, 0]);
    await pass(bench, MINUTE);
    await reaches(bench, id, { state: 'succeeded' });
    expect(agents.map(asked)).toEqual([1, 1, 1]);
  });

  it('halt the rollout when one fails, also behind a bound that allows failures', async () => {
    const { bench, agents } = await checked(3);
    const id = await begin(bench, { canary: 1, soakSecs: 60, maxFailures: 3 });
    await becomes(bench, id, ['succeeded', 'waiting', 'waiting']);
    agents[0]?.unhealthy.set('answers', 'it does not answer');
    await pass(bench, MINUTE);
    const reason = 'health checks failed on 1 of 1 agents of wave 1';
    await reaches(bench, id, { state: 'halted', reason, counts: { failed: 1, waiting: 2 } });
    expect((await get(bench, id)).agents[0]?.error).toMatchObject({ code: 'verify_failed' });
    agents[0]?.unhealthy.clear();
    await bench.engine.rollouts.retry(id, ALICE);
    await becomes(bench, id, ['succeeded', 'waiting', 'waiting']);
    await pass(bench, MINUTE);
    await becomes(bench, id, ['succeeded', 'succeeded', 'succeeded']);
  });

  it('fail the rollout when one fails in the last wave', async () => {
    const { bench, agents } = await checked(2);
    const id = await begin(bench, { soakSecs: 60 });
    await becomes(bench, id, ['succeeded', 'succeeded']);
    agents[1]?.unhealthy.set('answers', 'it does not answer');
    await pass(bench, MINUTE);
    await reaches(bench, id, { state: 'failed', reason: 'health checks failed on 1 of 2 agents of wave 1' });
    await becomes(bench, id, ['succeeded', 'failed']);
  });

  it('run again after a restart in the middle of them, and wait for agents that are away for a moment', async () => {
    const { bench, agents } = await checked(2);
    const id = await begin(bench, { canary: 1, soakSecs: 60 });
    await becomes(bench, id, ['succeeded', 'waiting']);
    agents[0]?.disconnect();
    bench.engine.traffic.disconnected(nodeId('1'));
    await pass(bench, MINUTE);
    await pass(bench, 1000);
    await reaches(bench, id, { state: 'running', wave: { number: 1 } });
    await restart(bench, agents);
    await pass(bench, 1000);
    await becomes(bench, id, ['succeeded', 'succeeded']);
  });

  it('of a rollout that was retried in the meantime move no other wave', async () => {
    const { bench, agents } = await checked(4);
    agents[0]?.mishaps.set('/site', 'fail');
    const id = await begin(bench, { waves: [2, 3], soakSecs: 60, maxFailures: 4 });
    await becomes(bench, id, ['failed', 'succeeded', 'waiting', 'waiting']);
    await pass(bench, MINUTE);
    await becomes(bench, id, ['failed', 'succeeded', 'succeeded', 'waiting']);
    if (agents[2]) agents[2].diligent = false;
    await pass(bench, MINUTE);
    agents[0]?.mishaps.clear();
    // At once, before the rollout leaves the memory, and while the checks of wave 2 run.
    const { rollouts } = bench.engine;
    await Promise.all([rollouts.cancel(id, ALICE), rollouts.retry(id, ALICE)]);
    await becomes(bench, id, ['succeeded', 'succeeded', 'succeeded', 'waiting']);
    await work(bench, agents[2]);
    await reaches(bench, id, { state: 'running', wave: { number: 1, soaking_until: expect.any(Number) } });
    for (let wave = 0; wave < 3; wave += 1) await pass(bench, MINUTE);
    await reaches(bench, id, { state: 'succeeded' });
  });

  it('that fail in a pause count when the rollout is resumed', async () => {
    const { bench, agents } = await checked(2);
    const id = await begin(bench, { canary: 1, soakSecs: 60, onFailure: 'revert' });
    await becomes(bench, id, ['succeeded', 'waiting']);
    agents[0]?.unhealthy.set('answers', 'it does not answer');
    if (agents[0]) agents[0].diligent = false;
    await pass(bench, MINUTE);
    await bench.engine.rollouts.pause(id, 'lunch', ALICE);
    await work(bench, agents[0]);
    await reaches(bench, id, { state: 'paused', reason: 'lunch', counts: { succeeded: 1 } });
    await bench.engine.rollouts.resume(id, ALICE);
    await becomes(bench, id, ['reverted', 'skipped']);
  });

  it('fail for an agent that stays away', async () => {
    const { bench, agents } = await checked(2);
    const id = await begin(bench, { canary: 1, soakSecs: 60 });
    await becomes(bench, id, ['succeeded', 'waiting']);
    agents[0]?.disconnect();
    bench.engine.traffic.disconnected(nodeId('1'));
    await pass(bench, MINUTE);
    for (let second = 0; second < 61; second += 1) await pass(bench, 1000);
    await reaches(bench, id, { state: 'halted', counts: { failed: 1, waiting: 1 } });
    expect((await get(bench, id)).agents[0]?.error?.code).toBe('agent_not_connected');
  });
});
