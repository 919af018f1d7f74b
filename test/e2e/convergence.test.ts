/** Modes of assignments, standings and permits with real processes. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { Assignment } from '../../src/contract/assignments.js';
import type { MaintenanceWindow } from '../../src/contract/maintenance-windows.js';
import type { Operation } from '../../src/contract/operations.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
let server: Running;
let agent: Running;
let ready: Ready;

const SETTINGS = ['--drift-interval', '1', '--drift-skip-recently-applied', '0', '--enforce-max-repairs', '1'];
const portOf = (address: string) => address.slice(address.lastIndexOf(':') + 1);
const place = () => sandbox.path('machine', 'site');
const content = () => (existsSync(place()) ? readFileSync(place(), 'utf8').trim() : null);

const push = async (text: string) => {
  const file = sandbox.path('site.orch.yaml');
  const resource = `file-unix: {path: "${place()}", content: "${text}\\n"}`;
  writeFileSync(file, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: {${resource}}\n`);
  await sandbox.json(['module', 'publish', file, '--allow-automatic-applies']);
};

const startAgent = () => {
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  agent = sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
};

const shown = () => sandbox.json<Agent>(['agents', 'show', 'web-01']);
const edit = (...args: readonly string[]) => sandbox.json<Assignment>(['assignments', 'edit', 'all', ...args]);
const requested = async () => {
  const { operations } = await sandbox.json<{ operations: Operation[] }>(['ops', 'list']);
  return operations.map(({ requested_by }) => requested_by);
};
const standsAs = (standing: string) => until(async () => (await shown()).standing === standing, `it is ${standing}`);

beforeAll(async () => {
  mkdirSync(sandbox.path('machine'), { recursive: true });
  expect(await sandbox.orch(['operator', 'init'])).toMatchObject({ status: 0 });
  ({ server, ready } = await sandbox.serve(SETTINGS));
  const url = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(['profile', 'create', 'test', ...url])).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  await push('one');
  await sandbox.json(['assignments', 'create', 'all', '-m', 'site', '-l', 'platform=linux', '--mode', 'on-connect']);
  startAgent();
  const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await sandbox.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
});

afterAll(() => sandbox.dispose());

describe('an assignment in mode on-connect', () => {
  it('gives a newly approved machine its modules', async () => {
    await standsAs('in_sync');
    expect(content()).toBe('one');
    expect(await requested()).toEqual(['on-connect:all']);
  });

  it('lets a machine catch up that was away when a module changed, and none that is there', async () => {
    await push('two');
    await standsAs('behind');
    expect(await sandbox.json<Agent[]>(['agents', 'list', '--status', 'behind'])).toHaveLength(1);
    // Three times the interval at which automatic applies begin.
    await sleep(3000);
    expect(content()).toBe('one');
    await agent.stop();
    startAgent();
    await standsAs('in_sync');
    expect(content()).toBe('two');
  });
});

describe('an assignment in mode enforce', () => {
  it('applies a changed module, repairs drift, and gives up when something else changes it again', async () => {
    await edit('--mode', 'enforce');
    await push('three');
    await until(() => content() === 'three', 'the change was applied');
    await standsAs('in_sync');
    writeFileSync(place(), 'by hand\n');
    await until(() => content() === 'three', 'the drift was repaired');
    await standsAs('in_sync');
    writeFileSync(place(), 'by hand again\n');
    await until(async () => (await shown()).automation_stopped !== null, 'it has stopped');
    expect((await shown()).automation_stopped?.message).toContain('was repaired 1 times within a day');
    expect(content()).toBe('by hand again');
    expect(await requested()).toContain('repair:all');
    const { stdout } = await sandbox.orch(['notifications']);
    expect(stdout).toContain('the automatic applies of web-01 have stopped');
  });

  it('stays stopped over a restart, until an operator applies', async () => {
    expect(await server.stop()).toBe(0);
    const ports = ['--api-port', portOf(ready.api_url), '--agent-port', portOf(ready.agent_address)];
    ({ server, ready } = await sandbox.serve([...SETTINGS, ...ports]));
    await until(async () => (await shown()).connected, 'the agent is back');
    expect((await shown()).automation_stopped).toMatchObject({ code: 'repaired_again' });
    await sandbox.json(['apply', 'web-01', '--yes']);
    await until(async () => (await shown()).automation_stopped === null, 'it goes on');
    expect(content()).toBe('three');
  });
});

describe('an assignment with a permit', () => {
  it('is applied in its window alone, and an operator may override it', async () => {
    await edit('--mode', 'on-connect');
    const permit = ['--permit', '--assignment', 'all', '--reason', 'nights'];
    const schedule = ['maintenance', 'schedule', '--from', '12h', '--for', '1h', ...permit];
    const { id } = await sandbox.json<MaintenanceWindow>(schedule);
    await push('four');
    const refused = await sandbox.orch(['apply', 'web-01', '--yes']);
    expect(refused.status).toBe(6);
    expect(refused.stderr).toContain('assignment all is applied only within its maintenance windows');
    expect(refused.stderr).toContain('--outside-window');
    await agent.stop();
    startAgent();
    await until(async () => (await shown()).connected, 'the agent is back');
    await sleep(3000);
    expect(content()).toBe('three');
    expect(await sandbox.orch(['apply', 'web-01', '--yes', '--outside-window'])).toMatchObject({ status: 0 });
    expect(content()).toBe('four');
    await sandbox.orch(['maintenance', 'remove', id, '--yes']);
  });
});
