import { describe, expect, it } from 'vitest';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import type { AssignmentMode } from '../../src/kernel/assignment-modes.js';
import { ALICE, type Bench, moduleText, openBench, type ScriptedAgent } from '../support/engine.js';

const MINUTE = 60_000;

const site = (content: string) => ({ name: 'site', content: moduleText('site', { '/site': content }) });

const standingOf = (bench: Bench, { nodeId }: ScriptedAgent) => bench.engine.standings.of(nodeId);

const revisionsOf = async (bench: Bench) => (await bench.engine.modules.revisions('site')).length;

const applyOf = (agents: readonly ScriptedAgent[]) => ({
  target: { kind: 'agents' as const, nodeIds: agents.map(({ nodeId }) => nodeId) },
  modules: [],
  pace: DEFAULT_PACE,
  limits: NO_LIMITS,
  expect: null,
});

/** Two agents that an assignment of the mode gives module site, which is applied to both. */
async function fleet(mode: AssignmentMode = 'enforce') {
  const bench = await openBench();
  await bench.engine.modules.upload(site('1'), ALICE);
  const one = await bench.agent('a');
  const two = await bench.agent('b');
  const assignment = { name: 'all', modules: ['site'], selector: 'platform=linux', description: null };
  await bench.engine.assignments.create({ ...assignment, mode: 'manual' }, ALICE);
  for (const agent of [one, two]) await bench.apply(agent, []);
  await bench.engine.assignments.update('all', { modules: null, selector: null, description: null, mode }, ALICE);
  await bench.rest();
  return { bench, one, two };
}

const contentsOf = (...agents: readonly ScriptedAgent[]) =>
  agents.map(({ machine }) => JSON.parse(machine.get('/site') ?? '{}').content ?? null);

/** Lets a minute pass, so that automatic applies that were due would have begun. */
async function wait(bench: Bench) {
  bench.clock.advance(10 * MINUTE);
  await bench.rest();
}

const textsOf = (bench: Bench) => bench.db.selectFrom('module_texts').selectAll().execute();

