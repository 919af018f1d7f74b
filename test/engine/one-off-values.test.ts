/** Values that an apply or a rollout brings with it: which ones agents get, and what the orchestrator does about them afterwards. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { deleteOperationsBefore } from '../../daemon/engine/operations/operation-store.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import { deleteRolloutsBefore } from '../../daemon/engine/rollouts/rollout-store.js';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { isFault } from '../../src/kernel/fault.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const MINUTE = 60_000;

const moduleOf = (more = '') => ({
  name: 'web',
  content: [
    'name: web',
    'supports: [{platform: linux}]',
    'inputs:',
    '  workers: {type: integer, default: 4, maximum: 64}',
    '  sites: {type: map, merge: true, of: {type: string}, default: {}}',
    '  key: {type: string, secret: true, optional: true}',
    '  hosts: {type: list, of: {type: object, fields: {name: {type: string}, key: {type: string, secret: true, optional: true}}}, default: []}',
    'resources:',
    `  - file-unix: {path: /workers, content: "${OPEN} inputs.workers }} ${OPEN} shared.domain | default: 'lan' }}${more}"}`,
    '  - for_each: inputs.sites',
    `    file-unix: {path: "/sites/${OPEN} each.key }}", content: "${OPEN} each.value }}"}`,
    '',
  ].join('\n'),
});

const upload = (bench: Bench, name: string, entry: string) =>
  bench.engine.values.upload({ name, content: `values:\n  - ${entry}\n` }, ALICE);

const contentOf = (agent: ScriptedAgent, path = '/workers') =>
  JSON.parse(agent.machine.get(path) ?? '{}').content ?? null;

const standingOf = (bench: Bench, { nodeId }: ScriptedAgent) => bench.engine.standings.of(nodeId);

/** Lets automatic applies begin that are due. */
async function wait(bench: Bench): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    bench.clock.advance(10 * MINUTE);
    await bench.rest();
    await bench.settle();
  }
}

/** Two agents with the module, which is applied to both. */
async function fleet(mode: 'manual' | 'on-connect' | 'enforce' = 'enforce') {
  const bench = await openBench();
  await bench.engine.modules.upload(moduleOf(), ALICE);
  const [one, two] = [await bench.agent('a'), await bench.agent('b')];
  const all = { name: 'all', modules: ['web'], selector: 'platform=linux', description: null };
  await bench.engine.assignments.create({ ...all, mode: 'manual' }, ALICE);
  for (const agent of [one, two]) await bench.apply(agent, []);
  const change = { modules: null, selector: null, description: null };
  await bench.engine.assignments.update('all', { ...change, mode }, ALICE);
  await bench.rest();
  return { bench, one, two };
}

const rolloutOf = async (bench: Bench, agents: readonly ScriptedAgent[], set: readonly string[] = []) => ({
  target: { kind: 'agents' as const, nodeIds: agents.map(({ nodeId }) => nodeId) },
  modules: [],
  oneOff: await bench.engine.oneOff({ set: [...set] }, [], ALICE.actor.id),
  pace: DEFAULT_PACE,
  limits: NO_LIMITS,
  expect: null,
});

const FILE = (entry: string) => ({ files: [{ name: 'mine.values.yaml', content: `values:\n  - ${entry}\n` }] });

