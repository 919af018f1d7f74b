/** Rollouts that go back to what the machines of a wave had before, when a bound is reached or a health check fails. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE, type RequestedPace } from '../../daemon/engine/rollouts/rollout-pace.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, nodeId, openBench, type ScriptedAgent } from '../support/engine.js';

/** So many agents to which version one of a module was applied, and whose assignment has version two by now. */
async function fleet(count: number) {
  const bench = await openBench();
  const agents: ScriptedAgent[] = [];
  for (const digit of '123456789'.slice(0, count)) agents.push(await bench.agent(digit));
  await bench.upload('site', { '/site': 'one' });
  await bench.engine.assignments.create({ name: 'all', modules: ['site'], selector: '*', description: null }, ALICE);
  const id = await begin(bench, {});
  await reaches(bench, id, { state: 'succeeded' });
  await bench.upload('site', { '/site': 'two', '/new': 'x' });
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
  const run = await bench.engine.rollouts.apply(request, ALICE);
  await bench.settle();
  return run.id;
}

async function reaches(bench: Bench, id: string, expected: object): Promise<void> {
  for (let round = 0; ; round += 1) {
    await bench.settle();
    try {
      expect(await bench.engine.rollouts.get(id)).toMatchObject(expected);
      return;
    } catch (error) {
      if (round === 100) throw error;
    }
  }
}

const states = async (bench: Bench, id: string) =>
  (await bench.engine.rollouts.get(id)).agents.map(({ state }) => state);

const contentOf = ({ machine }: ScriptedAgent) => [...machine].map(([path, body]) => [path, JSON.parse(body).content]);

const OLD = [['/site', 'one']];
const NEW = [
  ['/site', 'two'],
  ['/new', 'x'],
];

