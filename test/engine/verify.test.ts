/** Health checks on the orchestrator: what is sent, stored and believed, and checks that run again on request. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { AgentSecrets } from '../../daemon/engine/agent-secrets.js';
import { encodeContent } from '../../daemon/engine/runs/run-contents.js';
import { finish } from '../../src/kernel/steps.js';
import type { CheckReport } from '../../src/resources/checks/check.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const CHECKS = `verify:
- {name: page, http: {url: "http://127.0.0.1/"}}
- {name: daemon, unit: nginx}
`;

const moduleOf = (verify = CHECKS, file = '/etc/motd') =>
  `name: site\nsupports: [{platform: linux}]\nresources:\n- resource: {file-unix: {path: ${file}, content: hello}}\n${verify}`;

const upload = (bench: Bench, verify = CHECKS, file = '/etc/motd') =>
  bench.engine.modules.upload({ name: 'site', content: moduleOf(verify, file) }, ALICE);

/** A bench with an agent and a module with two checks. */
async function open(options: Parameters<typeof openBench>[0] = {}) {
  const bench = await openBench(options);
  const agent = await bench.agent('1');
  await upload(bench);
  return { bench, agent };
}

const signal = new AbortController().signal;
const runsOf = (agent: ScriptedAgent) =>
  agent.received.flatMap((message) => (message.type === 'run' ? [[message.mode, message.verify?.length ?? 0]] : []));

/** An agent that is replaced by one of an older release. */
async function downgrade(bench: Bench, agent: ScriptedAgent): Promise<void> {
  await bench.disconnect(agent);
  agent.features = null;
  agent.connect();
  await bench.settle();
}

