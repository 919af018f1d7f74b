import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import type { RunContent } from '../../src/wire/parts.js';
import { rejection } from '../support/database.js';
import { ALICE, nodeId, openBench } from '../support/engine.js';

const FILES = { '/etc/motd': 'hello', '/etc/issue': 'welcome' };

describe('an apply', () => {
  it('is stored, sent, carried out, and becomes the believed state', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.machine.set('/etc/motd', '"old"');
    await bench.upload('site', FILES);

    const operation = await bench.apply(agent, ['site']);

    expect(operation).toMatchObject({ status: 'succeeded', modules: ['site'], error: null, node_name: 'web-1' });
    expect(operation.summary).toEqual({
      total: 2,
      unchanged: 0,
      pending: 0,
      changed: 2,
      failed: 0,
      skipped: 0,
      removed: 0,
    });
    expect(operation.resources.map(({ identity, action }) => [identity, action])).toEqual([
      ['/etc/motd', 'update'],
      ['/etc/issue', 'create'],
    ]);
    expect(agent.journal.size).toBe(0);
    const state = await bench.engine.state.get(agent.nodeId);
    expect(state).toMatchObject({ operation_id: operation.operation_id, pending_removals: [], unapplied: [] });
    expect(state.applied.map(({ identity, origin }) => [identity, origin])).toEqual([
      ['/etc/motd', 'adopted'],
      ['/etc/issue', 'created'],
    ]);
    expect(bench.eventTypes('state.')).toEqual(['state.apply_started', 'state.apply_succeeded']);
    expect(bench.events.at(-1)).toMatchObject({
      summary: 'the apply of module site on web-1 succeeded: 2 changed of 2',
      metadata: { operation_id: operation.operation_id, request_id: 'request-1', requested_by: ALICE.actor.id },
    });
  });

  it('keeps the origin of the first apply, and notes that a later one found everything in order', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    bench.clock.advance(60_000);

    const again = await bench.apply(agent, ['site']);

    expect(again).toMatchObject({ status: 'succeeded', summary: { unchanged: 2 } });
    const { applied, operation_id } = await bench.engine.state.get(agent.nodeId);
    expect(operation_id).toBe(again.operation_id);
    expect(applied.map((row) => [row.origin, row.operation_id, row.applied_at])).toEqual([
      ['created', again.operation_id, again.finished_at],
      ['created', again.operation_id, again.finished_at],
    ]);
  });

  it('is stored before anything is sent, and not sent when it cannot be stored', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    bench.isStoreBroken = true;

    expect((await rejection(bench.start(agent, ['site']))).code).toBe('store_unavailable');
    expect(agent.inbox).toEqual([]);

    bench.isStoreBroken = false;
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });

  it('of two that come at once refuses the second and names the first', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);

    const outcomes = await Promise.allSettled([bench.start(agent, ['site']), bench.start(agent, ['site'])]);
    const first = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));

    expect(first).toHaveLength(1);
    expect(refused).toMatchObject([{ code: 'operation_in_progress', data: { operation_id: first[0] } }]);
    await bench.settle();
    expect((await bench.engine.operations.get(first[0] ?? '')).status).toBe('succeeded');
    await bench.apply(agent, ['site']);
  });

  it('is refused for agents that are unknown, not approved or away, and for modules that are not there', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const away = await bench.agent('2', { connected: false });
    const rejected = await bench.agent('3');
    await bench.reject(rejected);
    await bench.upload('site', FILES);
    await bench.upload('windows', {}, '[{platform: windows}]');
    const codes = async (id: string, modules: readonly string[]) =>
      (await rejection(bench.engine.applies.start({ nodeId: id, modules, limits: NO_LIMITS, expect: null }, ALICE)))
        .code;

    expect(await codes(nodeId('9'), ['site'])).toBe('agent_not_found');
    expect(await codes('../etc', ['site'])).toBe('agent_not_found');
    expect(await codes(away.nodeId, ['site'])).toBe('agent_not_connected');
    bench.fleet.holds.set(agent.nodeId, 'several machines have its key');
    const held = bench.engine.applies.start(
      { nodeId: agent.nodeId, modules: ['site'], limits: NO_LIMITS, expect: null },
      ALICE,
    );
    expect(await rejection(held)).toMatchObject({
      code: 'agent_not_connected',
      message: expect.stringMatching(/^nothing is sent to agent .*, because several machines have its key$/),
      hint: expect.stringMatching(/^decide which machine it is: orch agents keep /),
    });
    bench.fleet.holds.clear();
    expect(await codes(rejected.nodeId, ['site'])).toBe('agent_not_approved');
    expect(await codes(agent.nodeId, ['nothing'])).toBe('module_not_found');
    expect(await codes(agent.nodeId, ['windows'])).toBe('module_not_supported');
    // A refusal leaves the agent free.
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });

  it('holds to the number of operations in all', async () => {
    const bench = await openBench({ limits: { operations: 1 } });
    const [one, two] = [await bench.agent('1'), await bench.agent('2')];
    await bench.upload('site', FILES);
    const id = await bench.start(one, ['site']);

    const fault = await rejection(bench.start(two, ['site']));

    expect(fault).toMatchObject({ code: 'operation_in_progress', data: { limit: 1 } });
    await bench.settle();
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    expect((await bench.apply(two, ['site'])).status).toBe('succeeded');
  });

  it('that partly fails updates what was applied and leaves what failed at its previous state', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/etc/a': 'one', '/etc/b': 'one' });
    const before = await bench.apply(agent, ['site']);
    await bench.upload('site', { '/etc/a': 'two', '/etc/b': 'two', '/etc/c': 'two' });
    agent.mishaps.set('/etc/b', 'fail').set('/etc/c', 'skip');

    const after = await bench.apply(agent, ['site']);

    expect(after).toMatchObject({ status: 'failed', summary: { total: 3, changed: 1, failed: 1, skipped: 1 } });
    const { applied, unapplied, operation_id } = await bench.engine.state.get(agent.nodeId);
    expect(applied.map((row) => [row.identity, row.operation_id])).toEqual([
      ['/etc/a', after.operation_id],
      ['/etc/b', before.operation_id],
    ]);
    expect(unapplied).toEqual([{ module: 'site', kind: 'file-unix', identity: '/etc/c' }]);
    expect(operation_id).toBe(after.operation_id);
    expect(bench.eventTypes('state.').at(-1)).toBe('state.apply_failed');
  });

  it('that fails as a whole on a new agent leaves nothing to compare with', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/etc/a': 'one' });
    agent.mishaps.set('/etc/a', 'fail');

    expect((await bench.apply(agent, ['site'])).status).toBe('failed');

    expect(await bench.engine.state.get(agent.nodeId)).toMatchObject({ operation_id: null, applied: [] });
    expect((await rejection(bench.drift(agent))).code).toBe('no_snapshot');
  });

  it('that has made a resource half way removes it once it is no longer declared', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/etc/half': 'one', '/etc/whole': 'two' });
    agent.mishaps.set('/etc/half', 'begin');
    expect((await bench.apply(agent, ['site'])).status).toBe('failed');
    agent.mishaps.clear();
    await bench.upload('site', { '/etc/whole': 'two' });
    const { resources } = await bench.apply(agent, ['site'], { allowRemovals: 1 });
    expect(resources.map(({ identity, action, status }) => `${identity} ${action} ${status}`)).toEqual([
      '/etc/whole none unchanged',
      '/etc/half remove changed',
    ]);
  });

  it('removes what it created, releases what was there before, and keeps what could not be removed', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.machine.set('/etc/adopted', '"old"');
    await bench.upload('site', { '/etc/keep': 'x', '/etc/created': 'x', '/etc/adopted': 'x', '/etc/stuck': 'x' });
    await bench.apply(agent, ['site']);
    await bench.upload('site', { '/etc/keep': 'x' });
    agent.mishaps.set('/etc/stuck', 'fail');

    const pending = (await bench.engine.state.get(agent.nodeId)).pending_removals.map(({ identity }) => identity);
    const operation = await bench.apply(agent, ['site'], { allowRemovals: 2 });

    expect(pending).toEqual(['/etc/created', '/etc/adopted', '/etc/stuck']);
    expect(operation.resources.map(({ identity, action, status }) => [identity, action, status])).toEqual([
      ['/etc/keep', 'none', 'unchanged'],
      ['/etc/created', 'remove', 'changed'],
      ['/etc/adopted', 'release', 'changed'],
      ['/etc/stuck', 'remove', 'failed'],
    ]);
    expect(operation.summary).toMatchObject({ changed: 2, removed: 1, failed: 1 });
    expect([...agent.machine.keys()].sort()).toEqual(['/etc/adopted', '/etc/keep', '/etc/stuck']);
    const { applied } = await bench.engine.state.get(agent.nodeId);
    expect(applied.map(({ identity }) => identity)).toEqual(['/etc/keep', '/etc/stuck']);
  });

  it('tells what listened to a resource that it goes, also when no trigger names it any longer', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const site = (files: readonly string[], listens: readonly string[]) =>
      [
        'name: site',
        'supports: [{platform: linux}]',
        'resources:',
        ...files.map((id) => `  - {id: ${id}, resource: {file-unix: {path: /${id}, content: x}}}`),
        `  - resource: {service-systemd: {name: web, reload_on: [${listens.join()}]}}`,
        '  - resource: {service-systemd: {name: other, restart_on: [kept]}}',
        '',
      ].join('\n');
    const upload = (content: string) => bench.engine.modules.upload({ name: 'site', content }, ALICE);
    /** Triggers of the last apply, by the name of what they change. */
    const triggers = async (id: string) => {
      const { content_json } = await bench.db
        .selectFrom('operations')
        .innerJoin('run_contents', 'run_contents.content_id', 'operations.content_id')
        .select('content_json')
        .where('operation_id', '=', id)
        .executeTakeFirstOrThrow();
      const { resources, removals }: RunContent = JSON.parse(content_json);
      const all = [...resources, ...removals];
      return resources.flatMap(({ identity, triggers: own }) =>
        Object.entries(own ?? {}).map(([field, places]) => [
          identity,
          field,
          places.map((place) => all[place]?.identity),
        ]),
      );
    };
    await upload(site(['kept', 'a', 'b'], ['kept', 'a', 'b']));
    const first = await bench.apply(agent, ['site']);
    await upload(site(['kept'], ['kept']));
    const second = await bench.apply(agent, ['site'], { allowRemovals: 2 });
    const third = await bench.apply(agent, ['site']);
    const back = await bench.apply(agent, [], { to: second.operation_id, allowRemovals: 2 });

    const own = [
      ['web', 'reload_on', ['/kept']],
      ['other', 'restart_on', ['/kept']],
    ];
    expect(await triggers(first.operation_id)).toEqual([['web', 'reload_on', ['/kept', '/a', '/b']], own[1]]);
    expect(await triggers(second.operation_id)).toEqual([['web', 'reload_on', ['/kept', '/a', '/b']], own[1]]);
    expect(await triggers(third.operation_id)).toEqual(own);
    expect(await triggers(back.operation_id)).toEqual(own);
    expect(third.summary).toMatchObject({ changed: 0 });
  });

  it('takes a resource over that moves from one module to another', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('first', { '/etc/a': 'x' });
    await bench.upload('second', { '/etc/a': 'x' });
    await bench.apply(agent, ['first']);

    const operation = await bench.apply(agent, ['second']);

    expect(operation.resources.map(({ module, action }) => [module, action])).toEqual([['second', 'none']]);
    const { applied } = await bench.engine.state.get(agent.nodeId);
    expect(applied).toMatchObject([{ module: 'second', origin: 'created' }]);
  });

  it('does only what the plan showed', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const hash = async () => (await bench.plan(agent, ['site'])).plan_hash ?? '';
    const shown = await hash();

    agent.machine.set('/etc/elsewhere', '"changed behind our back"');
    const stale = await bench.apply(agent, ['site'], { expect: shown });
    expect(stale).toMatchObject({ status: 'failed', error: { code: 'plan_stale' }, resources: [] });
    expect(agent.machine.has('/etc/motd')).toBe(false);

    const fresh = await hash();
    expect((await bench.apply(agent, ['site'], { expect: fresh })).status).toBe('succeeded');

    const after = await hash();
    await bench.upload('site', { ...FILES, '/etc/more': 'x' });
    expect((await rejection(bench.start(agent, ['site'], { expect: after }))).code).toBe('plan_stale');
  });

  it('is cancelled at a resource boundary', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    agent.work();
    await bench.settle();

    await bench.engine.applies.cancel(id, { ...ALICE, actor: { ...ALICE.actor, name: 'bob' } });
    agent.diligent = true;
    await bench.settle();

    const operation = await bench.engine.operations.detail(id);
    expect(operation).toMatchObject({ status: 'cancelled', summary: { total: 2, changed: 1 } });
    expect((await bench.engine.state.get(agent.nodeId)).applied.map(({ identity }) => identity)).toEqual(['/etc/motd']);
    expect(bench.events.at(-1)).toMatchObject({ type: 'state.apply_cancelled', actor: { name: 'bob' } });
    expect((await rejection(bench.engine.applies.cancel(id, ALICE))).code).toBe('operation_finished');
    expect((await rejection(bench.engine.applies.cancel(bench.newId(), ALICE))).code).toBe('operation_not_found');
  });

  it('lists operations newest first, by status and by agent', async () => {
    const bench = await openBench();
    const [one, two] = [await bench.agent('1'), await bench.agent('2')];
    await bench.upload('site', FILES);
    const first = await bench.apply(one, ['site']);
    two.mishaps.set('/etc/motd', 'fail');
    const second = await bench.apply(two, ['site']);
    one.mute = true;
    const running = await bench.start(one, ['site']);
    const { operations } = bench.engine;
    const ids = (page: { operations: readonly { operation_id: string }[] }) =>
      page.operations.map((one) => one.operation_id);
    const all = { rights: ALL_RIGHTS, limit: 50, offset: 0, status: null };

    expect(ids(await operations.list(all))).toEqual([running, second.operation_id, first.operation_id]);
    expect(ids(await operations.list({ ...all, limit: 1, offset: 1 }))).toEqual([second.operation_id]);
    expect(ids(await operations.list({ ...all, status: 'failed' }))).toEqual([second.operation_id]);
    expect(await operations.list({ ...all, status: 'queued' }, one.nodeId)).toMatchObject({
      operations: [{ operation_id: running, status: 'queued', finished_at: null, summary: { total: 2 } }],
      total: 1,
    });
    expect((await rejection(operations.list(all, nodeId('9')))).code).toBe('agent_not_found');
    expect(await operations.ofAgent(one.nodeId, first.operation_id)).toMatchObject({ status: 'succeeded' });
    expect((await rejection(operations.ofAgent(two.nodeId, first.operation_id))).code).toBe('operation_not_found');
  });
});