describe('a rollout that reverts', () => {
  it('brings the wave back to what it had, and leaves the others alone', async () => {
    const { bench, agents } = await fleet(4);
    agents[1]?.mishaps.set('/new', 'fail');
    const id = await begin(bench, { waves: [2], onFailure: 'revert' });
    await reaches(bench, id, {
      state: 'reverted',
      reason: '1 of 2 agents of wave 1 did not succeed',
      counts: { reverted: 2, skipped: 2 },
      finished_at: expect.any(Number),
    });
    expect(agents.map(contentOf)).toEqual([OLD, OLD, OLD, OLD]);
    const { agents: members } = await bench.engine.rollouts.get(id);
    expect(members[2]?.error?.message).toBe('not started: 1 of 2 agents of wave 1 did not succeed');
    const { restores } = (await bench.engine.operations.detail(members[0]?.operation_id ?? '')) as {
      restores?: unknown;
    };
    expect(restores).not.toBeNull();
    expect(bench.eventTypes('rollout.').slice(-2)).toEqual(['rollout.halted', 'rollout.reverted']);
    // The orchestrator's believed state agrees with the machines.
    const { applied } = await bench.engine.state.get(nodeId('1'));
    expect(applied.map(({ identity }) => identity)).toEqual(['/site']);
    agents[1]?.mishaps.clear();
    await bench.engine.rollouts.retry(id, ALICE);
    await reaches(bench, id, { state: 'succeeded', counts: { succeeded: 4 } });
    expect(agents.map(contentOf)).toEqual([NEW, NEW, NEW, NEW]);
  });

  it('reverts nothing of the waves before', async () => {
    const { bench, agents } = await fleet(3);
    agents[1]?.mishaps.set('/new', 'fail');
    const id = await begin(bench, { canary: 1, maxFailures: 1, onFailure: 'revert' });
    await reaches(bench, id, { state: 'reverted', counts: { succeeded: 1, reverted: 1, skipped: 1 } });
    expect(agents.map(contentOf)).toEqual([NEW, OLD, OLD]);
  });

  it('takes away everything from a machine that had nothing', async () => {
    const { bench, agents } = await fleet(1);
    const fresh = await bench.agent('9');
    fresh.mishaps.set('/new', 'fail');
    const id = await begin(bench, { maxFailures: 1, onFailure: 'revert' });
    await reaches(bench, id, { state: 'reverted', counts: { reverted: 2 } });
    expect([...agents, fresh].map(contentOf)).toEqual([OLD, []]);
  });

  it('says which agents it could not revert', async () => {
    const { bench, agents } = await fleet(2);
    agents[0]?.mishaps.set('/new', 'fail');
    agents[0]?.mishaps.set('/site', 'fail');
    const id = await begin(bench, { canary: 1, onFailure: 'revert' });
    const reason = '1 of 1 canary agents did not succeed; 1 of 1 agents could not be reverted';
    await reaches(bench, id, { state: 'failed', reason, counts: { failed: 1, skipped: 1 } });
    const [first] = (await bench.engine.rollouts.get(id)).agents;
    expect(first?.error?.message).toContain('it could not be reverted');
  });

  it('says so when the revert of an agent that fell silent ends after all', async () => {
    const { bench, agents } = await fleet(2);
    const [silent, failing] = agents;
    if (silent === undefined || failing === undefined) throw new Error('no agent');
    failing.mishaps.set('/new', 'fail');
    failing.diligent = false;
    const id = await begin(bench, { maxFailures: 1, onFailure: 'revert' });
    await reaches(bench, id, { counts: { succeeded: 1, running: 1 } });
    silent.diligent = false;
    failing.diligent = true;
    await reaches(bench, id, { state: 'reverting', counts: { reverted: 1 } });
    await bench.disconnect(silent);
    bench.clock.advance(61_000);
    await bench.engine.tick();
    const failed = '1 agent has failed; 1 of 2 agents could not be reverted';
    await reaches(bench, id, { state: 'failed', reason: failed, counts: { reverted: 1, failed: 1 } });
    silent.diligent = true;
    silent.connect();
    await reaches(bench, id, { state: 'reverted', counts: { reverted: 2, failed: 0 } });
    expect(agents.map(contentOf)).toEqual([OLD, OLD]);
    expect((await bench.engine.rollouts.get(id)).reason).toBe('1 agent has failed');
    expect(bench.eventTypes('rollout.').slice(-3)).toEqual(['rollout.halted', 'rollout.failed', 'rollout.reverted']);
  });

  it('reverts the wave of the agent that did not return in time, not a later one', async () => {
    const { bench, agents } = await fleet(4);
    if (agents[0]) await bench.disconnect(agents[0]);
    const id = await begin(bench, { waves: [2], whenOnlineSecs: 600, onFailure: 'revert' });
    await reaches(bench, id, { state: 'running', counts: { succeeded: 3, waiting: 1 } });
    bench.clock.advance(600_000);
    await bench.engine.tick();
    const reason = '1 of 2 agents of wave 1 did not succeed';
    await reaches(bench, id, { state: 'reverted', reason, wave: { number: 1 } });
    expect(await states(bench, id)).toEqual(['unreachable', 'reverted', 'succeeded', 'succeeded']);
    expect(agents.map(contentOf)).toEqual([OLD, OLD, NEW, NEW]);
  });

  it('leaves an agent alone that was applied to since', async () => {
    const { bench, agents } = await fleet(4);
    const [first, second] = agents;
    if (first === undefined || second === undefined) throw new Error('no agent');
    await bench.disconnect(first);
    const id = await begin(bench, { waves: [3], whenOnlineSecs: 600, onFailure: 'revert' });
    await reaches(bench, id, { state: 'running', counts: { succeeded: 3, waiting: 1 } });
    await bench.upload('site', { '/site': 'three' });
    const later = await bench.start(second, []);
    await reaches(bench, id, { state: 'running' });
    bench.clock.advance(600_000);
    await bench.engine.tick();
    const reason = '1 of 3 agents of wave 1 did not succeed; 1 of 2 agents could not be reverted';
    await reaches(bench, id, { state: 'failed', reason });
    expect(await states(bench, id)).toEqual(['unreachable', 'failed', 'reverted', 'succeeded']);
    const { error } = (await bench.engine.rollouts.get(id)).agents[1] ?? {};
    expect(error?.message).toBe(`it could not be reverted: the agent was applied to since, by operation ${later}`);
    expect(agents.map(contentOf)).toEqual([OLD, [['/site', 'three']], OLD, NEW]);
  });

  it('has failed when there was nothing to revert', async () => {
    const { bench, agents } = await fleet(2);
    if (agents[0]) await bench.disconnect(agents[0]);
    const id = await begin(bench, { waves: [1], whenOnlineSecs: 600, onFailure: 'revert' });
    bench.clock.advance(600_000);
    await bench.engine.tick();
    const reason = '1 of 1 agents of wave 1 did not succeed; there was nothing to revert';
    await reaches(bench, id, { state: 'failed', reason, counts: { unreachable: 1, skipped: 1 } });
    const halted = bench.events.find(({ type }) => type === 'rollout.halted');
    expect(halted?.summary).not.toContain('is reverted');
  });

  it('goes on with reverting after a restart, without a second apply of an agent', async () => {
    const { bench, agents } = await fleet(3);
    const [first] = agents;
    if (first === undefined) throw new Error('no agent');
    first.mishaps.set('/new', 'fail');
    for (const agent of agents) agent.diligent = false;
    const cut = await begin(bench, { maxFailures: 1, onFailure: 'revert' });
    for (let round = 0; (await bench.engine.rollouts.get(cut)).state !== 'reverting'; round += 1) {
      if (round > 20) throw new Error('the rollout does not revert');
      first.work();
      await bench.settle();
    }
    first.mishaps.clear();
    expect((await rejection(bench.engine.rollouts.cancel(cut, ALICE))).code).toBe('rollout_in_progress');
    expect((await rejection(bench.engine.rollouts.pause(cut, null, ALICE))).code).toBe('rollout_in_progress');
    await bench.restart();
    for (const agent of agents) {
      agent.diligent = true;
      agent.connect();
    }
    await reaches(bench, cut, { state: 'reverted', counts: { reverted: 1, skipped: 2 } });
    const page = { rights: ALL_RIGHTS, limit: 9, offset: 0, status: null, rollout: cut };
    expect((await bench.engine.operations.list(page)).total).toBe(2);
    expect(agents.map(contentOf)).toEqual([OLD, OLD, OLD]);
  });
});