describe('an apply with health checks', () => {
  it('sends them with the run, and keeps their results', async () => {
    const { bench, agent } = await open();
    const { operation_id, status, checks } = await bench.apply(agent, ['site']);
    expect(status).toBe('succeeded');
    expect(checks).toEqual([
      { module: 'site', name: 'page', kind: 'http', status: 'healthy', duration_ms: 5, reason: null },
      { module: 'site', name: 'daemon', kind: 'unit', status: 'healthy', duration_ms: 5, reason: null },
    ]);
    expect(runsOf(agent)).toEqual([['apply', 2]]);
    await bench.restart();
    expect((await bench.engine.operations.detail(operation_id)).checks).toEqual(checks);
  });

  it('fails with the first unhealthy one, and believes what was applied', async () => {
    const { bench, agent } = await open();
    agent.unhealthy.set('page', 'http://127.0.0.1/ answered 503, expected 2xx or 3xx, for 30 s');
    agent.unhealthy.set('daemon', 'nginx is failed');
    const operation = await bench.apply(agent, ['site']);
    expect(operation).toMatchObject({
      status: 'failed',
      error: {
        code: 'verify_failed',
        message:
          'check "page" of module site failed: http://127.0.0.1/ answered 503, expected 2xx or 3xx, for 30 s (and 1 more)',
      },
      summary: { changed: 1, failed: 0 },
    });
    expect(operation.checks?.map(({ status }) => status)).toEqual(['unhealthy', 'unhealthy']);
    const state = await bench.engine.state.get(agent.nodeId);
    expect(state).toMatchObject({ operation_id: operation.operation_id, applied: [{ identity: '/etc/motd' }] });
    expect(bench.eventTypes('state.')).toEqual(['state.apply_started', 'state.apply_failed']);
    // The applied state counts: the drift check compares with it.
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync', operation_id: operation.operation_id });
  });

  it('believes the newest checks also when no resource has changed', async () => {
    const { bench, agent } = await open();
    await bench.apply(agent, ['site']);
    await upload(bench, 'verify:\n- {name: new, unit: nginx}\n');
    agent.unhealthy.set('new', 'nginx is failed');
    const { operation_id } = await bench.apply(agent, ['site']);
    expect((await bench.engine.state.get(agent.nodeId)).operation_id).toBe(operation_id);
    expect(
      await bench.while(bench.engine.verifications.run({ nodeId: agent.nodeId, signal, context: ALICE })),
    ).toMatchObject({
      operation_id,
      ok: false,
      checks: [{ name: 'new', status: 'unhealthy' }],
    });
  });

  it('runs none after a failed or cancelled apply', async () => {
    const { bench, agent } = await open();
    agent.mishaps.set('/etc/motd', 'fail');
    const failed = await bench.apply(agent, ['site']);
    expect(failed).toMatchObject({ status: 'failed', error: null });
    expect(failed.checks?.map(({ status, reason }) => [status, reason])).toEqual([
      ['not_run', null],
      ['not_run', null],
    ]);
  });

  it('without checks sends and stores no trace of them', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await upload(bench, '');
    expect(await bench.apply(agent, ['site'])).not.toHaveProperty('checks');
    expect(agent.received.filter((message) => 'verify' in message)).toEqual([]);
    const rows = await bench.db.selectFrom('run_contents').select(['sha256', 'content_json']).execute();
    expect(rows.map(({ content_json }) => Object.keys(JSON.parse(content_json)))).toEqual([
      ['resources', 'removals', 'failures', 'ad_hoc', 'secrets'],
    ]);
    const empty = { resources: [], removals: [], failures: [], adHoc: new Set<string>(), secrets: {}, verify: [] };
    expect(finish(encodeContent(empty)).json).toBe(
      '{"resources":[],"removals":[],"failures":[],"ad_hoc":[],"secrets":{}}',
    );
  });

  it('is refused for an agent that would ignore them, before anything is stored', async () => {
    const { bench, agent } = await open();
    await downgrade(bench, agent);
    const events = bench.events.length;
    expect(await rejection(bench.start(agent, ['site']))).toMatchObject({
      code: 'agent_too_old',
      message: 'agent web-1 is too old to run the health checks of modules',
      hint: 'upgrade it first: orch agents upgrade web-1',
    });
    expect((await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 9, offset: 0, status: null })).total).toBe(
      0,
    );
    expect(bench.events.length).toBe(events);
    await upload(bench, '');
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });

  it('that waits is not sent to an agent that returns as an older one', async () => {
    const { bench, agent } = await open();
    await bench.disconnect(agent);
    agent.features = null;
    agent.connect();
    // The inventory is on its way, so the features are unknown.
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'failed',
      error: { code: 'not_delivered', message: expect.stringContaining('too old to run the health checks') },
    });
    expect(runsOf(agent)).toEqual([]);
  });

  it('keeps its checks over a restart of the orchestrator before it is sent', async () => {
    const { bench, agent } = await open();
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    await bench.restart();
    agent.connect();
    await bench.settle();
    expect(await bench.engine.operations.detail(id)).toMatchObject({ status: 'succeeded', checks: [{}, {}] });
    expect(runsOf(agent)).toEqual([['apply', 2]]);
  });

  it('gets the results that arrive after a lost connection', async () => {
    const { bench, agent } = await open();
    agent.unhealthy.set('page', 'it answered 503');
    agent.diligent = false;
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    while (agent.work());
    await bench.disconnect(agent);
    agent.outbox = [];
    agent.connect();
    await bench.settle();
    expect(await bench.engine.operations.detail(id)).toMatchObject({
      status: 'failed',
      error: { code: 'verify_failed' },
      checks: [{ status: 'unhealthy', reason: 'it answered 503' }, { status: 'healthy' }],
    });
  });

  it('is planned with the names of its checks, and with a stale plan when they change', async () => {
    const { bench, agent } = await open();
    const plan = await bench.plan(agent, ['site']);
    expect(plan.checks).toEqual([
      { module: 'site', name: 'page', kind: 'http', status: 'pending', duration_ms: 0, reason: null },
      { module: 'site', name: 'daemon', kind: 'unit', status: 'pending', duration_ms: 0, reason: null },
    ]);
    expect(runsOf(agent)).toEqual([['plan', 0]]);
    await upload(bench, '');
    const expect_ = plan.plan_hash ?? '';
    expect((await rejection(bench.start(agent, ['site'], { expect: expect_ }))).code).toBe('plan_stale');
  });
});

