/** `orch serve` in a data directory that is not the one it was: lost stores, lost and foreign keys, and what agents do meanwhile. */
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import { type Finished, type Ready, type Running, Sandbox, until } from '../support/orch.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const sandbox = new Sandbox();
const data = sandbox.path('serve');
const store = join(data, 'orch.db');
const identity = join(data, 'identity.key');
const site = sandbox.path('site.conf');
let server: Running;
let agent: Running | undefined;
let ready: Ready;

const orch = (...args: readonly string[]) => sandbox.orch(args);
const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
const isConnected = async () => (await agents()).some(({ connected, name }) => connected && name === 'web-01');
const status = () =>
  sandbox.json<Record<string, string | null>>(['agent', 'status', '--data-dir', sandbox.path('agent')]);
const events = async (type: string) =>
  (await sandbox.json<{ events: readonly AuditEvent[] }>(['audit', '--type', type])).events;
/** The whole message of `orch serve`, on the line of a wide terminal. */
const said = ({ stderr }: Finished) => stderr.replace(/\s+/g, ' ');

const ports = () =>
  ready
    ? ['--api-port', new URL(ready.api_url).port, '--agent-port', ready.agent_address.split(':').at(-1) as string]
    : [];

/** On the ports of the first start, so that the agent and the profile find it again. */
async function serve(...args: readonly string[]): Promise<void> {
  const started = await sandbox.serve([...ports(), ...args]);
  server = started.server;
  ready = { ...started.ready, agent_address: ready?.agent_address ?? started.ready.agent_address };
}

/** A new process does not wait as long as one that was refused before. */
async function startAgent(): Promise<void> {
  await agent?.stop();
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  agent = sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
}

async function agentBack(): Promise<void> {
  await startAgent();
  await until(isConnected, 'the agent is connected');
}

/** A start that has to be refused. */
const refused = async (...args: readonly string[]): Promise<Finished> => {
  const finished = await orch('serve', '--agent-host', '127.0.0.1', '--data-dir', data, ...ports(), ...args);
  expect(finished.status).not.toBe(0);
  return finished;
};

const profile = () =>
  orch('profile', 'update', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint);

async function apply(content: string): Promise<Finished> {
  const module = sandbox.path('site.orch.yaml');
  writeFileSync(
    module,
    `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource:\n      file-unix: {path: ${site}, content: "${content}"}\n`,
  );
  expect(await orch('module', 'publish', module)).toMatchObject({ status: 0 });
  return orch('apply', 'web-01', '-m', 'site', '--yes');
}

