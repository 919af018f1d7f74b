import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { Fault } from '../../src/kernel/fault.js';
import { rejection } from '../support/database.js';
import { ALICE, moduleText, nodeId, openBench } from '../support/engine.js';

const FILES = { '/a': 'x', '/b': 'x' };

describe('a plan', () => {
  it('shows what an apply would change, and changes nothing', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    await bench.upload('site', { '/a': 'y' });

    const plan = await bench.plan(agent, ['site']);

    expect(plan).toMatchObject({
      operation_id: null,
      node_id: agent.nodeId,
      status: 'succeeded',
      has_changes: true,
      modules: ['site'],
      summary: { total: 2, pending: 2, removed: 1 },
      error: null,
    });
    expect(plan.resources.map(({ identity, action, status }) => [identity, action, status])).toEqual([
      ['/a', 'update', 'pending'],
      ['/b', 'remove', 'pending'],
    ]);
    expect(plan.plan_hash).toMatch(/^[0-9a-f]{64}\.[0-9a-f]{64}$/);
    expect((await bench.plan(agent, ['site'])).plan_hash).toBe(plan.plan_hash);
    expect(agent.machine.size).toBe(2);
    expect(bench.events.at(-1)).toMatchObject({ type: 'state.planned', summary: 'alice planned module site on web-1' });
    expect((await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 9, offset: 0, status: null })).total).toBe(
      1,
    );
  });

  it('takes modules as text, in place of stored ones and beside assigned ones, and stores nothing', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.upload('base', { '/base': 'x' });
    await bench.engine.assignments.create({ name: 'all', modules: ['base'], selector: '*', description: null }, ALICE);
    const site = moduleText('site', { '/a': 'sent' });
    const sent = await bench.engine.sources(
      [
        { name: 'site', content: site },
        { name: 'base', content: moduleText('base', { '/base': 'sent' }) },
      ],
      ALICE.actor.id,
    );
    const nothing = () => undefined;
    const { signal } = new AbortController();
    const request = { nodeId: agent.nodeId, modules: [], sent, signal, onStarted: nothing, onResult: nothing };
    const plan = await bench.while(bench.engine.plans.plan(request, ALICE));

    expect(plan.modules).toEqual(['base', 'site']);
    expect(plan.resources.map(({ identity }) => identity)).toEqual(['/base', '/a']);
    expect((await bench.engine.modules.get('site')).revision).toBe(1);
    expect(bench.events.at(-1)).toMatchObject({
      type: 'state.planned',
      summary: 'alice planned modules base, site on web-1 (site, base as sent with the request, not stored)',
      metadata: { sent: { site: createHash('sha256').update(site).digest('hex') } },
    });
    // The stored content is the planned one.
    for (const { name, content } of sent) await bench.engine.modules.upload({ name, content }, ALICE);
    expect((await bench.plan(agent, ['site'])).plan_hash).toBe(plan.plan_hash);
  });

  it('tells by the line of its text what it cannot resolve', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const content = [
      'name: site',
      'supports: [{platform: linux}]',
      'resources:',
      '  - variants:',
      '      - when: {distro: fedora}',
      '        resource: {file-unix: {path: /a}}',
      '  - id: conf',
      '    resource: {file-unix: {path: /b, content: "${{ tags.none }}"}}',
      '',
    ].join('\n');
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    const fault = await rejection(bench.plan(agent, ['site']));
    expect(fault.message).toBe('module "site", line 4: no variant matches agent "web-1" (and 1 more)');
    expect(fault.errors).toMatchObject([
      { path: '/resources/0/variants', line: 5 },
      { message: 'module "site", resource "conf" (line 7): content: the agent has no tag "none"', line: 8 },
    ]);
  });

  it('refuses texts that are no modules, have another name or come twice', async () => {
    const { engine } = await openBench();
    const content = moduleText('site', FILES);
    expect(
      await rejection(engine.sources([{ name: 'site', content: 'name: site\nx: 1\n' }], ALICE.actor.id)),
    ).toMatchObject({
      code: 'invalid_module',
      errors: [{ path: '/x', line: 2 }],
    });
    await engine.sources([{ name: 'site', content }], ALICE.actor.id);
    expect(await rejection(engine.sources([{ name: 'other', content }], ALICE.actor.id))).toMatchObject({
      code: 'invalid_module',
    });
    expect(
      await rejection(
        engine.sources(
          [
            { name: 'site', content },
            { name: 'site', content },
          ],
          ALICE.actor.id,
        ),
      ),
    ).toMatchObject({
      code: 'invalid_body',
    });
  });

  it('of a machine that is in order has no changes', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    expect(await bench.plan(agent, ['site'])).toMatchObject({ has_changes: false, summary: { unchanged: 2 } });
  });

  it('is not sent when it cannot be recorded', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    bench.isStoreBroken = true;
    expect((await rejection(bench.plan(agent, ['site']))).code).toBe('store_unavailable');
    expect(agent.received.filter(({ type }) => type === 'run')).toEqual([]);
  });

  it('is cancelled by an apply, which goes on', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const plan = rejection(bench.plan(agent, ['site']));
    await bench.settle();
    const waiting = rejection(bench.plan(agent, ['site']));
    await bench.settle();
    const id = await bench.start(agent, ['site']);
    agent.diligent = true;
    await bench.settle();

    expect((await plan).code).toBe('cancelled');
    expect(await waiting).toMatchObject({ code: 'operation_in_progress', data: { operation_id: id } });
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    expect(agent.received.map(({ type }) => type)).toContain('run_cancel');
    expect(bench.violations).toEqual([]);
  });

  it('waits for its turn behind another one, but not for long', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const first = bench.plan(agent, ['site']);
    await bench.settle();
    const second = bench.plan(agent, ['site']);
    await bench.settle();
    const third = rejection(bench.plan(agent, ['site']));
    await bench.settle();
    expect(agent.received.filter(({ type }) => type === 'run')).toHaveLength(1);
    agent.work();
    await bench.settle();
    expect((await first).status).toBe('succeeded');
    expect(agent.received.filter(({ type }) => type === 'run')).toHaveLength(2);
    bench.clock.advance(10_000);
    await bench.engine.tick();
    expect((await third).code).toBe('operation_in_progress');
    agent.work();
    await bench.settle();
    expect((await second).status).toBe('succeeded');
  });

  it('is refused while an apply runs, and for whoever comes when too many wait', async () => {
    const bench = await openBench({ limits: { waiting: 1 } });
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const first = bench.plan(agent, ['site']);
    await bench.settle();
    const second = bench.plan(agent, ['site']);
    await bench.settle();
    await bench.settle();
    expect((await rejection(bench.plan(agent, ['site']))).code).toBe('operation_in_progress');
    agent.diligent = true;
    await bench.while(Promise.all([first, second]));
    agent.diligent = false;
    const id = await bench.start(agent, ['site']);
    expect(await rejection(bench.plan(agent, ['site']))).toMatchObject({ data: { operation_id: id } });
    expect((await rejection(bench.drift(agent))).code).toBe('no_snapshot');
  });

  it('ends when its agent says nothing for a minute, or goes away, or the caller does', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.mute = true;
    await bench.upload('site', FILES);
    const silent = rejection(bench.plan(agent, ['site']));
    await bench.settle();
    bench.clock.advance(60_000);
    await bench.engine.tick();
    expect(await silent).toMatchObject({ code: 'agent_timeout', message: expect.stringContaining('60 s') });

    const caller = new AbortController();
    const left = rejection(bench.plan(agent, ['site'], caller.signal));
    await bench.settle();
    caller.abort();
    expect((await left).code).toBe('cancelled');
    await bench.settle();
    expect(agent.received.filter(({ type }) => type === 'run_cancel')).toHaveLength(2);

    const cut = rejection(bench.plan(agent, ['site']));
    await bench.settle();
    await bench.disconnect(agent);
    expect((await cut).code).toBe('agent_not_connected');

    agent.mute = false;
    agent.connect();
    await bench.settle();
    expect((await bench.plan(agent, ['site'])).status).toBe('succeeded');
  });

  it('ends when the orchestrator stops', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.mute = true;
    await bench.upload('site', FILES);
    const plan = rejection(bench.plan(agent, ['site']));
    await bench.settle();
    await bench.engine.stop();
    expect((await plan).code).toBe('shutting_down');
  });

  it('tells whoever waits for it why the request was ended', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.mute = true;
    await bench.upload('site', FILES);
    const request = new AbortController();
    const plan = rejection(bench.plan(agent, ['site'], request.signal));
    await bench.settle();
    request.abort(new Fault('shutting_down', 'the orchestrator is stopping'));
    expect((await plan).code).toBe('shutting_down');
  });

  it('does not mind what an agent still says about one that is over', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const caller = new AbortController();
    const plan = rejection(bench.plan(agent, ['site'], caller.signal));
    await bench.settle();
    agent.work();
    caller.abort();
    await bench.settle();
    await plan;
    expect(bench.violations).toEqual([]);
  });
});

