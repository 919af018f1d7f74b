/** Rollouts over scripted agents: order, bounds, and that one agent's trouble is its own. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE, type RequestedPace } from '../../daemon/engine/rollouts/rollout-pace.js';
import type { PlanWatcher } from '../../daemon/engine/rollouts/rollout-plans.js';
import type { AgentResult } from '../../daemon/engine/rollouts/rollout-results.js';
import type { ApplyRolloutRequest } from '../../daemon/engine/rollouts/rollouts.js';
import { updateAgent } from '../../daemon/fleet/agent-store.js';
import { setTag } from '../../daemon/fleet/tag-store.js';
import type { RolloutEvent } from '../../src/contract/rollouts.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, nodeId, openBench } from '../support/engine.js';
import { withoutRuntimeWarnings } from '../support/runtime-warnings.js';
import { until } from '../support/until.js';

const REQUEST: ApplyRolloutRequest = {
  target: { kind: 'assignment', name: 'all' },
  modules: [],
  pace: DEFAULT_PACE,
  limits: NO_LIMITS,
  expect: null,
};

const watcher = (onAgent: PlanWatcher['onAgent'], onResource: PlanWatcher['onResource'] = null): PlanWatcher => ({
  onStarted: () => undefined,
  onResource,
  onAgent,
});

/** Lets all agents that are in flight finish at once, again and again; returns how many they were each time. */
async function inRounds(bench: Bench, agents: Awaited<ReturnType<typeof fleet>>['agents'], change: Change) {
  for (const agent of agents) agent.diligent = false;
  const { finished } = await begin(bench, change);
  const most: number[] = [];
  let over = false;
  void finished.then(() => {
    over = true;
  });
  for (let round = 0; round < agents.length; round += 1) {
    let busy: typeof agents = [];
    await until(async () => {
      await bench.settle();
      busy = agents.filter(({ isBusy }) => isBusy);
      return over || busy.length > 0;
    }, 'agents are at work, or all is over');
    if (busy.length === 0) break;
    most.push(busy.length);
    for (const agent of busy) agent.diligent = true;
  }
  return { finished, most };
}

/** So many agents of one assignment. */
async function fleet(count: number, options: Parameters<typeof openBench>[0] = {}) {
  const bench = await openBench(options);
  const digits = '123456789abcdef'.slice(0, count).split('');
  const agents = [];
  for (const digit of digits) agents.push(await bench.agent(digit));
  await bench.upload('site', { '/site': 'x' });
  await bench.engine.assignments.create({ name: 'all', modules: ['site'], selector: '*', description: null }, ALICE);
  return { bench, agents };
}

type Change = Partial<Omit<ApplyRolloutRequest, 'pace'> & RequestedPace>;

const requestOf = ({ target, modules, limits = NO_LIMITS, expect: hashes, ...pace }: Change): ApplyRolloutRequest => ({
  target: target ?? REQUEST.target,
  modules: modules ?? [],
  limits,
  expect: hashes ?? null,
  pace: { ...DEFAULT_PACE, ...pace },
});

const NEVER = new AbortController().signal;

async function begin(bench: Bench, change: Change = {}) {
  const { rollouts } = bench.engine;
  const run = await rollouts.apply(requestOf(change), ALICE);
  const finished = rollouts.settled(run, NEVER);
  finished.catch(() => undefined);
  return { rollout: run.record(), finished };
}

const apply = async (bench: Bench, change: Change = {}) => bench.while((await begin(bench, change)).finished);

const plan = (bench: Bench, signal = new AbortController().signal) =>
  bench.while(bench.engine.rollouts.plan({ ...REQUEST, signal }, ALICE, null));

const statuses = ({ results }: { readonly results: readonly { readonly status: string }[] }) =>
  results.map(({ status }) => status);

