/** Whenever the orchestrator stops, and whatever agents and operators do: every rollout ends, and no apply runs twice. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE, type RequestedPace } from '../../daemon/engine/rollouts/rollout-pace.js';
import { isFault } from '../../src/kernel/fault.js';
import { ALICE, Bench, type ScriptedAgent } from '../support/engine.js';
import { IS_EXHAUSTIVE } from '../support/exhaustive.js';
import { TEST_STORE } from '../support/store-urls.js';

/** Milliseconds that pass at a time: well below those of silence after which an agent counts as lost. */
const STEP = 20_000;
const MODULE = { '/a': '1', '/b': '1' };

/** A bench with an assignment over so many diligent agents. */
async function fleet(count: number) {
  const bench = await new Bench().open();
  const agents: ScriptedAgent[] = [];
  for (const digit of '123456789abcdef'.slice(0, count)) agents.push(await bench.agent(digit));
  await bench.upload('site', MODULE);
  await bench.engine.assignments.create({ name: 'all', modules: ['site'], selector: '*', description: null }, ALICE);
  return { bench, agents };
}

async function begin(bench: Bench, pace: Partial<RequestedPace>): Promise<string> {
  const target = { kind: 'assignment', name: 'all' } as const;
  const request = {
    target,
    modules: [],
    limits: NO_LIMITS,
    expect: null,
    pace: { ...DEFAULT_PACE, ...pace },
  };
  return (await bench.engine.rollouts.apply(request, ALICE)).id;
}

/** Gives way to refusals, which are part of the model. */
async function tolerated<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (!isFault(error)) throw error;
    return null;
  }
}

const idsOf = async (bench: Bench): Promise<readonly string[]> => {
  const page = { rights: ALL_RIGHTS, limit: 50, offset: 0, state: null, assignment: null };
  return (await bench.engine.rollouts.list(page)).rollouts.map(({ rollout_id }) => rollout_id);
};

/** Lets everything go well until each rollout has ended. Halted and paused ones are resumed. */
async function recover(bench: Bench, agents: readonly ScriptedAgent[]): Promise<void> {
  bench.isStoreBroken = false;
  bench.writesLeft = null;
  for (let round = 0; ; round += 1) {
    for (const agent of agents) {
      agent.diligent = true;
      agent.mishaps.clear();
      if (!agent.connected) agent.connect();
    }
    bench.clock.advance(STEP);
    await bench.engine.tick();
    await bench.settle();
    const open: string[] = [];
    for (const id of await idsOf(bench)) {
      const { state, finished_at } = await bench.engine.rollouts.get(id);
      if (finished_at === null) open.push(`${id} ${state}`);
      if (state === 'paused' || state === 'halted') await tolerated(bench.engine.rollouts.resume(id, ALICE));
    }
    if (open.length === 0) return;
    if (round > 180) throw new Error(`rollouts do not end: ${open.join(', ')}`);
  }
}

/** Each item of each run was carried out once, and each agent of a rollout has the end that its operation has. */
async function check(bench: Bench, agents: readonly ScriptedAgent[], retries = 0): Promise<void> {
  for (const agent of agents) for (const [key, count] of agent.executions) expect([key, count]).toEqual([key, 1]);
  for (const id of await idsOf(bench)) {
    const rollout = await bench.engine.rollouts.get(id);
    const page = { rights: ALL_RIGHTS, limit: 500, offset: 0, status: null, rollout: id };
    const { operations } = await bench.engine.operations.list(page);
    const { agents: members, counts, state } = rollout;
    for (const { node_id, state: end, operation_id } of members) {
      const own = operations.filter((operation) => operation.node_id === node_id);
      expect(own.length).toBeLessThanOrEqual(1 + retries);
      expect(['succeeded', 'failed', 'unreachable', 'skipped']).toContain(end);
      if (operation_id === null) continue;
      const operation = own.find((one) => one.operation_id === operation_id);
      expect(operation).toBeDefined();
      expect(end === 'succeeded').toBe(operation?.status === 'succeeded');
    }
    expect(members.filter(({ state: end }) => end === 'succeeded')).toHaveLength(counts.succeeded);
    expect(counts.waiting + counts.running).toBe(0);
    if (state === 'succeeded') expect(counts.failed + counts.unreachable).toBe(0);
    const ends = bench.events.filter(
      ({ type, metadata }) => metadata.rollout_id === id && /succeeded|failed/.test(type),
    );
    // The end of a silent agent may have corrected a rollout that had failed.
    const types = ends.map(({ type }) => type);
    if (types.length === 2) expect(types).toEqual(['rollout.failed', 'rollout.succeeded']);
    else expect(types).toHaveLength(state === 'cancelled' ? 0 : 1);
    if (state !== 'cancelled') expect(types.at(-1)).toBe(`rollout.${state}`);
  }
}