describe('an apply of a text whose module others follow', () => {
  it('concerns the agent alone, which is on trial and left alone until the text is published', async () => {
    const { bench, one, two } = await fleet();
    const applied = await bench.apply(one, [], { sources: [site('2')] });
    const { sha256 } = (await textsOf(bench))[0] ?? {};
    expect(applied.sources).toEqual([{ module: 'site', sha256, status: 'on_trial', others: 1 }]);
    const started = bench.events.filter(({ type }) => type === 'state.apply_started').at(-1);
    expect(started).toMatchObject({ metadata: { sent: { site: sha256 } } });
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '1']);
    expect(await revisionsOf(bench)).toBe(1);
    expect(standingOf(bench, one)).toMatchObject({
      standing: 'on_trial',
      standing_reason: 'module site',
      trial: { operation_id: applied.operation_id, modules: [{ module: 'site', sha256 }], by: ALICE.actor.id },
    });
    expect(standingOf(bench, two)).toMatchObject({ standing: 'in_sync', trial: null });
    await bench.engine.modules.upload(site('2'), ALICE);
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '2']);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'in_sync', trial: null });
    expect(standingOf(bench, two)).toMatchObject({ standing: 'in_sync' });
    expect(await textsOf(bench)).toEqual([]);
  });

  it('keeps the trial over a restart at each moment', async () => {
    const { bench, one, two } = await fleet();
    one.diligent = false;
    const id = await bench.start(one, [], { sources: [site('2')] });
    await bench.settle();
    await bench.restart();
    one.diligent = true;
    one.connect();
    two.connect();
    await bench.settle();
    await bench.restart();
    for (const agent of [one, two]) await bench.arrive(agent);
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '1']);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'on_trial', trial: { operation_id: id } });
  });

  it('stays on trial of one text when another is published', async () => {
    const { bench, one, two } = await fleet();
    await bench.apply(one, [], { sources: [site('2')] });
    await bench.engine.modules.upload(site('3'), ALICE);
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '3']);
    expect(standingOf(bench, one).standing).toBe('on_trial');
  });

  it('ends with an apply without a text, whose plan says so', async () => {
    const { bench, one } = await fleet('manual');
    await bench.apply(one, [], { sources: [site('2')] });
    const plan = await bench.plan(one, []);
    expect(plan.ends_trial).toEqual(['site']);
    await bench.apply(one, []);
    await bench.rest();
    expect(contentsOf(one)).toEqual(['1']);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'in_sync', trial: null });
  });

  it('is replaced by another trial, and goes on when a part of it is published', async () => {
    const { bench, one } = await fleet();
    const more = { name: 'more', content: moduleText('more', { '/more': '1' }) };
    await bench.apply(one, [], { sources: [site('2'), more] });
    await bench.rest();
    // Nothing else follows the new module, so it is published at once.
    expect(standingOf(bench, one).trial?.modules.map(({ module }) => module)).toEqual(['site']);
    const replaced = await bench.apply(one, ['more'], { sources: [site('3')] });
    await bench.rest();
    expect(standingOf(bench, one).trial).toMatchObject({ operation_id: replaced.operation_id });
    expect(contentsOf(one)).toEqual(['3']);
  });

  it('leaves nothing behind when the agent refuses it', async () => {
    const { bench, one, two } = await fleet();
    const plan = bench.engine.sources([site('2')], ALICE.actor.id).then((sent) =>
      bench.engine.plans.plan(
        {
          nodeId: one.nodeId,
          modules: [],
          sent,
          signal: new AbortController().signal,
          onStarted: () => undefined,
          onResult: () => undefined,
        },
        ALICE,
      ),
    );
    const hash = (await bench.while(plan)).plan_hash ?? '';
    one.machine.set('/other', 'by hand');
    const refused = await bench.apply(one, [], { sources: [site('2')], expect: hash });
    expect(refused).toMatchObject({ status: 'failed', error: { code: 'plan_stale' } });
    expect(refused.sources).toBeUndefined();
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['1', '1']);
    expect(await textsOf(bench)).toEqual([]);
    expect(await bench.db.selectFrom('operation_sources').selectAll().execute()).toEqual([]);
    expect(standingOf(bench, one).standing).toBe('in_sync');
  });

  it('is a trial also if the apply fails in part', async () => {
    const { bench, one } = await fleet();
    const two = { name: 'site', content: moduleText('site', { '/site': '2', '/more': '1' }) };
    one.mishaps.set('/more', 'fail');
    const failed = await bench.apply(one, [], { sources: [two] });
    expect(failed).toMatchObject({ status: 'failed', sources: [{ status: 'on_trial' }] });
    await wait(bench);
    expect(standingOf(bench, one).standing).toBe('on_trial');
    expect(contentsOf(one)).toEqual(['2']);
  });

  it('is none if the agent has undone the apply, and the trial before it goes on', async () => {
    const { bench, one } = await fleet();
    const tried = await bench.apply(one, [], { sources: [site('2')] });
    one.diligent = false;
    const id = await bench.start(one, [], { sources: [site('3')], confirmSecs: 60 });
    await bench.settle();
    one.work();
    one.outbox.push({ type: 'run_awaiting', run_id: id, left_secs: 60 });
    await bench.settle();
    const error = { code: 'rolled_back', message: 'it did not come back' };
    const restored = { restored: 1, not_restored: 0, resources: [] };
    const end = { end: 'rolled_back' as const, results: 1, observed: null, error, restored };
    one.outbox.push({ type: 'run_finished', run_id: id, ...end });
    await bench.settle();
    await bench.rest();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'rolled_back' });
    expect(standingOf(bench, one).trial).toMatchObject({ operation_id: tried.operation_id });
    expect(await textsOf(bench)).toHaveLength(1);
  });

  it('is brought back by a return to its operation', async () => {
    const { bench, one } = await fleet('manual');
    const tried = await bench.apply(one, [], { sources: [site('2')] });
    await bench.apply(one, []);
    const back = await bench.apply(one, [], { to: tried.operation_id });
    await bench.rest();
    expect(contentsOf(one)).toEqual(['2']);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'on_trial', trial: { operation_id: back.operation_id } });
    expect(await revisionsOf(bench)).toBe(1);
  });

  it('compares the machine with what was tried', async () => {
    const { bench, one } = await fleet();
    await bench.apply(one, [], { sources: [site('2')] });
    expect(await bench.drift(one)).toMatchObject({ status: 'in_sync' });
    one.machine.set('/site', 'by hand');
    expect(await bench.drift(one)).toMatchObject({ status: 'drifted' });
    await wait(bench);
    expect(standingOf(bench, one)).toMatchObject({
      standing: 'on_trial',
      standing_reason: 'module site; drifted: module site',
    });
    expect(one.machine.get('/site')).toBe('by hand');
  });

  it('goes with its agent', async () => {
    const { bench, one } = await fleet();
    await bench.apply(one, [], { sources: [site('2')] });
    await bench.reject(one);
    await bench.tell('agent.rejected', one);
    await bench.rest();
    expect(bench.engine.standings.counts()).toMatchObject({ on_trial: 0, in_sync: 1 });
  });
});