describe('an agent that lies about health checks', () => {
  const report = (index: number, more: Partial<CheckReport> = {}): CheckReport => ({
    index,
    status: 'healthy',
    duration_ms: 1,
    reason: null,
    ...more,
  });
  const claims: readonly (readonly [string, readonly CheckReport[], object])[] = [
    ['success without results', [], { code: 'protocol_violation', message: expect.stringContaining('2 of 2') }],
    ['success without one', [report(1)], { code: 'protocol_violation', message: expect.stringContaining('1 of 2') }],
    ['success with a failed one', [report(0), report(1, { status: 'unhealthy' })], { code: 'verify_failed' }],
    [
      'success with one that did not run',
      [report(0), report(1, { status: 'not_run' })],
      { code: 'protocol_violation' },
    ],
  ];
  it.each(claims)('and reports %s has failed', async (_what, reports, error) => {
    const { bench, agent } = await open();
    agent.claims = reports;
    expect(await bench.apply(agent, ['site'])).toMatchObject({ status: 'failed', error });
  });

  it.each([
    ['a check that it was not sent', [report(0), report(1), report(2)]],
    ['a check twice', [report(0), report(0)]],
  ])('cannot report %s', async (_what, reports) => {
    const { bench, agent } = await open();
    agent.claims = reports;
    await bench.start(agent, ['site']);
    await bench.settle();
    expect(bench.violations.map(({ code }) => code)).toContain('protocol_violation');
  });
});