beforeAll(async () => {
  await orch('operator', 'init');
  await serve();
  await orch('profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint);
  await orch('profile', 'use', 'test');
  await startAgent();
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await orch('agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes');
  await until(isConnected, 'the agent is connected');
  expect(await apply('one')).toMatchObject({ status: 0 });
});

afterAll(() => sandbox.dispose());

describe('a first start', () => {
  const other = new Sandbox();
  afterEach(() => other.dispose());

  it('says loudly what it has made, and makes nothing without an operator', async () => {
    const directory = other.path('serve');
    const none = await other.orch(['serve', '--api-port', '0', '--agent-port', '0', '--data-dir', directory]);
    expect([none.status, none.stderr]).toEqual([1, expect.stringContaining('there is no operator yet')]);
    expect(readdirSync(directory)).toEqual([]);
    await other.orch(['operator', 'init']);
    const first = await other.serve();
    const lines = first.server.output().trim().split('\n');
    const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(told[1]).toMatchObject({
      msg: 'this was a first start: a new orchestrator was made, which no agent knows yet',
      data_dir: directory,
      public_key: first.ready.public_key,
      hint: expect.stringContaining('if an orchestrator ran here before'),
    });
    await first.server.stop();
    const second = await other.serve();
    expect(second.ready.public_key).toBe(first.ready.public_key);
    expect(second.server.output()).not.toContain('first start');
  });
});

describe('keys beside a store that is lost', () => {
  const kept = sandbox.path('kept.db');
  const head = join(data, 'audit.head');

  beforeAll(async () => {
    expect(await server.stop()).toBe(0);
    copyFileSync(store, kept);
    copyFileSync(head, `${kept}.head`);
  });

  it.each([
    ['missing', () => rmSync(store)],
    ['of 0 bytes', () => writeFileSync(store, '')],
    ['without the log that held everything', () => writeFileSync(store, emptyStore())],
    ['missing beside its log', () => [rmSync(store, { force: true }), writeFileSync(`${store}-wal`, 'the log')]],
  ])('are not enough for a start: one that is %s', async (_, lose) => {
    lose();
    const before = readdirSync(data).sort();
    const answer = await refused();
    expect(said(answer)).toContain(`${data} holds identity.key, audit.key, secrets.key, api.key of an orchestrator`);
    expect(said(answer)).toContain('its store orch.db is missing or empty');
    expect(said(answer)).toContain('orch serve restore FILE');
    expect(said(answer)).toContain('orch serve --new-store');
    expect(readdirSync(data).sort()).toEqual(before);
    if (existsSync(`${store}-wal`)) expect(readFileSync(`${store}-wal`, 'utf8')).toBe('the log');
    rmSync(`${store}-wal`, { force: true });
  });

  it('get a new one when asked to, which the agents obey once they are approved again', async () => {
    rmSync(store, { force: true });
    await serve('--new-store');
    expect(server.output()).toContain('a new epoch was begun');
    await profile();
    await startAgent();
    await until(async () => (await agents()).some((one) => one.status === 'pending'), 'the agent waits again');
    await orch('agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes');
    await until(isConnected, 'the agent is connected');
    expect(await apply('two')).toMatchObject({ status: 0 });
    expect(readFileSync(site, 'utf8')).toBe('two');
    expect(await events('orchestrator.restored')).toMatchObject([{ metadata: { by: 'new_store' } }]);
    expect(await server.stop()).toBe(0);
    const again = await refused('--new-store');
    expect(said(again)).toContain(`--new-store: there is a store in ${data}`);
  });

  it('tell an agent that has seen more how that is mended', async () => {
    copyFileSync(kept, store);
    expect(said(await refused())).toMatch(/is not the one that was used last|ends too early/);
    copyFileSync(`${kept}.head`, head);
    await serve();
    await agentBack();
    const stale = await apply('three');
    expect(stale.status).not.toBe(0);
    expect((stale.stderr + stale.stdout).replace(/\s+/g, ' ')).toMatch(
      /"orch serve restore".*"orch serve --new-epoch"/,
    );
    expect(await server.stop()).toBe(0);
    await serve('--new-epoch');
    await agentBack();
    expect(await apply('three')).toMatchObject({ status: 0 });
    expect(await server.stop()).toBe(0);
  });
});

describe('a store whose identity key', () => {
  const away = `${identity}.away`;
  let key: string;

  beforeAll(() => {
    key = ready.public_key;
    renameSync(identity, away);
  });

  it('is missing stops the start, and names the key', async () => {
    const answer = await refused();
    expect(said(answer)).toContain(`${identity} is missing, the key (${key}) that the agents trust`);
    expect(said(answer)).toContain('put identity.key back');
    expect(said(answer)).toContain('orch serve --new-identity');
    expect(existsSync(identity)).toBe(false);
  });

  it('is another one stops the start, and names both', async () => {
    copyFileSync(sandbox.path('config', 'orch', 'operator.key'), identity);
    const answer = await refused();
    expect(said(answer)).toContain(`the store is of the orchestrator ${key}, and ${identity} is the key of `);
    rmSync(identity);
  });

  it('is given up gets another one, which the agent outlives, and the right one brings it back', async () => {
    await startAgent();
    await serve('--new-identity');
    expect(ready.public_key).not.toBe(key);
    expect(server.output()).toContain('the orchestrator has another identity key');
    expect(await events('orchestrator.identity_changed')).toMatchObject([
      { severity: 'critical', metadata: { before: key, after: ready.public_key } },
    ]);
    await until(async () => (await status()).link === 'untrusted', 'the agent has met the other key');
    expect(await status()).toMatchObject({ orchestrator_key: key, hint: expect.stringContaining('orch agent repin') });
    expect((await orch('agent', 'status', '--data-dir', sandbox.path('agent'))).stdout).toMatch(/Link +untrusted/);
    expect(agent?.output()).toContain('nothing is done for it');
    expect(await isConnected()).toBe(false);
    expect(await server.stop()).toBe(0);

    renameSync(away, identity);
    await serve('--new-identity');
    expect(ready.public_key).toBe(key);
    await until(isConnected, 'the agent has come back by itself');
    expect(agent?.process.exitCode).toBe(null);
    expect(await apply('four')).toMatchObject({ status: 0 });
    expect(await server.stop()).toBe(0);
    expect(said(await refused('--new-identity'))).toContain('is the key that the store and the agents know');
  });
});

/** The first page of a store whose tables were in its log alone. */
function emptyStore(): Buffer {
  const page = readFileSync(sandbox.path('kept.db')).subarray(0, 4096);
  // Of the header in front: user version 0, one page, no tables.
  page.writeUInt32BE(0, 60);
  page.writeUInt32BE(1, 28);
  page.fill(0, 100);
  page.writeUInt8(13, 100);
  page.writeUInt16BE(4096, 105);
  return page;
}
