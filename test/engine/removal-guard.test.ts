import { describe, expect, it } from 'vitest';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { guardReason } from '../../src/resources/removal-guard.js';
import { rejection } from '../support/database.js';
import { ALICE, moduleText, openBench } from '../support/engine.js';

const created = { removes: true, adHoc: false, emptied: false, byFacts: false };
const adopted = { removes: false, adHoc: false, emptied: false, byFacts: false };

const UNCHANGED = { modules: null, selector: null, description: null };

describe('the removal guard', () => {
  const reason = (removals: Parameters<typeof guardReason>[0]['removals'], more = {}) =>
    guardReason({ removals, managed: 100, limit: 10, allowed: null, ...more });

  it.each([
    ['nothing', [], {}, null],
    ['as many as the limit', Array(10).fill(created), {}, null],
    ['one more than the limit', Array(11).fill(created), {}, 'many'],
    ['one more, allowed', Array(11).fill(created), { allowed: 11 }, null],
    ['more than allowed', Array(12).fill(created), { allowed: 11 }, 'many'],
    ['releases, which count for nothing', Array(11).fill(adopted), {}, null],
    ['all releases there are', Array(11).fill(adopted), { managed: 11 }, null],
    ['all that is managed', [created], { managed: 1 }, 'all'],
    ['all that is managed, with a release', [created, adopted], { managed: 2 }, 'all'],
    ['all that is managed, allowed', [created, adopted], { managed: 2, allowed: 1 }, null],
    ['an ad hoc module', [{ ...created, adHoc: true }], {}, 'ad_hoc'],
    ['an ad hoc module that was there before', [{ ...adopted, adHoc: true }], {}, null],
    ['an ad hoc module, allowed', [{ ...created, adHoc: true }], { allowed: 1 }, null],
    ['what an emptied loop made', [{ ...created, emptied: true }], {}, 'emptied'],
    ['what changed facts take away', [{ ...created, byFacts: true }], {}, 'facts'],
    ['what changed facts take away, allowed', [{ ...created, byFacts: true }], { allowed: 1 }, null],
    ['what an emptied loop made, allowed', [{ ...created, emptied: true }], { allowed: 1 }, null],
    ['anything at all when the limit is 0', [created], { limit: 0 }, 'many'],
    ['with 0 allowed', [created], { limit: 0, allowed: 0 }, 'many'],
  ])('judges the removal of %s', (_, removals, more, expected) => {
    expect(reason(removals, more)).toBe(expected);
  });

  it('names the resources of a module that is no longer named', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('base', { '/base': '' });
    await bench.upload('extra', { '/extra': '' });
    const first = await bench.apply(agent, ['base', 'extra']);

    const fault = await rejection(bench.start(agent, ['base']));

    expect(fault).toMatchObject({
      code: 'removal_guard',
      message: expect.stringContaining(
        `file-unix /extra (module extra was only named in operation ${first.operation_id})`,
      ),
      hint:
        'to keep what is there, name its module too (orch apply NODE -m extra -f FILE), ' +
        'or assign its module for good (orch assignments create NAME -m extra --selector SELECTOR); ' +
        'to remove it, say how many: orch apply … --allow-removals 1',
      data: {
        reason: 'ad_hoc',
        allow_removals: 1,
        removals: [{ module: 'extra', kind: 'file-unix', identity: '/extra' }],
      },
    });
    expect(agent.machine.has('/extra')).toBe(true);
    expect((await bench.apply(agent, ['base'], { allowRemovals: 1 })).status).toBe('succeeded');
    expect(agent.machine.has('/extra')).toBe(false);
  });

  it('refuses to empty an agent, and says that the module was deleted, by whom and when', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': '' });
    await bench.apply(agent, ['site']);
    await bench.engine.modules.remove('site', ALICE);

    expect(await rejection(bench.start(agent, []))).toMatchObject({
      data: { reason: 'all' },
      message:
        'this apply would remove everything that is managed on web-1, 1 resource: ' +
        'file-unix /a (module site was deleted by alice at 2026-03-01T12:00:00.000Z)',
      // A module that is gone cannot be named.
      hint: 'to remove it, say how many: orch apply … --allow-removals 1',
    });
  });

  it('names the revision that dropped a resource, and who uploaded it', async () => {
    const bench = await openBench({ removalGuard: () => 0 });
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': '', '/b': '' });
    await bench.apply(agent, ['site']);
    bench.clock.advance(1000);
    await bench.upload('site', { '/a': '' });

    const { message } = await rejection(bench.start(agent, ['site']));

    const who = `${ALICE.actor.id} at 2026-03-01T12:00:01.000Z`;
    expect(message).toContain(`/b (revision 2 of module site, uploaded by ${who}, does not declare it)`);
  });

  it('names whoever changed the tag that a variant or a path depended on', async () => {
    const bench = await openBench({ removalGuard: () => 0 });
    const agent = await bench.agent('1');
    const content = `${moduleText('site', { '/keep': '' })}
  - variants:
      - when: {tag.env: prod}
        resource: {file-unix: {path: /prod, content: ""}}
      - when: {}
        resource: {file-unix: {path: /other, content: ""}}
  - resource: {file-unix: {path: "/env-$\{{ tags.env }}", content: ""}}
`;
    const { db, uow } = bench;
    await setTag(db, agent.nodeId, 'env', 'prod');
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    await bench.apply(agent, ['site']);
    bench.clock.advance(5000);
    await uow.write(async (tx, emit) => {
      await setTag(tx, agent.nodeId, 'env', 'dev');
      const target = { id: agent.nodeId, name: 'web-1', type: 'agent' } as const;
      emit({ type: 'agent.tags_changed', actor: ALICE.actor, target, summary: 'env is dev', metadata: {} });
    });

    const { data } = await rejection(bench.start(agent, ['site']));

    const cause = 'the tags of the agent were changed by alice at 2026-03-01T12:00:05.000Z';
    expect(data?.removals).toEqual([
      { module: 'site', kind: 'file-unix', identity: '/prod', cause },
      { module: 'site', kind: 'file-unix', identity: '/env-prod', cause },
    ]);
  });

  it('names the value set or the assignment whose values took them out, and the condition that does not hold', async () => {
    const bench = await openBench({ removalGuard: () => 0 });
    const agent = await bench.agent('1');
    const content = `name: site
supports: [{platform: linux}]
inputs: {sites: {type: map, of: {type: string}, default: {}}, on: {type: boolean, default: false}}
resources:
  - resource: {file-unix: {path: /keep, content: ""}}
  - {for_each: inputs.sites, resources: [{file-unix: {path: "/s/$\{{ each.key }}", content: ""}}]}
  - {if: inputs.on, file-unix: {path: /on, content: ""}}
`;
    const values = (text: string) => ({ name: 'prod', content: `values: [{when: {}, set: {site: ${text}}}]` });
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    await bench.engine.values.upload(values('{sites: {a: x}, on: true}'), ALICE);
    const given = { name: 'all', modules: ['site'], selector: '*', description: null };
    await bench.engine.assignments.create(given, ALICE);
    await bench.apply(agent, []);
    bench.clock.advance(5000);
    const causes = async () => {
      const { data } = await rejection(bench.start(agent, []));
      const removals = (data?.removals ?? []) as readonly { readonly cause: string }[];
      return removals.map(({ cause }) => cause);
    };
    await bench.engine.values.upload(values('{on: true}'), ALICE);
    expect(await causes()).toEqual(['the value set prod was changed by alice at 2026-03-01T12:00:05.000Z']);
    bench.clock.advance(5000);
    const change = { modules: null, selector: null, description: null, values: { site: { on: false } } };
    await bench.engine.assignments.update('all', change, ALICE);
    const cause = 'the values of assignment all were changed by alice at 2026-03-01T12:00:10.000Z';
    expect(await causes()).toEqual([cause, cause]);
    bench.clock.advance(5000);
    await bench.engine.modules.upload({ name: 'site', content: `${content}# changed\n` }, ALICE);
    const revision = `revision 2 of module site, uploaded by ${ALICE.actor.id} at 2026-03-01T12:00:15.000Z, does not give it to the agent`;
    expect((await causes())[1]).toBe(revision);
  });

  it('refuses to empty a loop because values have changed, however few that removes, and lets a part of it go', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const content = `name: site
supports: [{platform: linux}]
inputs: {sites: {type: map, of: {type: string}, default: {}}}
resources:
  - file-unix: {path: /keep, content: ""}
  - {for_each: inputs.sites, file-unix: {path: "/s/$\{{ each.key }}.conf", content: ""}}
  - {for_each: inputs.sites, resources: [{id: run, script: {program: sh, apply: "true", undo: "true"}}]}
`;
    const values = (sites: string) => ({
      name: 'all',
      content: `values: [{when: {}, set: {site: {sites: ${sites}}}}]`,
    });
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    await bench.engine.values.upload(values('{a: x, b: x}'), ALICE);
    const given = { name: 'all', modules: ['site'], selector: '*', description: null };
    await bench.engine.assignments.create(given, ALICE);
    await bench.apply(agent, []);
    bench.clock.advance(5000);
    await bench.engine.values.upload(values('{a: x}'), ALICE);
    expect((await bench.apply(agent, [])).status).toBe('succeeded');
    expect([agent.machine.has('/s/a.conf'), agent.machine.has('/s/b.conf')]).toEqual([true, false]);
    bench.clock.advance(5000);
    await bench.engine.values.upload(values('{}'), ALICE);
    const refused = await rejection(bench.start(agent, []));
    expect(refused).toMatchObject({
      code: 'removal_guard',
      message: expect.stringContaining(
        'a loop of a module has no element any longer: file-unix /s/a.conf (the value set all',
      ),
      data: { reason: 'emptied', allow_removals: 2 },
    });
    await bench.engine.assignments.update('all', { ...UNCHANGED, mode: 'enforce' }, ALICE);
    await bench.rest();
    await bench.settle();
    await bench.rest();
    expect(bench.engine.standings.of(agent.nodeId).automation_stopped).toMatchObject({ code: 'removal_guard' });
    expect(agent.machine.has('/s/a.conf')).toBe(true);
    expect((await bench.apply(agent, [], { allowRemovals: 2 })).status).toBe('succeeded');
    expect([agent.machine.has('/s/a.conf'), agent.machine.has('/keep')]).toEqual([false, true]);
  });

  it('lets the author of a module take a loop out', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const text = (list: string) => `name: site
supports: [{platform: linux}]
resources:
  - file-unix: {path: /keep, content: ""}
  - {for_each: ${list}, file-unix: {path: "/s/$\{{ each.key }}", content: ""}}
`;
    await bench.engine.modules.upload({ name: 'site', content: text('[a]') }, ALICE);
    await bench.apply(agent, ['site']);
    bench.clock.advance(5000);
    await bench.engine.modules.upload({ name: 'site', content: text('[]') }, ALICE);
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
    expect(agent.machine.has('/s/a')).toBe(false);
  });

  it('asks for the limit at each apply', async () => {
    let limit = 0;
    const bench = await openBench({ removalGuard: () => limit });
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': '', '/b': '' });
    await bench.apply(agent, ['site']);
    await bench.upload('site', { '/a': '' });
    expect((await rejection(bench.start(agent, ['site']))).code).toBe('removal_guard');
    limit = 1;
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });
});