describe('a rollout', () => {
  it('applies to every agent, and each operation carries its id', async () => {
    const { bench, agents } = await fleet(3);
    const result = await apply(bench);
    expect(result).toMatchObject({
      assignment: 'all',
      has_changes: true,
      summary: { agents: 3, succeeded: 3, failed: 0, unreachable: 0, skipped: 0 },
    });
    expect(result.results.map(({ name }) => name)).toEqual(['web-1', 'web-2', 'web-3']);
    for (const agent of agents) expect([...agent.machine.keys()]).toEqual(['/site']);
    const page = { rights: ALL_RIGHTS, limit: 10, offset: 0, status: null, rollout: result.rollout_id };
    const { operations, total } = await bench.engine.operations.list(page);
    expect(total).toBe(3);
    expect(operations.map(({ operation_id }) => operation_id).sort()).toEqual(
      result.results.map(({ operation_id }) => operation_id).sort(),
    );
    expect(operations.every(({ rollout_id }) => rollout_id === result.rollout_id)).toBe(true);
    expect(bench.events.filter(({ type }) => type === 'assignment.applied')).toMatchObject([
      { summary: 'alice applied assignment all on 3 agents', metadata: { rollout_id: result.rollout_id, agents: 3 } },
    ]);
    expect((await apply(bench)).has_changes).toBe(false);
  });

  it('plans without writing, and tells the whole plan to a watcher', async () => {
    const { bench, agents } = await fleet(2);
    const told: AgentResult[] = [];
    const signal = new AbortController().signal;
    const listener = watcher(async (one) => void told.push(one));
    const result = await bench.while(bench.engine.rollouts.plan({ ...REQUEST, signal }, ALICE, listener));
    expect(result).toMatchObject({ has_changes: true, summary: { agents: 2, succeeded: 2 } });
    expect(result.results[0]).toMatchObject({ operation_id: null, error: null, summary: { pending: 1 } });
    expect(result.results[0]).not.toHaveProperty('result');
    expect(told.map(({ result: one }) => one?.resources[0]?.identity)).toEqual(['/site', '/site']);
    expect(agents.every(({ machine }) => machine.size === 0)).toBe(true);
    expect(bench.eventTypes('assignment')).toContain('assignment.planned');
  });

  it('of a selector that matches nothing is about no agent', async () => {
    const { bench } = await fleet(1);
    const change = { modules: null, selector: 'role=none', description: null };
    await bench.engine.assignments.update('all', change, ALICE);
    const nothing = { agents: 0, succeeded: 0, failed: 0, unreachable: 0, skipped: 0 };
    expect(await apply(bench)).toMatchObject({ has_changes: false, results: [], summary: nothing });
    expect(await plan(bench)).toMatchObject({ results: [], summary: nothing });
  });

  it('of an unknown assignment or module is refused', async () => {
    const { bench } = await fleet(1);
    expect((await rejection(begin(bench, { target: { kind: 'assignment', name: 'nix' } }))).code).toBe(
      'assignment_not_found',
    );
    expect((await rejection(begin(bench, { modules: ['nix'] }))).code).toBe('module_not_found');
    expect(bench.eventTypes('assignment.applied')).toEqual([]);
  });

  it('leaves out agents that are not approved, and tells which are offline', async () => {
    const { bench, agents } = await fleet(3);
    await updateAgent(bench.db, agents[0]?.nodeId ?? '', { status: 'rejected' });
    if (agents[1]) await bench.disconnect(agents[1]);
    const result = await apply(bench);
    expect(result.summary).toMatchObject({ agents: 2, succeeded: 1, unreachable: 1 });
    expect(result.results[0]).toMatchObject({
      name: 'web-2',
      status: 'unreachable',
      operation_id: null,
      error: { code: 'agent_not_connected' },
    });
    expect(statuses(await plan(bench))).toEqual(['unreachable', 'succeeded']);
  });

  it('keeps the failure of one agent with it', async () => {
    const { bench, agents } = await fleet(4);
    agents[1]?.mishaps.set('/site', 'fail');
    const result = await apply(bench);
    expect(statuses(result)).toEqual(['succeeded', 'failed', 'succeeded', 'succeeded']);
    expect(result.results[1]).toMatchObject({
      error: { code: expect.any(String), message: expect.stringContaining('/site: ') },
      summary: { failed: 1 },
    });
  });

  it('names the modules of the request beside those of the assignments', async () => {
    const { bench, agents } = await fleet(1);
    await bench.upload('more', { '/more': '' });
    await apply(bench, { modules: ['more'] });
    expect([...(agents[0]?.machine.keys() ?? [])]).toEqual(['/site', '/more']);
  });

  it('works on no more agents at a time than it may', async () => {
    const { bench, agents } = await fleet(5);
    for (const agent of agents) agent.diligent = false;
    const { finished } = await begin(bench, { concurrency: 2 });
    await bench.settle();
    expect(agents.map(({ isBusy }) => isBusy)).toEqual([true, true, false, false, false]);
    if (agents[0]) agents[0].diligent = true;
    await bench.settle();
    expect(agents.map(({ isBusy }) => isBusy)).toEqual([false, true, true, false, false]);
    for (const agent of agents) agent.diligent = true;
    expect((await bench.while(finished)).summary.succeeded).toBe(5);
  });

  it('of many agents at once leaves no warning of piled-up listeners', async () => {
    const { bench } = await fleet(15);
    await withoutRuntimeWarnings(async () => {
      expect((await plan(bench)).summary.succeeded).toBe(15);
      expect((await apply(bench)).summary.succeeded).toBe(15);
    });
  });

  it('waits for room when others use every place for operations', async () => {
    const { bench, agents } = await fleet(4, { limits: { operations: 2 } });
    const result = await apply(bench);
    expect(result.summary).toMatchObject({ agents: 4, succeeded: 4 });
    expect((await plan(bench)).summary.succeeded).toBe(4);
    expect(agents.every(({ machine }) => machine.size === 1)).toBe(true);
  });
});

