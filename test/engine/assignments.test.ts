/** Assignments: their rules, what they make agents have, and what the removal guard says when they do so no more. */

import { describe, expect, it } from 'vitest';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TagService } from '../../daemon/fleet/tag-service.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const BOB: RequestContext = { ...ALICE, actor: { id: 'b0b'.padEnd(32, '0'), name: 'bob', type: 'operator' } };

const create = (bench: Bench, name: string, modules: readonly string[], selector: string) =>
  bench.engine.assignments.create({ name, modules, selector, description: null }, ALICE);

/** Sets the tags of an agent as the API does. */
function tag(bench: Bench, agent: ScriptedAgent, tags: Readonly<Record<string, string>>, by: RequestContext = ALICE) {
  const { db, uow, clock } = bench;
  return new TagService({ db, uow, clock, machines: bench.engine.machines }).replace(by, agent.nodeId, tags);
}

describe('an assignment', () => {
  it('is created, shown with the agents that it matches now, changed and deleted', async () => {
    const bench = await openBench();
    const web = await bench.agent('1', { name: 'web' });
    await bench.agent('2', { name: 'db' });
    await tag(bench, web, { role: 'web' });
    await bench.upload('site', {});
    await bench.upload('base', {});
    const { assignments } = bench.engine;

    const made = await assignments.create(
      { name: 'webs', modules: ['site', 'site'], selector: 'role=web', description: 'the web' },
      ALICE,
    );

    expect(made).toMatchObject({ name: 'webs', modules: ['site'], selector: 'role=web', description: 'the web' });
    expect(await assignments.list()).toEqual([made]);
    expect((await assignments.get('webs', ALL_RIGHTS)).agents).toEqual([{ node_id: web.nodeId, name: 'web' }]);
    const nothing = { modules: null, selector: null, description: null };
    expect(await assignments.update('webs', nothing, ALICE)).toEqual(made);
    const changed = await assignments.update(
      'webs',
      { modules: ['base', 'site'], selector: '*', description: '' },
      ALICE,
    );
    expect(changed).toMatchObject({ modules: ['base', 'site'], selector: '*', description: null });
    expect((await assignments.get('webs', ALL_RIGHTS)).agents.map(({ name }) => name)).toEqual(['db', 'web']);
    await assignments.remove('webs', ALICE);
    expect((await rejection(assignments.get('webs', ALL_RIGHTS))).code).toBe('assignment_not_found');
    expect(bench.eventTypes('assignment')).toEqual(['assignment.created', 'assignment.updated', 'assignment.deleted']);
    expect(bench.events.findLast(({ type }) => type === 'assignment.updated')).toMatchObject({
      target: { id: 'webs', type: 'assignment' },
      summary: 'alice changed the modules and the selector and the description of assignment webs',
      metadata: { before: { modules: ['site'] }, after: { modules: ['base', 'site'] }, request_id: 'request-1' },
    });
  });

  it('is refused for a bad name, a bad selector, unknown modules, or a name that is taken', async () => {
    const bench = await openBench();
    await bench.upload('site', {});
    expect(await rejection(create(bench, '-x', ['site'], '*'))).toMatchObject({ code: 'invalid_name' });
    expect(await rejection(create(bench, 'x', ['site'], 'role in ('))).toMatchObject({
      code: 'invalid_selector',
      data: { position: 10 },
    });
    expect(await rejection(create(bench, 'x', ['site', 'nix', 'nox'], '*'))).toMatchObject({
      code: 'unknown_module',
      message: 'there is no module "nix", and 1 more of these modules are missing',
      errors: [{ path: '/modules/1' }, { path: '/modules/2' }],
    });
    await create(bench, 'x', ['site'], '*');
    expect(await rejection(create(bench, 'x', ['site'], '*'))).toMatchObject({ code: 'assignment_exists' });
    const { assignments } = bench.engine;
    const change = { modules: null, selector: null, description: null };
    expect((await rejection(assignments.update('y', change, ALICE))).code).toBe('assignment_not_found');
    expect((await rejection(assignments.update('x', { ...change, selector: '' }, ALICE))).code).toBe(
      'invalid_selector',
    );
    expect((await rejection(assignments.update('x', { ...change, modules: ['nix'] }, ALICE))).code).toBe(
      'unknown_module',
    );
    expect((await rejection(assignments.remove('y', ALICE))).code).toBe('assignment_not_found');
  });

  it('keeps its modules from being deleted', async () => {
    const bench = await openBench();
    await bench.upload('site', {});
    await create(bench, 'a', ['site'], '*');
    expect(await rejection(bench.engine.modules.remove('site', ALICE))).toMatchObject({
      code: 'module_in_use',
      data: { assignments: ['a'] },
    });
    await bench.engine.assignments.remove('a', ALICE);
    await bench.engine.modules.remove('site', ALICE);
    expect(await bench.engine.modules.list()).toEqual([]);
  });
});