describe('values of an apply', () => {
  it('are above assignments and value sets, those of --set above those of files', async () => {
    const { bench, one } = await fleet('manual');
    await upload(bench, 'prod', '{when: {}, shared: {domain: a.net}, set: {web: {workers: 5, sites: {a: x}}}}');
    const values = { web: { workers: 6 } };
    await bench.engine.assignments.update('all', { modules: null, selector: null, description: null, values }, ALICE);
    await bench.apply(one, []);
    expect(contentOf(one)).toBe('6 a.net');
    const file = FILE('{when: {}, shared: {domain: b.net}, set: {web: {workers: 7, sites: {b: y}}}}');
    const first = await bench.apply(one, [], { values: file });
    expect([contentOf(one), contentOf(one, '/sites/a'), contentOf(one, '/sites/b')]).toEqual(['7 b.net', 'x', 'y']);
    expect(first).toMatchObject({ value_inputs: ['shared.domain', 'web.sites', 'web.workers'], values: file });
    const set = ['web:workers=8', 'web:sites={c: z}'];
    const second = await bench.apply(one, [], { values: { ...file, set } });
    expect([contentOf(one), contentOf(one, '/sites/c')]).toEqual(['8 b.net', 'z']);
    expect(second.values).toEqual({ ...file, set });
    expect(await bench.apply(one, [], { allowRemovals: 9 })).not.toHaveProperty('value_inputs');
    expect(contentOf(one)).toBe('6 a.net');
  });

  it('concern the agents of their clause alone', async () => {
    const { bench, one, two } = await fleet();
    await setTag(bench.db, one.nodeId, 'env', 'prod');
    const values = FILE('{when: {tag.env: prod}, set: {web: {workers: 9}}}');
    expect((await bench.apply(one, [], { values })).value_inputs).toEqual(['web.workers']);
    const refused = await rejection(bench.apply(two, [], { values }));
    expect(refused).toMatchObject({ code: 'invalid_values', hint: expect.stringContaining('web') });
    expect(refused.message).toContain('none of these values concerns web-b');
    const request = {
      ...(await rolloutOf(bench, [one, two])),
      oneOff: await bench.engine.oneOff(values, [], ALICE.actor.id),
    };
    const run = await bench.engine.rollouts.apply(request, ALICE);
    await bench.while(bench.engine.rollouts.settled(run, new AbortController().signal));
    const { operations } = await bench.engine.operations.list({
      rights: ALL_RIGHTS,
      limit: 9,
      offset: 0,
      status: null,
      rollout: run.id,
    });
    expect(operations.map(({ node_name, value_inputs }) => [node_name, value_inputs]).sort()).toEqual([
      ['web-a', ['web.workers']],
      ['web-b', undefined],
    ]);
    await wait(bench);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'behind' });
    expect(standingOf(bench, two)).toMatchObject({ standing: 'in_sync', automation_stopped: null });
  });

  it.each([
    [['wib:workers=1'], '--set wib:workers: there is no module "wib"; did you mean "web"?'],
    [['web:wrkers=1'], '--set web:wrkers: module "web" has no input "wrkers"; did you mean "workers"?'],
    [['web:workers=x'], '--set web:workers: input "workers" must be a whole number'],
    [['web:workers=65'], '--set web:workers: input "workers" must be at most 64'],
    [['web:key=hunter2'], '--set web:key: the input is a secret'],
    [['web:workers=1', 'web:workers=2'], '--set web:workers: it is given twice'],
    [['web'], '--set "web": the form is MODULE:INPUT=VALUE'],
    [['web:hosts=[{name: a, key: hunter2}]'], '--set web:hosts: '],
  ])('are refused before anything begins: %j', async (set, message) => {
    const { bench, one } = await fleet('manual');
    const fault = await rejection(bench.apply(one, [], { values: { set } }));
    expect(fault.code).toBe('invalid_values');
    expect(fault.message).toContain(message);
    expect(fault.hint).not.toBeUndefined();
    expect(JSON.stringify([fault.message, fault.hint, fault.errors])).not.toContain('hunter2');
    expect(await bench.db.selectFrom('one_off_values').selectAll().execute()).toEqual([]);
  });

  it.each([
    ['{when: {}, set: {web: {key: {secret: KEY}}}}', 'mine.values.yaml:2: the input is a secret'],
    ['{when: {}, set: {web: {key: hunter2}}}', 'mine.values.yaml:2: the input is a secret'],
    ['{when: {}, set: {other: {a: 1}}}', 'mine.values.yaml:2: there is no module "other"'],
    ['{when: {}, set: {web: {wrkers: 1}}}', 'mine.values.yaml:2: module "web" has no input "wrkers"'],
    ['{whn: {}}', 'mine.values.yaml, line 2: "when" is required in an entry of values (and 1 more)'],
  ])('of files are refused with their line: %s', async (entry, message) => {
    const { bench, one } = await fleet('manual');
    const fault = await rejection(bench.apply(one, [], { values: FILE(entry) }));
    expect(fault.code).toBe('invalid_values');
    expect(fault.message).toContain(message);
    expect(fault.message).not.toContain('hunter2');
  });

  it('are refused when the agent does not get their module', async () => {
    const { bench, one } = await fleet('manual');
    await bench.engine.modules.upload({ ...moduleOf(), ...renamed() }, ALICE);
    const fault = await rejection(bench.apply(one, [], { values: { set: ['db:workers=1'] } }));
    expect(fault.message).toBe('--set db:workers: web-a does not get this module');
    const plan = await rejection(bench.plan(one, [], undefined, { set: ['db:workers=1'] }));
    expect(plan).toMatchObject({ code: 'invalid_values', message: fault.message });
  });

  it('belong to a plan, and an apply of it with other values is stale', async () => {
    const { bench, one } = await fleet('manual');
    const values = { set: ['web:workers=8'] };
    const plan = await bench.plan(one, [], undefined, values);
    expect(plan).toMatchObject({ has_changes: true, value_inputs: ['web.workers'] });
    expect(bench.events.at(-1)).toMatchObject({
      type: 'state.planned',
      summary: 'alice planned module web on web-a with values of its own for web.workers',
      metadata: { value_inputs: ['web.workers'] },
    });
    const hash = plan.plan_hash ?? '';
    for (const other of [null, { set: ['web:workers=9'] }])
      expect(await rejection(bench.apply(one, [], { values: other, expect: hash }))).toMatchObject({
        code: 'plan_stale',
      });
    expect(await bench.apply(one, [], { values, expect: hash })).toMatchObject({ status: 'succeeded' });
    expect(contentOf(one)).toBe('8 lan');
  });

  it('are named in the audit log', async () => {
    const { bench, one } = await fleet('manual');
    await bench.apply(one, [], { values: { set: ['web:workers=8'] } });
    const told = bench.events.filter(({ type }) => type.startsWith('state.apply_')).slice(-2);
    expect(told.map(({ metadata }) => metadata.value_inputs)).toEqual([['web.workers'], ['web.workers']]);
    expect(told[0]?.summary).toBe(
      'alice started an apply of module web on web-a with values of its own for web.workers',
    );
  });
});