describe('a rollout without an assignment', () => {
  const onSelector = (selector: string) => ({ target: { kind: 'selector', selector }, modules: ['extra'] }) as const;

  const mixed = async () => {
    const made = await fleet(4);
    await made.bench.engine.assignments.remove('all', ALICE);
    await made.bench.upload('extra', { '/extra': 'x' });
    for (const digit of ['1', '2', '3']) await setTag(made.bench.db, nodeId(digit), 'role', 'web');
    return made;
  };

  it('goes over the agents that a selector matches, and says so in the audit log', async () => {
    const { bench, agents } = await mixed();
    const result = await apply(bench, onSelector('role=web'));
    expect(result).toMatchObject({ assignment: null, selector: 'role=web', summary: { agents: 3, succeeded: 3 } });
    expect(agents.map(({ machine }) => machine.size)).toEqual([1, 1, 1, 0]);
    expect(bench.events.filter(({ type }) => type === 'rollout.applied')).toMatchObject([
      {
        summary: 'alice applied module extra on 3 agents (role=web)',
        target: { id: result.rollout_id, type: 'rollout' },
        metadata: { rollout_id: result.rollout_id, agents: 3, selector: 'role=web', modules: ['extra'] },
      },
    ]);
    const page = { rights: ALL_RIGHTS, limit: 10, offset: 0, status: null, rollout: result.rollout_id };
    expect((await bench.engine.operations.list(page)).total).toBe(3);
  });

  it('goes over named agents in their order, each once, and an unknown one refuses it', async () => {
    const { bench, agents } = await mixed();
    const target = { kind: 'agents', nodeIds: [nodeId('4'), nodeId('1'), nodeId('4')] } as const;
    const result = await apply(bench, { target, modules: ['extra'] });
    expect(result.results.map(({ name }) => name)).toEqual(['web-4', 'web-1']);
    expect(result).toMatchObject({ assignment: null, selector: null });
    expect(agents.map(({ machine }) => machine.size)).toEqual([1, 0, 0, 1]);
    const unknown = { kind: 'agents', nodeIds: [nodeId('1'), nodeId('e'), nodeId('f')] } as const;
    const fault = await rejection(begin(bench, { target: unknown }));
    expect(fault).toMatchObject({ code: 'agent_not_found', data: { node_ids: [nodeId('e'), nodeId('f')] } });
    expect(bench.eventTypes('rollout.applied')).toHaveLength(1);
  });

  it('fails on a named agent that is not approved, and skips one that a selector meant', async () => {
    const { bench, agents } = await mixed();
    for (const agent of agents) agent.diligent = false;
    const reject = () => updateAgent(bench.db, nodeId('3'), { status: 'rejected' });
    const { finished } = await begin(bench, { ...onSelector('role=web'), concurrency: 2 });
    await bench.settle();
    await reject();
    for (const agent of agents) agent.diligent = true;
    expect(statuses(await bench.while(finished))).toEqual(['succeeded', 'succeeded', 'skipped']);
    const target = { kind: 'agents', nodeIds: [nodeId('3'), nodeId('4')] } as const;
    const result = await apply(bench, { target, modules: ['extra'] });
    expect(statuses(result)).toEqual(['failed', 'succeeded']);
    expect(result.results[0]?.error).toMatchObject({
      code: 'agent_not_approved',
      hint: expect.stringContaining('orch agents approve'),
    });
  });

  it('keeps to canaries and bounds, and is cancelled', async () => {
    const { bench, agents } = await mixed();
    agents[0]?.mishaps.set('/extra', 'fail');
    expect(statuses(await apply(bench, { ...onSelector('role=web'), canary: 1 }))).toEqual([
      'failed',
      'skipped',
      'skipped',
    ]);
    expect(statuses(await apply(bench, { ...onSelector('role=web'), maxFailures: 1 }))).toEqual([
      'failed',
      'skipped',
      'skipped',
    ]);
    for (const agent of agents) agent.diligent = false;
    const { rollout, finished } = await begin(bench, { ...onSelector('role=web'), concurrency: 1 });
    await bench.settle();
    expect(await bench.while(bench.engine.rollouts.cancel(rollout.rollout_id, ALICE))).toHaveLength(1);
    for (const agent of agents) agent.diligent = true;
    expect(statuses(await bench.while(finished))).toEqual(['failed', 'skipped', 'skipped']);
    expect(bench.events.filter(({ type }) => type === 'rollout.cancelled')).toMatchObject([
      { summary: 'alice cancelled a rollout on 3 agents', metadata: { rollout_id: rollout.rollout_id } },
    ]);
  });

  it('plans, and applies only what the plans showed', async () => {
    const { bench, agents } = await mixed();
    const told: AgentResult[] = [];
    const signal = new AbortController().signal;
    const order = { ...REQUEST, ...onSelector('role=web'), signal };
    const listener = watcher(async (one) => void told.push(one));
    const planned = await bench.while(bench.engine.rollouts.plan(order, ALICE, listener));
    expect(planned).toMatchObject({ selector: 'role=web', has_changes: true, summary: { succeeded: 3 } });
    expect(bench.events.filter(({ type }) => type === 'rollout.planned')).toMatchObject([
      { summary: 'alice planned module extra on 3 agents (role=web)' },
    ]);
    agents[1]?.machine.set('/by-hand', '');
    const expected = Object.fromEntries(told.map(({ node_id, result }) => [node_id, result?.plan_hash ?? '']));
    // In the order of the agents, which the plans need not have.
    const nodeIds = agents.map(({ nodeId }) => nodeId).filter((nodeId) => nodeId in expected);
    const result = await apply(bench, { target: { kind: 'agents', nodeIds }, modules: ['extra'], expect: expected });
    expect(statuses(result)).toEqual(['succeeded', 'failed', 'succeeded']);
    expect(result.results[1]?.error).toMatchObject({ code: 'plan_stale', hint: 'plan again' });
  });

  it('tells each resource to a watcher that wants them', async () => {
    const { bench } = await mixed();
    const seen: string[] = [];
    const listener = watcher(
      async () => undefined,
      ({ name }, { identity, status }) => seen.push(`${name} ${identity} ${status}`),
    );
    const signal = new AbortController().signal;
    await bench.while(bench.engine.rollouts.plan({ ...REQUEST, ...onSelector('role=web'), signal }, ALICE, listener));
    const write = async (line: RolloutEvent) => {
      if (line.event === 'resource') seen.push(`${line.name} ${line.resource.identity} ${line.resource.status}`);
    };
    const watch = { write, showsResources: true, signal: NEVER };
    await bench.while(bench.engine.rollouts.applyAndFollow({ ...REQUEST, ...onSelector('role=web') }, ALICE, watch));
    const names = ['web-1', 'web-2', 'web-3'];
    expect(seen.toSorted()).toEqual(names.flatMap((name) => [`${name} /extra changed`, `${name} /extra pending`]));
  });
});