describe('health checks on request', () => {
  const verdict = (bench: Bench, agent: ScriptedAgent, own = signal) =>
    bench.while(bench.engine.verifications.verify(agent.nodeId, own));

  it('run those of the newest apply again, without changing anything', async () => {
    const { bench, agent } = await open();
    await bench.apply(agent, ['site']);
    const before = await bench.engine.state.get(agent.nodeId);
    expect(await verdict(bench, agent)).toEqual({ ok: true, error: null });
    agent.unhealthy.set('daemon', 'nginx is failed');
    expect(await verdict(bench, agent)).toEqual({
      ok: false,
      error: { code: 'verify_failed', message: 'check "daemon" of module site failed: nginx is failed' },
    });
    expect(runsOf(agent)).toEqual([
      ['apply', 2],
      ['verify', 2],
      ['verify', 2],
    ]);
    expect(await bench.engine.state.get(agent.nodeId)).toEqual(before);
    expect(bench.eventTypes('state.verified')).toEqual([]);
    const run = bench.engine.verifications.run({ nodeId: agent.nodeId, signal, context: ALICE });
    expect(await bench.while(run)).toMatchObject({
      ok: false,
      checks: [{ status: 'healthy' }, { status: 'unhealthy' }],
    });
    expect(bench.events.at(-1)).toMatchObject({
      type: 'state.verified',
      summary: 'alice ran the health checks of web-1',
    });
  });

  it('are in order at once where there are none, also on an agent that is away', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    expect(await verdict(bench, agent)).toEqual({ ok: true, error: null });
    expect(
      await rejection(bench.engine.verifications.run({ nodeId: agent.nodeId, signal, context: ALICE })),
    ).toMatchObject({
      code: 'no_snapshot',
    });
    await upload(bench, '');
    await bench.apply(agent, ['site']);
    await bench.disconnect(agent);
    expect(await verdict(bench, agent)).toEqual({ ok: true, error: null });
    expect(runsOf(agent)).toEqual([['apply', 0]]);
  });

  it('are not ok on an agent that is gone, silent, too old or busy, and say why', async () => {
    const { bench, agent } = await open();
    await bench.apply(agent, ['site']);
    const code = async (own = signal) => (await verdict(bench, agent, own)).error?.code;

    agent.mute = true;
    const silent = bench.engine.verifications.verify(agent.nodeId, signal);
    await bench.settle();
    bench.clock.advance(60_000);
    await bench.engine.tick();
    expect(await silent).toMatchObject({ ok: false, error: { code: 'agent_timeout' } });

    const lost = bench.engine.verifications.verify(agent.nodeId, signal);
    await bench.settle();
    await bench.disconnect(agent);
    expect(await lost).toMatchObject({ ok: false, error: { code: 'agent_not_connected' } });
    expect(await code()).toBe('agent_not_connected');
    agent.mute = false;

    await downgrade(bench, agent);
    expect(await code()).toBe('agent_too_old');
    await bench.disconnect(agent);
    agent.features = ['verify'];
    agent.connect();
    const early = bench.engine.verifications.verify(agent.nodeId, signal);
    expect(await early).toMatchObject({ ok: false, error: { code: 'agent_not_connected' } });
    await bench.settle();

    agent.diligent = false;
    const operation = await bench.start(agent, ['site']);
    await bench.settle();
    expect(await code()).toBe('operation_in_progress');
    agent.diligent = true;
    await bench.settle();
    expect((await bench.engine.operations.get(operation)).status).toBe('succeeded');

    expect(await code(AbortSignal.abort())).toBe('cancelled');
    await bench.reject(agent);
    expect(await code()).toBe('agent_not_approved');
  });

  it('end when an apply begins, which they do not disturb', async () => {
    const { bench, agent } = await open();
    await bench.apply(agent, ['site']);
    agent.diligent = false;
    const running = bench.engine.verifications.verify(agent.nodeId, signal);
    await bench.settle();
    agent.diligent = true;
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
    expect(await running).toMatchObject({ ok: false, error: { code: 'cancelled' } });
  });

  it('end although the agent reports for ever that it is at work', async () => {
    const { bench, agent } = await open();
    await bench.apply(agent, ['site']);
    agent.diligent = false;
    const endless = bench.engine.verifications.verify(agent.nodeId, signal);
    await bench.settle();
    const run = agent.received.filter((message) => message.type === 'run').at(-1);
    for (let minute = 0; minute < 3; minute += 0.5) {
      bench.clock.advance(30_000);
      agent.outbox.push({ type: 'run_accepted', run_id: run?.run_id ?? '' });
      await bench.settle();
      await bench.engine.tick();
    }
    expect(await endless).toMatchObject({
      ok: false,
      error: { code: 'agent_timeout', message: expect.stringContaining('did not end') },
    });
  });

  it('send the secrets as they are now, and mask them in what a careless agent reports', async () => {
    let value: string | null = 'hunter2hunter2';
    const secrets: AgentSecrets = {
      resolve: async () => ({
        source: () => (value === null ? null : { value, tag: 'ab12' }),
        hashes: new Map(value === null ? [] : [['TOKEN', 'ab12'.repeat(8)]]),
      }),
    };
    const { bench, agent } = await open({ secrets });
    await upload(bench, `verify:\n- {name: page, http: {url: "http://h/?key=\${{ secrets.TOKEN }}"}}\n`);
    agent.unhealthy.set('page', 'http://h/?key=hunter2hunter2 answered 503');
    const { checks, error } = await bench.apply(agent, ['site']);
    expect(checks?.[0]?.reason).toBe('http://h/?key=‹secret TOKEN #ab12› answered 503');
    expect(error?.message).not.toContain('hunter2');
    const rows = await bench.db.selectFrom('run_contents').select('content_json').execute();
    expect(JSON.stringify(rows)).not.toContain('hunter2');
    agent.unhealthy.clear();
    value = 'another';
    expect(await verdict(bench, agent)).toEqual({ ok: true, error: null });
    const sent = agent.received.flatMap((message) =>
      message.type === 'run' && message.mode === 'verify' ? [message] : [],
    );
    expect(sent[0]?.verify?.[0]?.body).toEqual({ url: 'http://h/?key=another' });
    expect(bench.events.filter(({ type }) => type === 'secret.used').at(-1)?.summary).toContain('for a health check');
    value = null;
    expect(await verdict(bench, agent)).toMatchObject({ ok: false, error: { code: 'secret_unavailable' } });
  });
});