describe('an agent', () => {
  it('has the modules of every assignment that matches it in name order, then the named ones', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    for (const name of ['a', 'b', 'c', 'd']) await bench.upload(name, { [`/${name}`]: '' });
    await create(bench, 'second', ['b'], 'platform=linux');
    await create(bench, 'first', ['c', 'b'], '*');
    await create(bench, 'other', ['d'], 'role=db');

    const operation = await bench.apply(agent, ['a', 'c']);

    expect(operation).toMatchObject({ modules: ['c', 'b', 'a'], assignments: ['first', 'second'], rollout_id: null });
    const { applied, pending_removals, unapplied } = await bench.engine.state.get(agent.nodeId);
    expect(applied.map(({ identity }) => identity)).toEqual(['/c', '/b', '/a']);
    expect({ pending_removals, unapplied }).toEqual({ pending_removals: [], unapplied: [] });
  });

  it('tells in its state what assignments now want beside it, and no longer', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    for (const name of ['a', 'b', 'named']) await bench.upload(name, { [`/${name}`]: '' });
    await create(bench, 'x', ['a'], '*');
    await bench.apply(agent, ['named']);
    await bench.engine.assignments.update('x', { modules: ['b'], selector: null, description: null }, ALICE);

    const state = await bench.engine.state.get(agent.nodeId);

    expect(state.pending_removals.map(({ identity }) => identity)).toEqual(['/a']);
    expect(state.unapplied).toEqual([{ module: 'b', kind: 'file-unix', identity: '/b' }]);
  });

  it('follows its tags and every change of an assignment at once', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/site': '' });
    const unapplied = async () => (await bench.engine.state.get(agent.nodeId)).unapplied.length;
    expect(await unapplied()).toBe(0);
    await create(bench, 'x', ['site'], 'role=web');
    expect(await unapplied()).toBe(0);
    await tag(bench, agent, { role: 'web' });
    expect(await unapplied()).toBe(1);
    await bench.engine.assignments.update('x', { modules: null, selector: '!role', description: null }, ALICE);
    expect(await unapplied()).toBe(0);
    await bench.engine.assignments.remove('x', ALICE);
    await create(bench, 'x', ['site'], 'role');
    expect(await unapplied()).toBe(1);
    await bench.restart();
    expect(await unapplied()).toBe(1);
  });
});

describe('the removal guard', () => {
  const applied = async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/site': '' });
    await bench.upload('base', { '/base': '' });
    await tag(bench, agent, { role: 'web', env: 'prod' });
    await create(bench, 'webs', ['site', 'base'], 'role=web,env');
    await bench.apply(agent, []);
    bench.clock.advance(1000);
    const refusal = async () => {
      const { data } = await rejection(bench.start(agent, []));
      const removals = data?.removals as { identity: string; cause: string }[] | undefined;
      return (removals ?? []).map(({ identity, cause }) => [identity, cause]);
    };
    return { bench, agent, refusal };
  };
  const WHEN = 'by bob at 2026-03-01T12:00:01.000Z';

  it('names the tag that was removed, by whom and when', async () => {
    const { bench, agent, refusal } = await applied();
    await tag(bench, agent, { env: 'prod' }, BOB);
    bench.clock.advance(1000);
    await tag(bench, agent, { env: 'test', more: '' });
    const cause = `assignment webs (role=web,env) no longer matches: tag role=web was removed ${WHEN}`;
    expect(await refusal()).toEqual([
      ['/site', cause],
      ['/base', cause],
    ]);
  });

  it('names the tag that was changed', async () => {
    const { bench, agent, refusal } = await applied();
    await tag(bench, agent, { role: 'db' }, BOB);
    const what = 'tag role was changed from "web" to "db" and tag env=prod was removed';
    expect((await refusal())[0]?.[1]).toBe(`assignment webs (role=web,env) no longer matches: ${what} ${WHEN}`);
  });

  it('names the assignment that was deleted', async () => {
    const { bench, refusal } = await applied();
    await bench.engine.assignments.remove('webs', BOB);
    expect((await refusal())[0]).toEqual(['/site', `assignment webs was deleted ${WHEN}`]);
  });

  it('names the assignment whose selector was changed', async () => {
    const { bench, refusal } = await applied();
    await bench.engine.assignments.update('webs', { modules: null, selector: 'role=db', description: null }, BOB);
    expect((await refusal())[0]?.[1]).toBe(
      `the selector of assignment webs was changed from "role=web,env" to "role=db" ${WHEN}`,
    );
  });

  it('names the assignment that a module was taken out of', async () => {
    const { bench, agent } = await applied();
    await bench.engine.assignments.update('webs', { modules: ['base'], selector: null, description: null }, BOB);
    // One of two resources is few, so it goes.
    expect((await bench.apply(agent, [])).status).toBe('succeeded');
    expect([...agent.machine.keys()]).toEqual(['/base']);
    const strict = await openBench({ removalGuard: () => 0 });
    const other = await strict.agent('1');
    await strict.upload('site', { '/site': '' });
    await strict.upload('base', { '/base': '' });
    await create(strict, 'webs', ['site', 'base'], '*');
    await strict.apply(other, []);
    strict.clock.advance(1000);
    await strict.engine.assignments.update('webs', { modules: ['base'], selector: null, description: null }, BOB);
    const { message } = await rejection(strict.start(other, []));
    expect(message).toContain(`/site (module site was taken out of assignment webs ${WHEN})`);
  });
});