describe('canaries', () => {
  it('go first, and the rest follows when all of them have succeeded', async () => {
    const { bench, agents } = await fleet(4);
    if (agents[0]) await bench.disconnect(agents[0]);
    for (const agent of agents) agent.diligent = false;
    const { finished } = await begin(bench, { canary: 2 });
    await bench.settle();
    // An agent that is not there is no canary, and the first canary is alone.
    expect(agents.map(({ isBusy }) => isBusy)).toEqual([false, true, false, false]);
    if (agents[1]) agents[1].diligent = true;
    await bench.settle();
    expect(agents.map(({ isBusy }) => isBusy)).toEqual([false, false, true, false]);
    for (const agent of agents) agent.diligent = true;
    expect(statuses(await bench.while(finished))).toEqual(['unreachable', 'succeeded', 'succeeded', 'succeeded']);
  });

  it.each(['fails', 'gets lost'])('keep the rest from starting when one %s', async (what) => {
    const { bench, agents } = await fleet(3);
    const [first] = agents;
    if (first === undefined) throw new Error('no agent');
    if (what === 'fails') first.mishaps.set('/site', 'fail');
    else first.diligent = false;
    const { finished } = await begin(bench, { canary: 1 });
    await bench.settle();
    if (what === 'gets lost') {
      await bench.disconnect(first);
      bench.clock.advance(61_000);
      await bench.engine.tick();
    }
    const result = await bench.while(finished);
    expect(statuses(result)).toEqual(['failed', 'skipped', 'skipped']);
    expect(result.results[1]?.error).toEqual({
      code: 'rollout_stopped',
      message: 'not started: 1 of 1 canary agents did not succeed',
      hint: null,
    });
    expect(agents[1]?.received.filter(({ type }) => type === 'run')).toEqual([]);
  });
});