describe('an apply of a text whose module no other agent follows', () => {
  it('publishes it with the end of the apply', async () => {
    const bench = await openBench();
    const one = await bench.agent('a');
    const applied = await bench.apply(one, [], { sources: [site('1')] });
    expect(applied.sources).toMatchObject([{ module: 'site', status: 'published', others: 0 }]);
    expect(await revisionsOf(bench)).toBe(1);
    expect(bench.eventTypes('module.')).toEqual(['module.uploaded']);
    const again = await bench.apply(one, [], { sources: [site('1')] });
    expect(again.sources).toMatchObject([{ status: 'unchanged' }]);
    await bench.rest();
    expect(standingOf(bench, one)).toMatchObject({ standing: 'in_sync', trial: null });
    expect(await textsOf(bench)).toEqual([]);
  });

  it('counts an agent that has it from a request as one that follows it', async () => {
    const bench = await openBench();
    const one = await bench.agent('a');
    const two = await bench.agent('b');
    await bench.apply(one, [], { sources: [site('1')] });
    expect(await bench.apply(two, [], { sources: [site('2')] })).toMatchObject({
      sources: [{ status: 'on_trial', others: 1 }],
    });
    await bench.rest();
    expect(standingOf(bench, one).standing).toBe('in_sync');
    // The last agent that follows it has now tried it.
    expect(await bench.apply(one, [], { sources: [site('2')] })).toMatchObject({ sources: [{ status: 'published' }] });
    await bench.rest();
    expect(bench.engine.standings.counts()).toMatchObject({ in_sync: 2, on_trial: 0 });
  });

  it('does not replace a revision that it was not made from', async () => {
    const bench = await openBench();
    const one = await bench.agent('a');
    await bench.apply(one, [], { sources: [site('1')] });
    one.diligent = false;
    const id = await bench.start(one, [], { sources: [site('2')] });
    await bench.settle();
    await bench.engine.modules.upload(site('3'), ALICE);
    one.diligent = true;
    await bench.settle();
    expect(await bench.engine.operations.detail(id)).toMatchObject({ sources: [{ status: 'on_trial', others: 0 }] });
    expect((await bench.engine.modules.get('site')).content).toBe(site('3').content);
  });
});

describe('a rollout with a text', () => {
  const begin = async (bench: Bench, content: string, agents: readonly ScriptedAgent[]) => {
    const sent = await bench.engine.sources([site(content)], ALICE.actor.id);
    return bench.engine.rollouts.apply({ ...applyOf(agents), sent }, ALICE);
  };

  it('tries it on its agents, and publishes it once all that follow the module have it', async () => {
    const { bench, one, two } = await fleet();
    await begin(bench, '2', [one]);
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '1']);
    expect(await revisionsOf(bench)).toBe(1);
    await begin(bench, '2', [two]);
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '2']);
    expect(await revisionsOf(bench)).toBe(2);
    expect(bench.engine.standings.counts()).toMatchObject({ in_sync: 2 });
  });

  it('tries again what a machine had on trial before, when it is reverted', async () => {
    const { bench, one, two } = await fleet();
    await bench.apply(one, [], { sources: [site('2')] });
    const failing = { name: 'site', content: moduleText('site', { '/site': '3', '/more': '1' }) };
    one.mishaps.set('/more', 'fail');
    const sent = await bench.engine.sources([failing], ALICE.actor.id);
    const pace = { ...DEFAULT_PACE, canary: 1, onFailure: 'revert' as const };
    const run = await bench.engine.rollouts.apply({ ...applyOf([one, two]), pace, sent }, ALICE);
    await wait(bench);
    expect((await bench.engine.rollouts.get(run.id)).state).toBe('reverted');
    expect(contentsOf(one, two)).toEqual(['2', '1']);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'on_trial', standing_reason: 'module site' });
    expect(standingOf(bench, two).standing).toBe('in_sync');
    expect(await revisionsOf(bench)).toBe(1);
  });

  it('keeps the text over a restart, for agents that were away', async () => {
    const { bench, one, two } = await fleet();
    await bench.leave(one);
    const sent = await bench.engine.sources([site('2')], ALICE.actor.id);
    const pace = { ...DEFAULT_PACE, whenOnlineSecs: 3600 };
    await bench.engine.rollouts.apply({ ...applyOf([one]), pace, sent }, ALICE);
    await bench.settle();
    await bench.restart();
    for (const agent of [one, two]) await bench.arrive(agent);
    await bench.rest();
    await wait(bench);
    expect(contentsOf(one, two)).toEqual(['2', '1']);
    expect(standingOf(bench, one).standing).toBe('on_trial');
    expect(await revisionsOf(bench)).toBe(1);
  });
});