describe('those who wait for an apply', () => {
  it('get stored results first, then those that come, and all of them the same', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', { '/a': '', '/b': '', '/c': '' });
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    agent.work();
    await bench.settle();
    const watch = async () => {
      const { signal } = new AbortController();
      const seen: string[] = [];
      for await (const { identity } of bench.engine.operations.follow(id, { signal, ignoresSilence: true }))
        seen.push(identity);
      return seen;
    };
    const watchers = Array.from({ length: 20 }, watch);
    await bench.settle();
    agent.diligent = true;

    expect(await bench.while(Promise.all(watchers))).toEqual(watchers.map(() => ['/a', '/b', '/c']));
    expect(await watch()).toEqual(['/a', '/b', '/c']);
  });

  it('hear of a silent agent, while the operation goes on', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.mute = true;
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    const follow = async (ignoresSilence: boolean) => {
      const { signal } = new AbortController();
      for await (const _ of bench.engine.operations.follow(id, { signal, ignoresSilence }));
    };
    const waiting = rejection(follow(false));
    const patient = follow(true);
    await bench.settle();
    bench.clock.advance(59_000);
    await bench.engine.tick();
    bench.clock.advance(1000);
    await bench.engine.tick();

    expect(await waiting).toMatchObject({ code: 'agent_timeout', data: { operation_id: id } });
    expect((await bench.engine.operations.get(id)).status).toBe('queued');

    await bench.disconnect(agent);
    agent.mute = false;
    agent.connect();
    await bench.while(patient);
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
  });

  it('wait for an agent that works for long, but is there', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    let isOver = false;
    const waiting = (async () => {
      const { signal } = new AbortController();
      for await (const _ of bench.engine.operations.follow(id, { signal, ignoresSilence: false }));
      isOver = true;
    })();
    bench.clock.advance(10 * 60_000);
    await bench.engine.tick();
    await bench.settle();
    expect(isOver).toBe(false);
    agent.diligent = true;
    await bench.while(waiting);
    expect(isOver).toBe(true);
  });

  it('are let go when the orchestrator stops', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.mute = true;
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    const { signal } = new AbortController();
    const waiting = rejection(
      (async () => {
        for await (const _ of bench.engine.operations.follow(id, { signal, ignoresSilence: true }));
      })(),
    );
    await bench.settle();
    await bench.engine.stop();
    expect(await waiting).toMatchObject({ code: 'shutting_down', data: { operation_id: id } });
  });
});
