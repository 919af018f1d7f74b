/** Maintenance windows with real processes: what they hold back, and what is reported of them across a restart. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { Channel, Delivery } from '../../src/contract/channels.js';
import type { MaintenanceWindow } from '../../src/contract/maintenance-windows.js';
import type { DriftRecord } from '../../src/contract/runs.js';
import { newIdentity } from '../support/identity.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
let server: Running;
let ready: Ready;

const SETTINGS = ['--drift-interval', '1', '--drift-skip-recently-applied', '0'];

const portOf = (address: string) => address.slice(address.lastIndexOf(':') + 1);
const checks = async (trigger: string) =>
  (await sandbox.json<{ records: DriftRecord[] }>(['drift', 'list'])).records.filter((one) => one.trigger === trigger)
    .length;
const told = async (id: string) =>
  (await sandbox.json<{ events: AuditEvent[] }>(['audit', '--limit', '500'])).events
    .filter(({ target }) => target.id === id)
    .reverse();

beforeAll(async () => {
  expect(await sandbox.orch(['operator', 'init'])).toMatchObject({ status: 0 });
  ({ server, ready } = await sandbox.serve(SETTINGS));
  const url = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(['profile', 'create', 'test', ...url])).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
  const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await sandbox.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await agents()).some(({ connected }) => connected), 'the agent is connected');
  const module = {
    name: 'site',
    content: `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource:\n      directory-unix: {path: ${sandbox.path('site')}}\n`,
  };
  await sandbox.json(['api', 'POST', '/modules', '--data', JSON.stringify(module)]);
  await sandbox.json(['apply', 'web-01', '-m', 'site', '--yes']);
});

afterAll(() => sandbox.dispose());

describe('a maintenance window', () => {
  let id: string;

  it('holds back scheduled drift checks, and none that is requested', async () => {
    await until(async () => (await checks('scheduled')) > 0, 'a check was made by itself');
    ({ id } = await sandbox.json<MaintenanceWindow>(['maintenance', 'start', '--for', '1h', '--reason', 'new disk']));
    // Work that had begun before may still end: a check by hand waits for the others of its agent.
    await sandbox.json(['drift', 'web-01']);
    const before = await checks('scheduled');
    // Three times the interval of the checks.
    await sleep(3000);
    expect(await checks('scheduled')).toBe(before);
    await sandbox.json(['drift', 'web-01']);
    expect(await checks('manual')).toBe(2);
  });

  it('keeps channels silent', async () => {
    const channel = { channel_type: 'webhook', name: 'ops', config: { url: 'https://hooks.example.org/x' } };
    const create = ['api', 'POST', '/channels', '--data', JSON.stringify(channel)];
    const { id: channelId } = await sandbox.json<Channel>(create);
    const deliveries = () => sandbox.json<Delivery[]>(['api', 'GET', `/channels/${channelId}/deliveries`]);
    await sandbox.json(['operator', 'add', newIdentity().publicKey, '--username', 'grace']);
    await until(async () => (await deliveries()).length > 0, 'the notification was raised');
    expect(await deliveries()).toMatchObject([{ event_type: 'operator.added', state: 'suppressed', attempts: 0 }]);
  });

  it('stays active across a restart, and one that comes and goes meanwhile is reported once', async () => {
    const short = ['maintenance', 'schedule', '--from', '2s', '--for', '1s', '--reason', 'short'];
    const missed = await sandbox.json<MaintenanceWindow>(short);
    expect(await server.stop()).toBe(0);
    await sleep(Math.max(0, missed.ends_at * 1000 - Date.now()));
    const ports = ['--api-port', portOf(ready.api_url), '--agent-port', portOf(ready.agent_address)];
    ({ server, ready } = await sandbox.serve([...SETTINGS, ...ports]));
    const events = await told(missed.id);
    expect(events.map(({ event_type, actor }) => [event_type, actor.type])).toEqual([
      ['maintenance.created', 'operator'],
      ['maintenance.started', 'system'],
      ['maintenance.ended', 'system'],
    ]);
    const times = [missed.starts_at, missed.ends_at].map((at) => new Date(at * 1000).toISOString());
    expect(events.slice(1).map(({ metadata }) => metadata.at)).toEqual(times);
    const windows = await sandbox.json<MaintenanceWindow[]>(['maintenance']);
    expect(windows.map((window) => [window.reason, window.status])).toEqual([
      ['short', 'ended'],
      ['new disk', 'active'],
    ]);
  });

  it('ends early, and the checks go on', async () => {
    const before = await checks('scheduled');
    expect((await sandbox.orch(['maintenance', 'end'])).stdout).toContain('has ended');
    expect((await told(id)).map(({ event_type }) => event_type)).toEqual([
      'maintenance.created',
      'maintenance.started',
      'maintenance.updated',
      'maintenance.ended',
    ]);
    await until(async () => (await checks('scheduled')) > before, 'a check was made by itself again');
  });
});