const renamed = () => ({ name: 'db', content: moduleOf().content.replace('name: web', 'name: db') });

describe('after an apply with values of its own', () => {
  it('the agent is behind and says why, and enforce leaves it alone until an apply without them', async () => {
    const { bench, one, two } = await fleet();
    const { operation_id } = await bench.apply(one, [], { values: { set: ['web:workers=8'] } });
    await wait(bench);
    expect([contentOf(one), contentOf(two)]).toEqual(['8 lan', '4 lan']);
    expect(standingOf(bench, one)).toMatchObject({
      standing: 'behind',
      standing_reason: `module web; applied with values of its own: web.workers, operation ${operation_id}`,
      automation_stopped: { code: 'withdrawn', message: expect.stringContaining(operation_id) },
    });
    expect(await bench.engine.state.get(one.nodeId)).toMatchObject({ value_inputs: ['web.workers'] });
    expect(await bench.drift(one)).toMatchObject({ status: 'in_sync' });
    const [web] = await bench.engine.values.explain(one.nodeId, 'web');
    const applied = { value: 8, from: '--set web:workers', operation_id };
    expect(web?.inputs.map((input) => [input.name, input.value, input.applied]).slice(0, 2)).toEqual([
      ['workers', 4, applied],
      ['sites', {}, undefined],
    ]);
    await bench.apply(one, []);
    await wait(bench);
    expect(contentOf(one)).toBe('4 lan');
    expect(standingOf(bench, one)).toMatchObject({ standing: 'in_sync', automation_stopped: null });
  });

  it('neither a new revision nor new values nor a restart take the values away', async () => {
    const { bench, one, two } = await fleet();
    await bench.apply(one, [], { values: { set: ['web:workers=8'] } });
    await wait(bench);
    await bench.engine.modules.upload(moduleOf('!'), ALICE);
    await wait(bench);
    expect([contentOf(one), contentOf(two)]).toEqual(['8 lan', '4 lan!']);
    const { agents } = await upload(bench, 'prod', '{when: {}, set: {web: {workers: 5}}}');
    expect(agents.map(({ name, own_values }) => [name, own_values])).toEqual([
      ['web-a', true],
      ['web-b', undefined],
    ]);
    const { agents: followers } = await bench.engine.modules.reach('web', ALL_RIGHTS);
    expect(followers.map(({ name, own_values }) => [name, own_values])).toEqual([
      ['web-a', true],
      ['web-b', undefined],
    ]);
    await wait(bench);
    expect([contentOf(one), contentOf(two)]).toEqual(['8 lan', '5 lan!']);
    await bench.restart();
    for (const agent of [one, two]) await bench.arrive(agent);
    await wait(bench);
    expect(contentOf(one)).toBe('8 lan');
    await bench.engine.assignments.resume('all', ALICE);
    await wait(bench);
    expect(contentOf(one)).toBe('5 lan!');
  });

  it('an agent that connects keeps them', async () => {
    const { bench, one } = await fleet('on-connect');
    await bench.apply(one, [], { values: { set: ['web:workers=8'] } });
    await bench.leave(one);
    await bench.arrive(one);
    await wait(bench);
    expect(contentOf(one)).toBe('8 lan');
    expect(standingOf(bench, one)).toMatchObject({ automation_stopped: { code: 'withdrawn' } });
  });

  it('a file that the apply brings with it may be published, and the values stay', async () => {
    const { bench, one, two } = await fleet();
    const more = { sources: [moduleOf('!')], values: { set: ['web:workers=8'] } };
    const { sources } = await bench.apply(one, [], more);
    expect(sources).toMatchObject([{ status: 'on_trial' }]);
    await wait(bench);
    expect(contentOf(one)).toBe('8 lan!');
    expect(standingOf(bench, one).standing).toBe('on_trial');
    await bench.engine.modules.upload(moduleOf('!'), ALICE);
    await wait(bench);
    expect([contentOf(one), contentOf(two)]).toEqual(['8 lan!', '4 lan!']);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'behind', automation_stopped: { code: 'withdrawn' } });
    await bench.engine.assignments.update('all', { modules: null, selector: 'tag.role=web', description: null }, ALICE);
    await setTag(bench.db, one.nodeId, 'role', 'web');
    const lone = await bench.apply(one, [], { sources: [moduleOf('?')], values: { set: ['web:workers=9'] } });
    expect(lone.sources).toMatchObject([{ module: 'web' }]);
    await wait(bench);
    expect(contentOf(one)).toBe('9 lan?');
  });

  it('values that equal those of today leave it in sync', async () => {
    const { bench, one } = await fleet();
    await bench.apply(one, [], { values: { set: ['web:workers=4'] } });
    await wait(bench);
    expect(standingOf(bench, one)).toMatchObject({ standing: 'in_sync', automation_stopped: null });
  });
});

