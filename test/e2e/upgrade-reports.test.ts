/** An agent's reports of its upgrade, and the orchestrator's reaction, also after a restart and a restored store. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ulid } from 'ulid';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { Upgrade } from '../../src/contract/upgrades.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import type { OrchestratorMessageOf } from '../../src/wire/messages.js';
import { TestAgent } from '../support/fleet.js';
import { newIdentity } from '../support/identity.js';
import { type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
let server: Running;
let port: number;

async function serve(): Promise<void> {
  const started = await sandbox.serve(['--api-port', '0']);
  const { api_url: url, tls_fingerprint: fingerprint, agent_address } = started.ready;
  server = started.server;
  port = Number(agent_address.split(':').at(-1));
  const profile = `at-${port}`;
  await sandbox.orch(['profile', 'create', profile, '--url', url, '--tls-fingerprint', fingerprint]);
  await sandbox.orch(['profile', 'use', profile]);
}

/** Connects an approved agent of that name. */
async function connect(name: string, identity = newIdentity(), version = PROTOCOL_VERSION): Promise<TestAgent> {
  const agent = await TestAgent.dial(port, identity);
  agent.hello({ protocol_version: version, agent_version: '0.0.9', attributes: { platform: 'linux', arch: ARCH } });
  await agent.message(0);
  const known = (await sandbox.json<Agent[]>(['agents', 'list'])).find(({ node_id }) => node_id === agent.nodeId);
  if (known?.status !== 'approved') await sandbox.orch(['agents', 'approve', agent.nodeId, '--name', name, '--yes']);
  await until(() => agent.received.some((one) => one.type === 'status' && one.status === 'approved'), 'it is approved');
  return agent;
}

const ARCH = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
const request = (agent: TestAgent) =>
  sandbox.json<Upgrade>(['api', 'POST', `/agents/${agent.nodeId}/upgrade`, '--data', '{"version": "1.2.3"}']);
const upgradeOf = (agent: TestAgent) => sandbox.json<Upgrade>(['api', 'GET', `/agents/${agent.nodeId}/upgrade`]);
const isIn = (agent: TestAgent, state: Upgrade['state']) =>
  until(async () => (await upgradeOf(agent)).state === state, `the upgrade is ${state}`);
const ackOf = (agent: TestAgent) => agent.received.find((one) => one.type === 'upgrade_ack');

async function received(agent: TestAgent): Promise<OrchestratorMessageOf<'upgrade'>> {
  const find = () => agent.received.find((one) => one.type === 'upgrade');
  await until(() => find() !== undefined, 'the request has come');
  return find() as OrchestratorMessageOf<'upgrade'>;
}

const report = (upgrade_id: string, state: string, more: object = {}) => ({
  type: 'upgrade_report',
  upgrade_id,
  version: '1.2.3',
  state,
  waits_for: null,
  error: null,
  ...more,
});

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  await serve();
  const packages = sandbox.path('serve', 'packages');
  mkdirSync(packages, { recursive: true });
  writeFileSync(join(packages, `orch-1.2.3-linux-${process.arch}.tar.gz`), gzipSync('a release'));
});

afterAll(() => sandbox.dispose());

it('keeps each state, and the end although it was restarted meanwhile', async () => {
  const identity = newIdentity();
  const agent = await connect('web-01', identity);
  expect(await request(agent)).toMatchObject({ state: 'requested', from_version: '0.0.9', version: '1.2.3' });
  const { upgrade_id, sha256, size } = await received(agent);
  expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(size).toBe(gzipSync('a release').length);
  agent.send(report(upgrade_id, 'waiting', { waits_for: 'an apply' }));
  await isIn(agent, 'waiting');
  expect(await upgradeOf(agent)).toMatchObject({ waits_for: 'an apply' });
  await server.stop();
  await serve();
  const again = await connect('web-01', identity);
  again.send(report(upgrade_id, 'succeeded'));
  await isIn(again, 'succeeded');
  await until(() => ackOf(again) !== undefined, 'the end is acknowledged');
  const { stdout } = await sandbox.orch(['audit', 'list', '--limit', '20']);
  expect(stdout).toContain('was upgraded from 0.0.9 to 1.2.3');
  expect((await sandbox.orch(['audit', 'list', '-o', 'json'])).stdout).toContain('agent.upgraded');
});

it('fails what the agent had not answered before a restart', async () => {
  const agent = await connect('web-02');
  await request(agent);
  await received(agent);
  await server.stop();
  await serve();
  expect(await upgradeOf(agent)).toMatchObject({
    state: 'failed',
    error: { message: 'the orchestrator was restarted before the agent had answered' },
  });
});

it('lets an agent forget an upgrade that the store does not know', async () => {
  const agent = await connect('web-03');
  agent.send(report(ulid(), 'rolled_back', { error: { code: 'upgrade_failed', message: 'it ended' } }));
  await until(() => ackOf(agent) !== undefined, 'the end is acknowledged');
  expect((await sandbox.orch(['api', 'GET', `/agents/${agent.nodeId}/upgrade`])).status).not.toBe(0);
});

it('says at once that an agent of an older protocol version cannot upgrade itself', async () => {
  const agent = await connect('web-04', newIdentity(), PROTOCOL_VERSION - 1);
  expect(await request(agent)).toMatchObject({
    state: 'failed',
    error: { message: 'its release cannot upgrade itself, so install the new one on its machine' },
  });
});
