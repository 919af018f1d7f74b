/** The whole program on a disk that is full when it starts. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { Status } from '../../src/contract/status.js';
import { Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const disk = sandbox.path('disk');
const ballast = sandbox.path('disk', 'ballast');

/** Why there can be no disk of a few MiB, or null; it is mounted then. */
function mountTinyDisk(): string | null {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'only root on Linux can mount a tmpfs';
  mkdirSync(disk);
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk], { encoding: 'utf8' });
  return status === 0 ? null : `mount says: ${stderr.trim()}`;
}

const reason = mountTinyDisk();
afterAll(async () => {
  await sandbox.dispose().catch(() => undefined);
  if (reason === null) spawnSync('umount', ['-l', disk]);
  rmSync(sandbox.root, { recursive: true, force: true });
});

/** Takes all the room that is left. */
function fill(): void {
  const descriptor = openSync(ballast, 'w');
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4096));
  } catch {
    // Full.
  } finally {
    closeSync(descriptor);
  }
}

const agents = () => sandbox.json<Agent[]>(['agents', 'list']);

describe.skipIf(reason !== null)(`a disk that is full${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  it('keeps neither orch serve nor orch agent from starting, and writes go on once there is room', {
    timeout: 120_000,
  }, async () => {
    await sandbox.orch(['operator', 'init']);
    const data = ['--data-dir', sandbox.path('disk', 'serve')];
    const first = await sandbox.serve(data);
    const { api_url, agent_address, tls_fingerprint, public_key } = first.ready;
    await sandbox.orch(['profile', 'create', 'test', '--url', api_url, '--tls-fingerprint', tls_fingerprint]);
    await sandbox.orch(['profile', 'use', 'test']);
    const connect = [
      ...['agent', 'connect', agent_address, '--orchestrator-key', public_key],
      ...['--data-dir', sandbox.path('disk', 'agent')],
    ];
    const former = sandbox.start(connect);
    await until(async () => (await agents()).length === 1, 'the agent waits');
    await sandbox.orch(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
    await former.stop();
    const before = await agents();
    await first.server.stop();
    fill();

    const ports = ['--api-port', new URL(api_url).port, '--agent-port', agent_address.split(':').at(-1) ?? ''];
    const { server } = await sandbox.serve([...data, ...ports]);
    expect(server.output()).toContain('the store cannot be written, it can only be read');
    const status: Status = JSON.parse((await sandbox.orch(['status', '-o', 'json'])).stdout);
    expect(status).toMatchObject({ status: 'degraded', reasons: [{ code: 'disk_low' }] });
    // The login of before is still good, so that the store can be read.
    expect((await agents()).map(({ name }) => name)).toEqual(before.map(({ name }) => name));
    // So is a new one, which the store cannot take yet.
    const logins = () => sandbox.json<{ events: readonly unknown[] }>(['audit', 'list', '--type', 'operator.login']);
    const { events: earlier } = await logins();
    rmSync(sandbox.path('state'), { recursive: true });
    expect((await agents()).map(({ name }) => name)).toEqual(before.map(({ name }) => name));
    const write = await sandbox.orch(['agents', 'tag', 'web-01', 'role=web']);
    expect(write.status).not.toBe(0);
    expect(write.stderr).toContain('the disk of the data directory is full, nothing was written');
    const second = await sandbox.orch(['serve', ...data]);
    expect(second.stderr).toContain(`is in use by process ${server.process.pid} (orch serve)`);

    const agent = sandbox.start(connect);
    await until(() => agent.output().includes('the connection to the orchestrator ended'), 'the agent dials');
    expect(agent.process.exitCode).toBeNull();
    expect(statSync(sandbox.path('disk', 'agent', 'lock')).size).toBe(0);

    rmSync(ballast);
    await until(async () => (await agents()).some(({ connected }) => connected), 'the agent is back');
    expect(await sandbox.orch(['agents', 'tag', 'web-01', 'role=web'])).toMatchObject({ status: 0 });
    await until(async () => (await logins()).events.length > earlier.length, 'the login is recorded');
    expect((await logins()).events).toHaveLength(earlier.length + 1);
    expect(await agent.stop()).toBe(0);
    expect(await server.stop()).toBe(0);
    // A full disk that is behind leaves nothing.
    const names = spawnSync('ls', [sandbox.path('disk', 'serve'), sandbox.path('disk', 'agent')], { encoding: 'utf8' });
    expect(names.stdout).not.toContain('lock');
  });
});