describe('a bound', () => {
  it.each([
    ['max_failures', { canary: 0, maxFailures: 1 }],
    ['max_failures behind canaries', { canary: 3, maxFailures: 1 }],
    ['canaries', { canary: 3, maxFailures: null }],
  ])('of %s touches no agent behind the first that fails', async (_what, pace) => {
    const { bench, agents } = await fleet(12);
    agents[2]?.mishaps.set('/site', 'fail');
    agents[3]?.mishaps.set('/site', 'fail');
    const result = await apply(bench, pace);
    expect(result.summary).toMatchObject({ agents: 12, succeeded: 2, failed: 1, skipped: 9 });
    expect(agents.map(({ received }) => received.some(({ type }) => type === 'run'))).toEqual(
      agents.map((_agent, index) => index < 3),
    );
  });

  it('starts with one agent, doubles what is in flight, and keeps to the concurrency', async () => {
    const { bench, agents } = await fleet(15);
    const { finished, most } = await inRounds(bench, agents, { maxFailures: 15, concurrency: 5 });
    expect(most).toEqual([1, 2, 4, 5, 3]);
    expect((await bench.while(finished)).summary.succeeded).toBe(15);
  });

  it('never has more in flight than may still fail, and begins anew with few after a failure', async () => {
    const { bench, agents } = await fleet(12);
    agents[6]?.mishaps.set('/site', 'fail');
    const { finished, most } = await inRounds(bench, agents, { maxFailures: 3 });
    expect(most).toEqual([1, 2, 3, 3, 2, 1]);
    expect((await bench.while(finished)).summary).toMatchObject({ succeeded: 11, failed: 1 });
  });
});

describe('max_failures', () => {
  it('stops the rollout once so many have failed', async () => {
    const { bench, agents } = await fleet(5);
    agents[0]?.mishaps.set('/site', 'fail');
    agents[2]?.mishaps.set('/site', 'fail');
    if (agents[1]) await bench.disconnect(agents[1]);
    const result = await apply(bench, { concurrency: 1, maxFailures: 2 });
    expect(statuses(result)).toEqual(['failed', 'unreachable', 'skipped', 'skipped', 'skipped']);
    expect(result.results[4]?.error?.message).toBe('not started: 2 agents have failed');
    expect(result.summary).toEqual({ agents: 5, succeeded: 0, failed: 1, unreachable: 1, skipped: 3 });
  });
});

