import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { listOperations } from '../../daemon/engine/operations/operation-store.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import type { AssignmentMode } from '../../src/kernel/assignment-modes.js';
import { agentRow } from '../support/database.js';
import { ALICE, type Bench, nodeId, openBench, type ScriptedAgent } from '../support/engine.js';

const MINUTE = 60_000;

const assign = (bench: Bench, mode: AssignmentMode, modules: readonly string[] = ['web'], name = 'all') =>
  bench.engine.assignments.create({ name, modules, selector: 'platform=linux', description: null, mode }, ALICE);

/** The applies of an agent, oldest first, as who requested them and their states. */
async function appliesOf(bench: Bench, { nodeId: id }: ScriptedAgent): Promise<string[]> {
  const rows = await listOperations(bench.db, { nodeId: id, limit: 100 });
  return rows
    .map(({ requested_by, state }) => `${requested_by === ALICE.actor.id ? 'alice' : requested_by} ${state}`)
    .reverse();
}

const stopOf = (bench: Bench, agent: ScriptedAgent) => bench.engine.standings.of(agent.nodeId).automation_stopped;

const countOf = (bench: Bench, type: string): number => bench.eventTypes(type).length;

/** A connected agent with module web applied, whose assignment has the mode. */
async function applied(mode: AssignmentMode, options: Parameters<typeof openBench>[0] = {}) {
  const bench = await openBench(options);
  await bench.upload('web', { '/a': '1' });
  const agent = await bench.agent('a', { connected: false });
  await bench.arrive(agent);
  await assign(bench, 'manual');
  await bench.apply(agent, []);
  await bench.engine.assignments.update('all', { modules: null, selector: null, description: null, mode }, ALICE);
  await bench.rest();
  return { bench, agent };
}

/** Something else changes the machine, and the next check finds it. */
async function drift(bench: Bench, agent: ScriptedAgent, path = '/a'): Promise<void> {
  agent.machine.set(path, 'by hand');
  await bench.drift(agent);
  bench.clock.advance(2 * MINUTE);
  await bench.rest();
}

describe('an assignment in mode on-connect', () => {
  it('gives an agent that returns what it has missed', async () => {
    const { bench, agent } = await applied('on-connect');
    await bench.leave(agent);
    await bench.upload('web', { '/a': '2' });
    await bench.rest();
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('behind');
    await bench.arrive(agent);
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded', 'on-connect:all succeeded']);
    expect(agent.machine.get('/a')).toContain('2');
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('in_sync');
  });

  it('gives a new agent its modules when it connects', async () => {
    const bench = await openBench();
    await bench.upload('web', { '/a': '1' });
    await assign(bench, 'on-connect');
    const agent = await bench.agent('a', { connected: false });
    await bench.arrive(agent);
    expect(await appliesOf(bench, agent)).toEqual(['on-connect:all succeeded']);
    const started = bench.events.find(({ type }) => type === 'state.apply_started');
    expect(started?.actor).toEqual({ id: 'on-connect:all', name: 'on-connect:all', type: 'system' });
  });

  it('applies nothing to an agent that misses nothing, and nothing changed to one that is connected', async () => {
    const { bench, agent } = await applied('on-connect');
    await bench.leave(agent);
    await bench.arrive(agent);
    await bench.upload('web', { '/a': '2' });
    bench.clock.advance(10 * MINUTE);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded']);
  });

  it('leaves an agent alone of which a manual assignment differs too', async () => {
    const { bench, agent } = await applied('on-connect');
    await bench.leave(agent);
    await bench.upload('web', { '/a': '2' });
    await bench.upload('base', { '/b': '1' });
    await assign(bench, 'manual', ['base'], 'base');
    await bench.arrive(agent);
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded']);
    await bench.apply(agent, []);
    await bench.leave(agent);
    await bench.upload('web', { '/a': '3' });
    await bench.arrive(agent);
    expect((await appliesOf(bench, agent)).at(-1)).toBe('on-connect:all succeeded');
  });

  it('waits for a plan of an operator', async () => {
    const { bench, agent } = await applied('on-connect');
    await bench.leave(agent);
    await bench.upload('web', { '/a': '2' });
    agent.diligent = false;
    const planned = bench.engine.plans.plan(
      {
        nodeId: agent.nodeId,
        modules: [],
        signal: new AbortController().signal,
        onStarted: () => undefined,
        onResult: () => undefined,
      },
      ALICE,
    );
    await expect(planned).rejects.toMatchObject({ code: 'agent_not_connected' });
    agent.connect();
    await bench.settle();
    const plan = bench.engine.plans.plan(
      {
        nodeId: agent.nodeId,
        modules: [],
        signal: new AbortController().signal,
        onStarted: () => undefined,
        onResult: () => undefined,
      },
      ALICE,
    );
    await bench.settle();
    await bench.tell('agent.connected', agent);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded']);
    agent.diligent = true;
    await bench.while(plan);
    bench.clock.advance(5000);
    await bench.rest();
    expect((await appliesOf(bench, agent)).at(-1)).toBe('on-connect:all succeeded');
  });
});