describe('removals by values of an apply', () => {
  it('name them as their cause, those that an apply brings and those that it takes away', async () => {
    const { bench, one } = await fleet('manual');
    await upload(bench, 'prod', '{when: {}, set: {web: {sites: {a: x}}}}');
    await bench.apply(one, []);
    const without = { values: { set: ['web:sites={a: null}'] } };
    const emptied = await rejection(bench.apply(one, [], without));
    expect(emptied.code).toBe('removal_guard');
    expect(emptied.message).toContain('this apply has values of its own for web.sites');
    const given = await bench.apply(one, [], { values: { set: ['web:sites={a: null, b: y}'] }, allowRemovals: 1 });
    await bench.engine.values.remove('prod', ALICE);
    const gone = await rejection(bench.apply(one, []));
    expect(gone.message).toContain(`operation ${given.operation_id} had values of its own for web.sites`);
  });
});

describe('a rollout with values of its own', () => {
  it('keeps them for all agents over a restart, shows them, and names them in the audit log', async () => {
    const { bench, one, two } = await fleet();
    await bench.disconnect(two);
    const request = await rolloutOf(bench, [one, two], ['web:workers=8']);
    const pace = { ...DEFAULT_PACE, whenOnlineSecs: 3600 };
    const { id } = await bench.engine.rollouts.apply({ ...request, pace }, ALICE);
    await bench.rest();
    expect(await bench.engine.rollouts.get(id)).toMatchObject({
      value_inputs: ['web.workers'],
      values: { set: ['web:workers=8'], files: [] },
      counts: { waiting: 1, succeeded: 1 },
    });
    const begun = bench.events.find(({ type }) => type === 'rollout.applied');
    expect(begun).toMatchObject({ metadata: { value_inputs: ['web.workers'] } });
    await bench.restart();
    for (const agent of [one, two]) await bench.arrive(agent);
    await bench.rest();
    expect([contentOf(one), contentOf(two)]).toEqual(['8 lan', '8 lan']);
    await wait(bench);
    expect([contentOf(one), contentOf(two)]).toEqual(['8 lan', '8 lan']);
    expect(standingOf(bench, two)).toMatchObject({ standing: 'behind', automation_stopped: { code: 'withdrawn' } });
    const { length } = await bench.db.selectFrom('one_off_values').selectAll().execute();
    expect(length).toBe(1);
  });

  it('is deleted with its values once nothing refers to them', async () => {
    const { bench, one } = await fleet('manual');
    const request = await rolloutOf(bench, [one], ['web:workers=8']);
    const run = await bench.engine.rollouts.apply(request, ALICE);
    await bench.while(bench.engine.rollouts.settled(run, new AbortController().signal));
    bench.clock.advance(MINUTE);
    const stored = () => bench.db.selectFrom('one_off_values').selectAll().execute();
    const now = bench.clock.now();
    await bench.uow.write((tx) => deleteRolloutsBefore(tx, now, 9));
    expect(await stored()).toHaveLength(1);
    await bench.apply(one, []);
    bench.clock.advance(MINUTE);
    await bench.uow.write((tx) => deleteOperationsBefore(tx, bench.clock.now(), 99));
    expect(await stored()).toEqual([]);
  });
});