/** Between two writes after which the orchestrator dies. */
const STRIDE = IS_EXHAUSTIVE ? 1 : TEST_STORE === 'sqlite' ? 2 : 6;

describe('a rollout of an orchestrator that dies', () => {
  /** Returns false when the rollout ended within so many writes. */
  async function dyingAfter(writes: number, pace: Partial<RequestedPace>): Promise<boolean> {
    const { bench, agents } = await fleet(4);
    try {
      bench.writesLeft = writes;
      const id = await tolerated(begin(bench, pace));
      // Long enough for the soaks of all waves.
      for (let step = 0; step < 9; step += 1) {
        await bench.settle();
        // The dead see no time pass.
        if (bench.writesLeft === 0) break;
        bench.clock.advance(STEP);
        await bench.engine.tick();
      }
      await bench.settle();
      const isDead = bench.writesLeft === 0;
      await bench.restart();
      await recover(bench, agents);
      await check(bench, agents);
      expect(await idsOf(bench)).toHaveLength(id === null ? 0 : 1);
      if (id !== null) {
        expect(await bench.engine.rollouts.get(id)).toMatchObject({ state: 'succeeded', counts: { succeeded: 4 } });
        expect(agents.map(({ history }) => history.size)).toEqual([1, 1, 1, 1]);
      }
      return isDead;
    } finally {
      await bench.close();
    }
  }

  it.each([
    ['all at once', {}],
    ['one after the other', { concurrency: 1 }],
    ['in waves', { waves: [1, 2] }],
    ['with canaries and a soak', { canary: 1, soakSecs: 60 }],
  ])('goes on after any of its writes, %s', async (_what, pace) => {
    let writes = 0;
    while (await dyingAfter(writes, pace)) {
      writes += STRIDE;
      if (writes > 80) throw new Error('the rollout does not end');
    }
    expect(writes).toBeGreaterThan(8);
  });
});

type Command =
  | { readonly do: 'begin'; readonly pace: Partial<RequestedPace> }
  | { readonly do: 'connect' | 'disconnect' | 'crash' | 'lazy' | 'diligent' | 'mishap'; readonly agent: number }
  | { readonly do: 'pause' | 'resume' | 'cancel'; readonly rollout: number }
  | { readonly do: 'restart' | 'flow' }
  | { readonly do: 'die'; readonly writes: number }
  | { readonly do: 'disk'; readonly isBroken: boolean }
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'clock'; readonly hours: number };

