/** The first loop with real processes: serve, agent, login, approve, push, plan, apply, drift, repair. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail, State } from '../../src/contract/operations.js';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const site = sandbox.path('site');
let server: Running;
let agent: Running;
let ready: Ready;
let node: string;

const moduleText = (colour: string) => `name: site
supports:
  - platform: linux
resources:
  - id: dir
    resource:
      directory-unix: {path: ${site}, mode: "0750"}
  - depends_on: [dir]
    resource:
      file-unix:
        path: ${site}/greeting
        content: "\${{ agent.name }} is \${{ tags.role }}\\n"
  - depends_on: [dir]
    resource:
      file-unix: {path: ${site}/colour, content: "${colour}\\n", mode: "0600"}
`;

const start = async () => {
  ({ server, ready } = await sandbox.serve());
};

const connected = async () => {
  const agents = await sandbox.json<Agent[]>(['agents', 'list']);
  return agents.some((one) => one.node_id === node && one.connected);
};

beforeAll(async () => {
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  await start();
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  writeFileSync(sandbox.path('site.orch.yaml'), moduleText('green'));
});

afterAll(async () => {
  await sandbox.dispose();
});

describe('the first loop', () => {
  it('logs the first operator in with the own key', async () => {
    expect(await sandbox.json(['operator', 'whoami'])).toMatchObject({ operator: { role: 'admin', bootstrap: true } });
  });

  it('lets an agent wait until it is approved', async () => {
    agent = sandbox.start([
      'agent',
      'connect',
      ready.agent_address,
      '--orchestrator-key',
      ready.public_key,
      '--data-dir',
      sandbox.path('agent'),
    ]);
    let agents: Agent[] = [];
    await until(async () => {
      agents = await sandbox.json<Agent[]>(['agents', 'list']);
      return agents.length === 1;
    }, 'the agent waits');
    node = (agents[0] as Agent).node_id;
    expect(agents[0]).toMatchObject({ status: 'pending', name: null, attributes: { platform: 'linux' } });

    const refused = await sandbox.orch(['plan', node, '-f', sandbox.path('site.orch.yaml')]);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toMatch(/not approved|pending/);

    await sandbox.json(['agents', 'approve', node, '--name', 'web-01', '--yes']);
    await until(connected, 'the agent is connected');
    await sandbox.json(['agents', 'tag', 'web-01', 'role=web']);
  });

  it('plans without touching anything', async () => {
    const plan = await sandbox.orch(['plan', 'web-01', '-f', sandbox.path('site.orch.yaml')]);
    expect(plan).toMatchObject({ status: 0 });
    expect(plan.stdout).toContain('+web-01 is web');
    expect(existsSync(site)).toBe(false);
    const detailed = await sandbox.orch([
      'plan',
      'web-01',
      '-f',
      sandbox.path('site.orch.yaml'),
      '--detailed-exitcode',
    ]);
    expect(detailed.status).toBe(2);
  });

  it('applies, and then has nothing to do', async () => {
    const apply = await sandbox.orch(['apply', 'web-01', '-f', sandbox.path('site.orch.yaml'), '--yes']);
    expect(apply).toMatchObject({ status: 0 });
    expect(readFileSync(`${site}/greeting`, 'utf8')).toBe('web-01 is web\n');
    expect(statSync(`${site}/colour`).mode & 0o7777).toBe(0o600);
    expect(statSync(site).mode & 0o7777).toBe(0o750);
    const again = await sandbox.json<RunResult>(['plan', 'web-01', '-m', 'site']);
    expect(again.has_changes).toBe(false);
    expect(again.summary).toMatchObject({ total: 3, unchanged: 3 });
  });

  it('shows the drift of a change made by hand, and repairs it', async () => {
    expect((await sandbox.json<DriftDetail>(['drift', 'web-01'])).status).toBe('in_sync');
    appendFileSync(`${site}/colour`, 'by hand\n');
    const drift = await sandbox.orch(['drift', 'web-01', '--detailed-exitcode']);
    expect(drift.status).toBe(2);
    expect(drift.stdout).toContain('-by hand');
    expect(drift.stdout).not.toContain('/greeting');
    expect(await sandbox.orch(['apply', 'web-01', '-m', 'site', '--yes'])).toMatchObject({ status: 0 });
    expect(readFileSync(`${site}/colour`, 'utf8')).toBe('green\n');
    expect((await sandbox.json<DriftDetail>(['drift', 'web-01'])).status).toBe('in_sync');
    const events = await sandbox.json<{ events: { event_type: string }[] }>(['audit', 'list', '--category', 'drift']);
    expect(events.events.map((event) => event.event_type).filter((type) => type !== 'drift.checked')).toEqual([
      'drift.resolved',
      'drift.detected',
    ]);
  });

  it('removes what a new revision no longer wants', async () => {
    const without = moduleText('green').split('  - depends_on: [dir]').slice(0, 2).join('  - depends_on: [dir]');
    writeFileSync(sandbox.path('site.orch.yaml'), without);
    const plan = await sandbox.orch(['plan', 'web-01', '-f', sandbox.path('site.orch.yaml')]);
    expect(plan.stdout).toMatch(/- .*colour/);
    expect(await sandbox.orch(['apply', 'web-01', '-f', sandbox.path('site.orch.yaml'), '--yes'])).toMatchObject({
      status: 0,
    });
    expect(existsSync(`${site}/colour`)).toBe(false);
    expect(existsSync(`${site}/greeting`)).toBe(true);
    const state = await sandbox.json<State>(['state', 'web-01']);
    expect(state.applied.map((one) => one.identity)).toEqual([site, `${site}/greeting`]);
  });

  it('goes on after the orchestrator was killed', async () => {
    const before = ready;
    await server.stop('SIGKILL');
    const offline = await sandbox.orch(['agents', 'list']);
    expect(offline.status).toBe(69);
    const [, apiPort] = /:(\d+)$/.exec(before.api_url) ?? [];
    const [, agentPort] = /:(\d+)$/.exec(before.agent_address) ?? [];
    rmSync(sandbox.path('ready-0.json'));
    ({ server, ready } = await sandbox.serve(['--api-port', String(apiPort), '--agent-port', String(agentPort)]));
    expect(ready).toMatchObject({ public_key: before.public_key, tls_fingerprint: before.tls_fingerprint });
    await until(connected, 'the agent has come back');
    expect((await sandbox.json<DriftDetail>(['drift', 'web-01'])).status).toBe('in_sync');
  });

  it('keeps every operation with its resources', async () => {
    const list = await sandbox.json<{ operations: { operation_id: string; status: string }[] }>(['ops', 'list']);
    expect(list.operations.map((operation) => operation.status)).toEqual(['succeeded', 'succeeded', 'succeeded']);
    const newest = await sandbox.json<OperationDetail>([
      'ops',
      'show',
      (list.operations[0] as { operation_id: string }).operation_id,
    ]);
    expect(newest.resources.map((resource) => [resource.action, resource.status])).toContainEqual([
      'remove',
      'changed',
    ]);
  });

  it('cuts a rejected agent off at once', async () => {
    await sandbox.json(['agents', 'reject', 'web-01', '--yes']);
    await until(async () => !(await connected()), 'the agent is cut off');
    const plan = await sandbox.orch(['plan', node, '-m', 'site']);
    expect(plan.stderr).toMatch(/rejected|not approved/);
    await until(() => /reject/.test(agent.output()), 'the agent says why');
  });

  it('stops cleanly', async () => {
    expect(await agent.stop('SIGTERM')).toBe(0);
    expect(await server.stop('SIGTERM')).toBe(0);
  });
});

describe('bad input', () => {
  it('refuses a data directory that is in use', async () => {
    const first = new Sandbox();
    try {
      mkdirSync(first.path('x'));
      await first.orch(['operator', 'init']);
      await first.serve();
      const second = await first.orch([
        'serve',
        '--data-dir',
        first.path('serve'),
        '--api-port',
        '0',
        '--agent-port',
        '0',
      ]);
      expect(second.status).toBe(1);
      expect(second.stderr).toMatch(/in use by process \d+/);
    } finally {
      await first.dispose();
    }
  });

  it('refuses a port in use, and a configuration with an unknown key', async () => {
    const other = new Sandbox();
    try {
      await other.orch(['operator', 'init']);
      const { ready: taken } = await other.serve();
      const port = String(/:(\d+)$/.exec(taken.api_url)?.[1]);
      const clash = await other.orch([
        'serve',
        '--data-dir',
        other.path('two'),
        '--api-port',
        port,
        '--agent-port',
        '0',
      ]);
      expect(clash).toMatchObject({ status: 1 });
      expect(clash.stderr).toContain(port);
      writeFileSync(other.path('bad.yaml'), 'api_port: 0\nagent_prot: 1\nlog:\n  level: loud\n');
      const bad = await other.orch(['serve', '--data-dir', other.path('three'), '--config', other.path('bad.yaml')]);
      expect(bad.status).not.toBe(0);
      expect(bad.stderr).toContain('bad.yaml:2:1: unknown key "agent_prot"');
      expect(bad.stderr).toContain('bad.yaml:4:3');
    } finally {
      await other.dispose();
    }
  });

  it('does not start without an operator, and says what to run', async () => {
    const empty = new Sandbox();
    try {
      const serve = await empty.orch([
        'serve',
        '--data-dir',
        empty.path('serve'),
        '--api-port',
        '0',
        '--agent-port',
        '0',
      ]);
      expect(serve.status).toBe(1);
      expect(serve.stderr).toContain('orch operator init');
    } finally {
      await empty.dispose();
    }
  });
});