describe('an assignment in mode enforce', () => {
  it('goes on soon after the disk of the orchestrator was full', async () => {
    const { bench, agent } = await applied('enforce');
    await bench.upload('web', { '/a': '2' });
    bench.isStoreBroken = true;
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded']);
    bench.isStoreBroken = false;
    bench.clock.advance(MINUTE);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded', 'enforce:all succeeded']);
  });

  it('applies changed modules and repairs drift', async () => {
    const { bench, agent } = await applied('enforce');
    await bench.upload('web', { '/a': '2' });
    await bench.rest();
    await drift(bench, agent);
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded', 'enforce:all succeeded', 'repair:all succeeded']);
    expect(agent.machine.get('/a')).toContain('2');
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('in_sync');
  });

  it('does not repair what a manual assignment gave', async () => {
    const { bench, agent } = await applied('enforce');
    await bench.upload('base', { '/b': '1' });
    await assign(bench, 'manual', ['base'], 'base');
    await bench.apply(agent, []);
    await drift(bench, agent, '/b');
    expect((await appliesOf(bench, agent)).filter((one) => one.startsWith('repair'))).toEqual([]);
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('drifted');
  });

  it.each(['an apply of the operator', 'a resumption'] as const)(
    'stops when something else changes a resource again and again, until %s',
    async (how) => {
      const { bench, agent } = await applied('enforce');
      for (let day = 0; day < 4; day += 1) await drift(bench, agent);
      const repairs = async () =>
        (await appliesOf(bench, agent)).filter((one) => one === 'repair:all succeeded').length;
      expect(await repairs()).toBe(3);
      expect(stopOf(bench, agent)).toMatchObject({ code: 'repaired_again' });
      expect(stopOf(bench, agent)?.message).toContain('file-unix /a was repaired 3 times within a day');
      expect(countOf(bench, 'enforcement.stopped')).toBe(1);
      await bench.restart();
      await bench.arrive(agent);
      await drift(bench, agent);
      expect(await repairs()).toBe(3);
      expect(countOf(bench, 'enforcement.stopped')).toBe(1);
      if (how === 'a resumption') await bench.engine.assignments.resume('all', ALICE);
      else await bench.apply(agent, []);
      await bench.rest();
      expect(stopOf(bench, agent)).toBeNull();
      bench.clock.advance(2 * MINUTE);
      await drift(bench, agent);
      expect(await repairs()).toBeGreaterThan(3);
    },
  );

  it('stops once for a removal that the guard refuses, until the content changes', async () => {
    const { bench, agent } = await applied('enforce');
    await bench.upload('web', {});
    await bench.rest();
    expect(stopOf(bench, agent)).toMatchObject({ code: 'removal_guard' });
    bench.clock.advance(60 * MINUTE);
    await bench.rest();
    await bench.restart();
    await bench.arrive(agent);
    expect(countOf(bench, 'enforcement.stopped')).toBe(1);
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded']);
    await bench.upload('web', { '/a': '1', '/b': '1' });
    await bench.rest();
    expect(stopOf(bench, agent)).toBeNull();
    expect((await appliesOf(bench, agent)).at(-1)).toBe('enforce:all succeeded');
  });

  it('waits longer after each failure, also over a restart and a clock that is set back', async () => {
    const { bench, agent } = await applied('enforce');
    agent.mishaps.set('/a', 'fail');
    await bench.upload('web', { '/a': '2' });
    await bench.rest();
    const failures = async () => (await appliesOf(bench, agent)).filter((one) => one === 'enforce:all failed').length;
    expect(await failures()).toBe(1);
    bench.clock.advance(MINUTE);
    await bench.rest();
    expect(await failures()).toBe(2);
    await bench.restart();
    bench.clock.advance(MINUTE);
    await bench.arrive(agent);
    expect(await failures()).toBe(2);
    bench.clock.advance(MINUTE);
    await bench.rest();
    expect(await failures()).toBe(3);
    bench.clock.setWall(bench.clock.now() - 24 * 60 * MINUTE);
    bench.clock.advance(4 * MINUTE);
    await bench.rest();
    bench.clock.advance(4 * MINUTE);
    await bench.rest();
    expect(await failures()).toBeGreaterThan(3);
    agent.mishaps.clear();
    await bench.upload('web', { '/a': '3' });
    bench.clock.advance(MINUTE);
    await bench.rest();
    expect((await appliesOf(bench, agent)).at(-1)).toBe('enforce:all succeeded');
  });

  it('stops for an agent on which an operator cancels', async () => {
    const { bench, agent } = await applied('enforce');
    agent.diligent = false;
    await bench.upload('web', { '/a': '2' });
    await bench.engine.standings.idle();
    void bench.engine.tick();
    await bench.settle();
    const [running] = await listOperations(bench.db, { nodeId: agent.nodeId, limit: 1 });
    await bench.engine.applies.cancel(running?.operation_id ?? '', ALICE);
    agent.diligent = true;
    await bench.rest();
    bench.clock.advance(60 * MINUTE);
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded', 'enforce:all cancelled']);
    expect(stopOf(bench, agent)).toMatchObject({ code: 'cancelled', message: 'alice cancelled the last one' });
  });

  it('stops for all agents when changed content fails on too many, and tries no more than may fail', async () => {
    const bench = await openBench({
      automation: () => ({ maxConcurrent: 16, maxFailedAgents: 2, maxRepairs: 3 }),
    });
    await bench.upload('web', { '/a': '1' });
    const agents: ScriptedAgent[] = [];
    for (const digit of '123456') {
      const agent = await bench.agent(digit, { connected: false });
      agent.mishaps.set('/a', 'fail');
      agents.push(agent);
      await bench.arrive(agent);
    }
    await assign(bench, 'enforce');
    await bench.rest();
    bench.clock.advance(60 * MINUTE);
    await bench.rest();
    const failed = async () => (await Promise.all(agents.map((one) => appliesOf(bench, one)))).flat().length;
    expect(await failed()).toBe(2);
    expect(countOf(bench, 'enforcement.stopped')).toBe(1);
    expect(await bench.engine.assignments.get('all', ALL_RIGHTS)).toMatchObject({
      stopped_reason: 'its applies failed on 2 agents within a day',
    });
    for (const agent of agents) agent.mishaps.clear();
    await bench.engine.assignments.resume('all', ALICE);
    bench.clock.advance(60 * MINUTE);
    for (let round = 0; round < 3; round += 1) await bench.rest();
    expect(bench.engine.standings.counts()).toMatchObject({ in_sync: 6 });
  });

  it('leaves the agents and the assignment of a halted rollout alone, over a restart and its cancellation, until an operator resumes', async () => {
    const { bench, agent: canary } = await applied('on-connect');
    const other = await bench.agent('b', { connected: false });
    await bench.arrive(other);
    expect(await appliesOf(bench, other)).toEqual(['on-connect:all succeeded']);
    await bench.upload('web', { '/a': 'broken' });
    canary.mishaps.set('/a', 'fail');
    const run = await bench.engine.rollouts.apply(
      {
        target: { kind: 'assignment', name: 'all' },
        modules: [],
        pace: { ...DEFAULT_PACE, canary: 1 },
        limits: NO_LIMITS,
        expect: null,
      },
      ALICE,
    );
    await bench.rest();
    expect(run.record().state).toBe('halted');
    await bench.leave(other);
    await bench.arrive(other);
    const late = await bench.agent('c', { connected: false });
    await bench.arrive(late);
    await bench.restart();
    for (const agent of [canary, other, late]) await bench.arrive(agent);
    bench.clock.advance(60 * MINUTE);
    await bench.rest();
    expect(await appliesOf(bench, other)).toEqual(['on-connect:all succeeded']);
    expect(await appliesOf(bench, late)).toEqual([]);
    await bench.engine.rollouts.cancel(run.id, ALICE);
    await bench.rest();
    expect(await appliesOf(bench, other)).toEqual(['on-connect:all succeeded']);
    expect(await appliesOf(bench, late)).toEqual([]);
    for (const agent of [other, late]) {
      expect(stopOf(bench, agent)).toMatchObject({ code: 'withdrawn', message: `rollout ${run.id} was cancelled` });
    }
    await bench.engine.assignments.resume('all', ALICE);
    for (const agent of [other, late]) {
      await bench.leave(agent);
      await bench.arrive(agent);
    }
    expect(await appliesOf(bench, other)).toEqual(['on-connect:all succeeded', 'on-connect:all succeeded']);
    expect(await appliesOf(bench, late)).toEqual(['on-connect:all succeeded']);
  });

  it('does not undo the return to an earlier state, until there is other content', async () => {
    const { bench, agent } = await applied('enforce');
    const [first] = await listOperations(bench.db, { nodeId: agent.nodeId, limit: 1 });
    await bench.upload('web', { '/a': '2' });
    await bench.rest();
    expect(await appliesOf(bench, agent)).toEqual(['alice succeeded', 'enforce:all succeeded']);
    await bench.apply(agent, [], { to: first?.operation_id ?? '' });
    await bench.rest();
    bench.clock.advance(60 * MINUTE);
    await bench.rest();
    expect(agent.machine.get('/a')).toContain('"content":"1"');
    expect(stopOf(bench, agent)).toMatchObject({ code: 'withdrawn' });
    await bench.apply(agent, [], { to: first?.operation_id ?? '' });
    await bench.rest();
    expect(agent.machine.get('/a')).toContain('"content":"1"');
    expect(stopOf(bench, agent)).toMatchObject({ code: 'withdrawn' });
    await bench.upload('web', { '/a': '3' });
    await bench.rest();
    expect(agent.machine.get('/a')).toContain('"content":"3"');
  });

  it('counts agents that fall silent during an apply as in progress, also over a restart', async () => {
    const bench = await openBench({ automation: () => ({ maxConcurrent: 16, maxFailedAgents: 2, maxRepairs: 3 }) });
    await bench.upload('web', { '/a': '1' });
    const agents: ScriptedAgent[] = [];
    for (const digit of '12345') {
      const agent = await bench.agent(digit, { connected: false });
      agent.diligent = false;
      agents.push(agent);
      agent.connect();
      await bench.tell('agent.connected', agent);
    }
    await assign(bench, 'enforce');
    const begun = async () => (await listOperations(bench.db, { limit: 100 })).length;
    const wait = async () => {
      for (let round = 0; round < 3; round += 1) {
        await bench.settle();
        await bench.engine.standings.idle();
        void bench.engine.tick();
        await bench.settle();
        bench.clock.advance(2 * MINUTE);
      }
    };
    await wait();
    expect(await begun()).toBe(2);
    await wait();
    expect(await begun()).toBe(2);
    await bench.restart();
    for (const agent of agents) agent.connect();
    await wait();
    expect(await begun()).toBe(2);
  });

  it('stops for all agents when changed content takes too many offline, and goes on with the others when it is resumed', async () => {
    const bench = await openBench({ automation: () => ({ maxConcurrent: 2, maxFailedAgents: 2, maxRepairs: 3 }) });
    await bench.upload('web', { '/a': '1' });
    const agents: ScriptedAgent[] = [];
    for (const digit of '12345') {
      const agent = await bench.agent(digit, { connected: false });
      agent.diligent = false;
      agents.push(agent);
      agent.connect();
      await bench.tell('agent.connected', agent);
    }
    await assign(bench, 'enforce');
    const wait = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute += 1) {
        await bench.settle();
        await bench.engine.standings.idle();
        void bench.engine.tick();
        await bench.settle();
        bench.clock.advance(MINUTE);
      }
    };
    await wait(1);
    const begun = await listOperations(bench.db, { limit: 100 });
    const lost = agents.filter(({ nodeId: id }) => begun.some(({ node_id }) => node_id === id));
    expect(lost).toHaveLength(2);
    for (const agent of agents) {
      if (lost.includes(agent)) await bench.leave(agent);
      else agent.diligent = true;
    }
    await wait(14);
    expect(countOf(bench, 'enforcement.stopped')).toBe(0);
    await wait(4);
    expect(countOf(bench, 'enforcement.stopped')).toBe(1);
    expect(await bench.engine.assignments.get('all', ALL_RIGHTS)).toMatchObject({
      stopped_reason: '2 agents have gone offline during an apply',
    });
    await bench.engine.assignments.resume('all', ALICE);
    for (let round = 0; round < 3; round += 1) await bench.rest();
    expect(bench.engine.standings.counts()).toMatchObject({ in_sync: 3 });
    expect(countOf(bench, 'enforcement.stopped')).toBe(1);
    for (const agent of lost) {
      agent.diligent = true;
      await bench.arrive(agent);
    }
    expect(bench.engine.standings.counts()).toMatchObject({ in_sync: 5 });
  });

  it('applies to at most as many agents at a time as the setting says', async () => {
    const bench = await openBench({
      automation: () => ({ maxConcurrent: 3, maxFailedAgents: 10, maxRepairs: 3 }),
    });
    await bench.upload('web', { '/a': '1' });
    await assign(bench, 'enforce');
    const agents: ScriptedAgent[] = [];
    for (const digit of '12345678') {
      const agent = await bench.agent(digit, { connected: false });
      agent.diligent = false;
      agents.push(agent);
      agent.connect();
      await bench.tell('agent.connected', agent);
    }
    await bench.settle();
    await bench.engine.standings.idle();
    await bench.while(bench.engine.tick());
    expect(agents.filter(({ journal }) => journal.size > 0)).toHaveLength(3);
    for (const agent of agents) agent.diligent = true;
    for (let round = 0; round < 4; round += 1) await bench.rest();
    expect(bench.engine.standings.counts()).toMatchObject({ in_sync: 8 });
  });

  it('does nothing for an agent that is not approved', async () => {
    const bench = await openBench();
    await bench.upload('web', { '/a': '1' });
    await assign(bench, 'enforce');
    await insertAgent(
      bench.db,
      agentRow({ node_id: nodeId('9'), name: null, status: 'pending', created_id: bench.newId() }),
    );
    const agent = bench.fleet.add(nodeId('9'));
    await bench.arrive(agent);
    expect(await appliesOf(bench, agent)).toEqual([]);
  });
});
