/** The whole program on a machine whose clock jumps by more than a year, or goes back. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { Operation } from '../../src/contract/operations.js';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import type { Status } from '../../src/contract/status.js';
import { type Running, Sandbox, until } from '../support/orch.js';

const DAY = 86_400_000;
const sandbox = new Sandbox();
afterEach(() => sandbox.dispose());

/** Environment of a process whose wall clock is off by so much; the monotonic one is right. Null without libfaketime. */
function clockOff(offset: string): NodeJS.ProcessEnv | null {
  const ask = () => spawnSync('faketime', ['-f', '+0', 'sh', '-c', 'printf %s "$LD_PRELOAD"'], { encoding: 'utf8' });
  // It refuses to run when a killed one with its process ID has left shared memory.
  const found = [ask(), ask(), ask()].find(({ status }) => status === 0);
  if (found === undefined) return null;
  return {
    LD_PRELOAD: found.stdout.trim(),
    FAKETIME: offset,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_NO_CACHE: '1',
  };
}

const AHEAD = clockOff('+400d');
const PORTS = { agent: '0', api: '0' };

/** The same addresses each time, so that the profile and the agent find it again. */
async function serve(env: NodeJS.ProcessEnv = {}): Promise<Running> {
  const ports = ['--agent-port', PORTS.agent, '--api-port', PORTS.api, '--audit-retention-days', '30'];
  const { server, ready } = await sandbox.serve(ports, env);
  if (PORTS.api !== '0') return server;
  PORTS.api = new URL(ready.api_url).port;
  PORTS.agent = ready.agent_address.slice(ready.agent_address.lastIndexOf(':') + 1);
  const pin = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  await sandbox.orch(['profile', 'create', 'test', ...pin]);
  await sandbox.orch(['profile', 'use', 'test']);
  sandbox.start([
    ...['agent', 'connect', ready.agent_address, '--orchestrator-key', ready.public_key],
    ...['--data-dir', sandbox.path('agent')],
  ]);
  return server;
}

const status = async (): Promise<Status> => JSON.parse((await sandbox.orch(['status', '-o', 'json'])).stdout);
const codes = async () => (await status()).reasons.map(({ code }) => code).filter((code) => code !== 'disk_low');
const connected = () =>
  until(
    async () => (await sandbox.json<Agent[]>(['agents', 'list'])).some((one) => one.connected),
    'the agent is there',
  );
const apply = async (text: string) => {
  const file = sandbox.path('site.orch.yaml');
  const resource = `{file-unix: {path: ${sandbox.path('file')}, content: ${text}}}`;
  writeFileSync(file, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: ${resource}\n`);
  return sandbox.json<RunResult>(['apply', 'web-01', '-f', file, '--yes']);
};
const events = async () =>
  (await sandbox.json<{ events: { event_type: string; timestamp: string }[] }>(['audit', 'list', '--limit', '500']))
    .events;

describe.skipIf(AHEAD === null)(
  `a clock that jumps${AHEAD === null ? ' (skipped: faketime is not installed)' : ''}`,
  () => {
    it('ahead and back loses no history, apply or drift check, and is reported', {
      timeout: 120_000,
    }, async () => {
      await sandbox.orch(['operator', 'init']);
      let server = await serve();
      await until(async () => (await sandbox.json<Agent[]>(['agents', 'list'])).length === 1, 'the agent waits');
      const [agent] = await sandbox.json<Agent[]>(['agents', 'list']);
      await sandbox.json(['agents', 'approve', agent?.node_id ?? '', '--name', 'web-01', '--yes']);
      const first = await apply('first');
      const before = await events();
      await server.stop();

      server = await serve(AHEAD ?? {});
      await connected();
      expect(await codes()).toEqual(['clock_jumped']);
      const second = await apply('second');
      await server.stop();
      expect(server.output()).toMatch(/"level":"warn".*went ahead by 400 days/);

      server = await serve();
      await connected();
      const after = await events();
      const left = new Set(after.map(({ event_type, timestamp }) => `${event_type} ${timestamp}`));
      expect(before.filter(({ event_type, timestamp }) => !left.has(`${event_type} ${timestamp}`))).toEqual([]);
      expect(after.map(({ event_type }) => event_type)).not.toContain('audit.pruned');
      expect(Math.abs(Date.parse(after[0]?.timestamp ?? '') - Date.now())).toBeLessThan(DAY);
      expect(await codes()).toEqual(['times_ahead']);

      const third = await apply('third');
      expect(await sandbox.json<DriftDetail>(['drift', 'web-01'])).toMatchObject({
        status: 'in_sync',
        operation_id: third.operation_id,
      });
      const { operations } = await sandbox.json<{ operations: readonly Operation[] }>([
        'ops',
        'list',
        '--agent',
        'web-01',
      ]);
      expect(operations.map(({ operation_id }) => operation_id)).toEqual(
        [third, second, first].map(({ operation_id }) => operation_id),
      );

      const data = ['--data-dir', sandbox.path('serve')];
      // Without consent it only tells what it found.
      expect((await sandbox.orch(['serve', 'accept-clock', ...data])).status).toBe(64);
      expect(await codes()).toEqual(['times_ahead']);
      const asked = await sandbox.orch(['serve', 'accept-clock', ...data, '--yes']);
      expect(asked.status).toBe(0);
      expect(asked.stdout + asked.stderr).toContain('The clock is taken as right from now on.');
      expect(await codes()).toEqual([]);
      expect((await sandbox.orch(['serve', 'accept-clock', ...data])).stdout).toContain('there is nothing to accept');
      await server.stop();
    });
  },
);