describe('a rollout under way', () => {
  it('goes on without its caller, and stops a plan whose caller has gone', async () => {
    const { bench, agents } = await fleet(3);
    await begin(bench, { concurrency: 1 });
    await bench.settle();
    expect(agents.every(({ machine }) => machine.size === 1)).toBe(true);
    for (const agent of agents) agent.diligent = false;
    const away = new AbortController();
    const planned = bench.engine.rollouts.plan({ ...requestOf({ concurrency: 1 }), signal: away.signal }, ALICE, null);
    await bench.settle();
    away.abort();
    expect((await rejection(bench.while(planned))).code).toBe('cancelled');
    expect(agents[1]?.received.filter((message) => message.type === 'run' && message.mode === 'plan')).toEqual([]);
  });

  it('is cancelled with what runs', async () => {
    const { bench, agents } = await fleet(3);
    for (const agent of agents) agent.diligent = false;
    const { rollout, finished } = await begin(bench, { concurrency: 1 });
    await bench.settle();
    const cancelled = await bench.while(bench.engine.rollouts.cancel(rollout.rollout_id, ALICE));
    expect(cancelled).toHaveLength(1);
    for (const agent of agents) agent.diligent = true;
    const result = await bench.while(finished);
    expect(statuses(result)).toEqual(['failed', 'skipped', 'skipped']);
    expect(result.results[0]).toMatchObject({ operation_id: cancelled[0], error: { code: 'cancelled' } });
    expect(result.results[1]?.error?.message).toBe('not started: alice cancelled the rollout');
    expect(bench.eventTypes('assignment')).toContain('assignment.rollout_cancelled');
    expect((await rejection(bench.engine.rollouts.cancel(rollout.rollout_id, ALICE))).code).toBe('rollout_finished');
  });

  it('leaves agents alone that the assignment no longer selects', async () => {
    const { bench, agents } = await fleet(2);
    await apply(bench);
    for (const agent of agents) agent.diligent = false;
    const { finished } = await begin(bench, { concurrency: 1 });
    await bench.settle();
    await bench.engine.assignments.remove('all', ALICE);
    for (const agent of agents) agent.diligent = true;
    const result = await bench.while(finished);
    expect(statuses(result)).toEqual(['succeeded', 'skipped']);
    expect(result.results[1]?.error?.code).toBe('assignment_changed');
    expect(agents[1]?.machine.size).toBe(1);
  });

  it('applies only what the plans showed, and only to the agents that were planned', async () => {
    const { bench, agents } = await fleet(3);
    const told: AgentResult[] = [];
    const signal = new AbortController().signal;
    const listener = watcher(async (one) => void told.push(one));
    await bench.while(bench.engine.rollouts.plan({ ...REQUEST, signal }, ALICE, listener));
    // The plans are reported in the order in which they end.
    const hashes = agents.slice(0, 2).map(({ nodeId }) => {
      const plan = told.find(({ node_id }) => node_id === nodeId);
      return [nodeId, plan?.result?.plan_hash ?? ''];
    });
    agents[1]?.machine.set('/by-hand', '');
    const result = await apply(bench, { expect: Object.fromEntries(hashes) });
    expect(statuses(result)).toEqual(['succeeded', 'failed']);
    expect(result.results[1]?.error).toMatchObject({ code: 'plan_stale', hint: 'plan again' });
    expect(agents[2]?.machine.size).toBe(0);
  });

  it('goes on after a restart, with those that were in flight and those that had not begun', async () => {
    const { bench, agents } = await fleet(3);
    for (const agent of agents) agent.diligent = false;
    const { rollout, finished } = await begin(bench, { concurrency: 1 });
    await bench.settle();
    const ended = rejection(finished);
    await bench.restart();
    expect((await ended).code).toBe('shutting_down');
    for (const agent of agents) {
      agent.diligent = true;
      agent.connect();
    }
    await bench.settle();
    const page = { rights: ALL_RIGHTS, limit: 10, offset: 0, status: null, rollout: rollout.rollout_id };
    const { operations } = await bench.engine.operations.list(page);
    expect(operations.map(({ node_name, status }) => [node_name, status])).toEqual([
      ['web-3', 'succeeded'],
      ['web-2', 'succeeded'],
      ['web-1', 'succeeded'],
    ]);
    expect(await bench.engine.rollouts.get(rollout.rollout_id)).toMatchObject({
      state: 'succeeded',
      counts: { agents: 3, succeeded: 3, waiting: 0, running: 0 },
    });
    expect(bench.eventTypes('rollout')).toEqual(['rollout.succeeded']);
  });
});