const pace: fc.Arbitrary<Partial<RequestedPace>> = fc.record(
  {
    concurrency: fc.constantFrom(1, 2, 32),
    canary: fc.constantFrom(0, 1),
    waves: fc.constantFrom<(readonly (number | string)[])[]>([], [1], ['50%']),
    soakSecs: fc.constantFrom(0, 60),
    maxFailures: fc.constantFrom(null, 1, 2),
    skipOffline: fc.boolean(),
    whenOnlineSecs: fc.constantFrom(null, 600),
  },
  { requiredKeys: [] },
);
const agent = fc.nat({ max: 3 });
const rollout = fc.nat({ max: 2 });
const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: fc.record({ do: fc.constant('begin'), pace }), weight: 3 },
  { arbitrary: fc.record({ do: fc.constantFrom('connect', 'diligent'), agent }), weight: 6 },
  { arbitrary: fc.record({ do: fc.constantFrom('disconnect', 'crash', 'lazy', 'mishap'), agent }), weight: 4 },
  { arbitrary: fc.record({ do: fc.constantFrom('pause', 'resume', 'resume', 'cancel'), rollout }), weight: 3 },
  { arbitrary: fc.record({ do: fc.constant('flow') }), weight: 8 },
  { arbitrary: fc.record({ do: fc.constant('restart') }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant('die'), writes: fc.nat({ max: 12 }) }), weight: 3 },
  { arbitrary: fc.record({ do: fc.constant('disk'), isBroken: fc.boolean() }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant('wait'), seconds: fc.constantFrom(1, 61, 121, 601) }), weight: 4 },
  { arbitrary: fc.record({ do: fc.constant('clock'), hours: fc.constantFrom(-2, 2) }), weight: 1 },
);

async function run(bench: Bench, agents: readonly ScriptedAgent[], step: Command): Promise<void> {
  const one = 'agent' in step ? agents[step.agent] : undefined;
  switch (step.do) {
    case 'begin':
      await tolerated(begin(bench, step.pace));
      return;
    case 'connect':
      if (one?.connected === false) one.connect();
      return;
    case 'disconnect':
      if (one?.connected) await bench.disconnect(one);
      return;
    case 'crash':
      if (one?.connected) await bench.disconnect(one);
      one?.crash();
      return;
    case 'lazy':
    case 'diligent':
      if (one !== undefined) one.diligent = step.do === 'diligent';
      return;
    case 'mishap':
      if (one?.mishaps.delete('/a') === false) one.mishaps.set('/a', 'fail');
      return;
    case 'pause':
    case 'resume':
    case 'cancel': {
      const id = (await idsOf(bench))[step.rollout];
      if (id === undefined) return;
      const { rollouts } = bench.engine;
      if (step.do === 'pause') await tolerated(rollouts.pause(id, null, ALICE));
      else if (step.do === 'resume') await tolerated(rollouts.resume(id, ALICE));
      else await tolerated(rollouts.cancel(id, ALICE));
      return;
    }
    case 'flow':
      await bench.settle();
      return;
    case 'die':
      bench.writesLeft = step.writes;
      await bench.settle();
      await bench.restart();
      return;
    case 'restart':
      bench.isStoreBroken = false;
      await bench.restart();
      return;
    case 'disk':
      bench.isStoreBroken = step.isBroken;
      return;
    case 'clock':
      bench.clock.setWall(bench.clock.now() + step.hours * 3_600_000);
      return;
    case 'wait':
      bench.clock.advance(step.seconds * 1000);
      await bench.engine.tick();
      return;
  }
}

describe('rollouts under any fate', () => {
  const ends = fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60, size: 'max' }), async (steps) => {
    const { bench, agents } = await fleet(4);
    try {
      for (const step of steps) await run(bench, agents, step);
      bench.isStoreBroken = false;
      await bench.settle();
      await bench.restart();
      await recover(bench, agents);
      await check(bench, agents);
    } finally {
      await bench.close();
    }
  });

  it('end, with nothing applied twice', async () => {
    await fc.assert(ends, { numRuns: Number(process.env.ORCH_MODEL_RUNS ?? 25), endOnFailure: true });
  });

  it.each([
    ['an agent was starting when its rollout was cancelled', -1423575590, '19'],
    ['the end of a silent agent said nothing new', 2051972074, '1'],
  ])('end after a history in which %s', async (_what, seed, path) => {
    await fc.assert(ends, { seed, path, numRuns: 1, endOnFailure: true });
  });
});