describe('a drift check', () => {
  it('compares with what was applied, and tells each change of state once', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const { operation_id } = await bench.apply(agent, ['site']);
    // The newest revision is not the applied one.
    await bench.upload('site', { '/a': 'newer' });

    expect(await bench.drift(agent)).toMatchObject({
      status: 'in_sync',
      trigger: 'manual',
      operation_id,
      has_changes: false,
      summary: { total: 2, unchanged: 2 },
      error: null,
    });
    agent.machine.set('/a', '"tampered"');
    const drifted = await bench.drift(agent);
    await bench.drift(agent);
    expect(drifted).toMatchObject({ status: 'drifted', has_changes: true, summary: { pending: 1, unchanged: 1 } });
    expect(agent.machine.get('/a')).toBe('"tampered"');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    const resolved = await bench.drift(agent);
    await bench.drift(agent);

    expect(resolved.status).toBe('in_sync');
    expect(bench.eventTypes('drift.')).toEqual([
      'drift.checked',
      'drift.checked',
      'drift.detected',
      'drift.checked',
      'drift.resolved',
      'drift.checked',
      'drift.checked',
    ]);
    const { drift } = bench.engine;
    expect(await drift.get(drifted.drift_id, ALL_RIGHTS)).toEqual(drifted);
    expect(drifted.resources.map(({ identity, status }) => [identity, status])).toEqual([
      ['/a', 'pending'],
      ['/b', 'unchanged'],
    ]);
    expect((await drift.latest(agent.nodeId, ALL_RIGHTS))?.status).toBe('in_sync');
    expect(
      (await drift.listOfAgent(agent.nodeId, { rights: ALL_RIGHTS, limit: 2, status: 'drifted' })).map(
        (one) => one.status,
      ),
    ).toEqual(['drifted', 'drifted']);
    expect(await drift.list({ rights: ALL_RIGHTS, limit: 50, status: null })).toHaveLength(5);
  });

  it('tells of drift each time it comes back after an apply has repaired it', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    for (let round = 0; round < 3; round += 1) {
      agent.machine.set('/a', '"tampered"');
      await bench.drift(agent);
      await bench.apply(agent, ['site']);
    }
    const once = ['drift.checked', 'drift.detected', 'drift.resolved'];
    expect(bench.eventTypes('drift.')).toEqual([...once, ...once, ...once]);
    const resolved = bench.events.findLast(({ type }) => type === 'drift.resolved');
    const latest = await bench.engine.drift.latest(agent.nodeId, ALL_RIGHTS);
    expect(resolved).toMatchObject({
      summary: 'web-1 is as it was applied again: an apply succeeded',
      metadata: { drift_id: latest?.drift_id, trigger: 'apply', status: 'in_sync' },
    });
  });

  it('is not resolved by an apply that fails', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    agent.machine.set('/a', '"tampered"');
    await bench.drift(agent);
    agent.mishaps.set('/a', 'fail');
    expect((await bench.apply(agent, ['site'])).status).toBe('failed');
    expect(bench.eventTypes('drift.')).toEqual(['drift.checked', 'drift.detected']);
  });

  it('needs something that was applied', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    expect((await rejection(bench.drift(agent))).code).toBe('no_snapshot');
    expect(await bench.engine.drift.latest(agent.nodeId, ALL_RIGHTS)).toBeNull();
    expect((await rejection(bench.engine.drift.latest(nodeId('9'), ALL_RIGHTS))).code).toBe('agent_not_found');
    expect((await rejection(bench.engine.drift.get(bench.newId(), ALL_RIGHTS))).code).toBe('drift_not_found');
  });

  it('is cancelled by an apply', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    agent.diligent = false;
    const check = bench.drift(agent);
    await bench.settle();
    await bench.start(agent, ['site']);
    agent.diligent = true;
    expect(await bench.while(check)).toMatchObject({
      status: 'cancelled',
      resources: [],
      error: { code: 'cancelled' },
    });
    expect(bench.eventTypes('drift.')).toEqual(['drift.checked']);
  });

  it('fails when its agent goes away, says nothing, or cannot look', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    agent.mishaps.set('/b', 'fail');
    expect(await bench.drift(agent)).toMatchObject({
      status: 'failed',
      summary: { unchanged: 1, failed: 1 },
      error: { code: 'observe_failed' },
    });
    agent.mute = true;
    const cut = bench.drift(agent);
    await bench.settle();
    await bench.disconnect(agent);
    expect(await cut).toMatchObject({ status: 'failed', error: { code: 'agent_not_connected' } });

    agent.connect();
    await bench.settle();
    const silent = rejection(bench.drift(agent));
    await bench.settle();
    bench.clock.advance(60_000);
    await bench.engine.tick();
    const { code, data } = await silent;
    expect(code).toBe('agent_timeout');
    expect(await bench.engine.drift.get(String(data?.drift_id), ALL_RIGHTS)).toMatchObject({ status: 'failed' });
    expect(bench.eventTypes('drift.')).toEqual(['drift.failed', 'drift.failed', 'drift.failed']);
  });

  it('of the scheduler is recorded as such', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    const { signal } = new AbortController();
    const record = await bench.while(bench.engine.drift.check({ nodeId: agent.nodeId, signal, requestedBy: null }));
    expect(record).toMatchObject({ trigger: 'scheduled', requested_by: null });
    expect(bench.events.at(-1)).toMatchObject({ actor: { type: 'system' }, metadata: { trigger: 'scheduled' } });
  });
});