describe('stored values that change during a rollout', () => {
  it('are shown with the time and the operator, also after a restart and after its end', async () => {
    const { bench, one, two } = await fleet('manual');
    await upload(bench, 'before', '{when: {}, set: {web: {workers: 5}}}');
    await bench.disconnect(two);
    const pace = { ...DEFAULT_PACE, whenOnlineSecs: 3600 };
    const run = await bench.engine.rollouts.apply({ ...(await rolloutOf(bench, [one, two])), pace }, ALICE);
    const records: unknown[] = [];
    run.watch({
      onBegun: () => undefined,
      onAgent: () => undefined,
      onRollout: (record) => void records.push(record.value_changes),
      onSettled: () => undefined,
    });
    await bench.rest();
    expect(await bench.engine.rollouts.get(run.id)).not.toHaveProperty('value_changes');
    bench.clock.advance(1000);
    const change = { modules: null, selector: null };
    await bench.engine.assignments.update('all', { ...change, description: 'no values' }, ALICE);
    await bench.engine.values.remove('before', ALICE);
    await bench.engine.assignments.update(
      'all',
      { ...change, description: null, values: { web: { workers: 6 } } },
      ALICE,
    );
    await bench.rest();
    const changes = [
      { source: 'assignment', name: 'all', by: 'alice' },
      { source: 'values', name: 'before', by: 'alice' },
    ];
    expect(records.at(-1)).toMatchObject(changes);
    expect((await bench.engine.rollouts.get(run.id)).value_changes).toMatchObject(changes);
    await bench.restart();
    expect((await bench.engine.rollouts.get(run.id)).value_changes).toMatchObject(changes);
    for (const agent of [one, two]) await bench.arrive(agent);
    await bench.rest();
    expect([contentOf(one), contentOf(two)]).toEqual(['5 lan', '6 lan']);
    bench.clock.advance(1000);
    await upload(bench, 'after', '{when: {}, set: {web: {workers: 7}}}');
    expect((await bench.engine.rollouts.get(run.id)).value_changes).toMatchObject(changes);
  });
});

describe('the history of a value set', () => {
  it('has each text and each removal, with its operator, also after the removal', async () => {
    const { bench } = await fleet('manual');
    const { values } = bench.engine;
    const entry = (workers: number) => `{when: {}, set: {web: {workers: ${workers}}}}`;
    await upload(bench, 'prod', entry(1));
    await upload(bench, 'prod', entry(2));
    expect(await upload(bench, 'prod', entry(2))).toMatchObject({ changed: false, revision: 2 });
    await values.remove('prod', ALICE);
    const removed = await rejection(values.get('prod', null, ALICE.actor.id));
    expect(removed).toMatchObject({ code: 'values_not_found', hint: expect.stringContaining('revisions prod') });
    expect(await values.get('prod', 1, ALICE.actor.id)).toMatchObject({
      revision: 1,
      modules: ['web'],
      content: expect.any(String),
    });
    expect((await rejection(values.get('prod', 3, ALICE.actor.id))).message).toContain('is its removal');
    expect((await rejection(values.get('prod', 9, ALICE.actor.id))).code).toBe('values_not_found');
    expect(await upload(bench, 'prod', entry(3))).toMatchObject({ revision: 4 });
    const revisions = await values.revisions('prod');
    expect(revisions.map(({ revision, sha256 }) => [revision, sha256 === null])).toEqual([
      [4, false],
      [3, true],
      [2, false],
      [1, false],
    ]);
    expect(new Set(revisions.map(({ uploaded_by }) => uploaded_by))).toEqual(new Set([ALICE.actor.id]));
    expect((await values.get('prod', null, ALICE.actor.id)).content).toContain('workers: 3');
    const fault = await rejection(values.revisions('none'));
    expect(isFault(fault, 'values_not_found')).toBe(true);
  });

  it('keeps the last 50 revisions', async () => {
    const { bench } = await fleet('manual');
    for (let workers = 1; workers <= 52; workers += 1)
      await upload(bench, 'prod', `{when: {}, set: {web: {workers: ${workers}}}}`);
    const revisions = await bench.engine.values.revisions('prod');
    expect([revisions.length, revisions[0]?.revision, revisions.at(-1)?.revision]).toEqual([50, 52, 3]);
  });
});
