/** A rollout on real agents, watched over a restart of the orchestrator, paused and resumed. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RolloutDetail } from '../../src/contract/rollouts.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const NAMES = ['web-01', 'web-02', 'web-03'] as const;
const opened = (name: string) => sandbox.path('machines', `${name}.open`);
const done = (name: string) => sandbox.path('machines', `${name}.done`);
let server: Running;
let ready: Ready;

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ server, ready } = await sandbox.serve());
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  await sandbox.orch(['profile', 'use', 'test']);
  mkdirSync(sandbox.path('machines'));
  for (const name of NAMES) {
    const connect = ['agent', 'connect', ready.agent_address, '--orchestrator-key', ready.public_key];
    sandbox.start([...connect, '--data-dir', sandbox.path('agents', name)]);
    let pending: Agent[] = [];
    await until(async () => {
      pending = await sandbox.json<Agent[]>(['agents', 'list', '--status', 'pending']);
      return pending.length === 1;
    }, `${name} is pending`);
    await sandbox.json(['agents', 'approve', (pending[0] as Agent).node_id, '--name', name, '--yes']);
  }
  const file = sandbox.path('gate.orch.yaml');
  const gate = `until [ -e ${opened(`\${{ agent.name }}`)} ]; do sleep 0.1; done; touch ${done(`\${{ agent.name }}`)}`;
  const script = `  - id: gate\n    resource: {script: {program: sh, apply: "${gate}"}}\n`;
  writeFileSync(file, `name: gate\nsupports:\n  - platform: linux\nresources:\n${script}`);
  await sandbox.json(['module', 'publish', file]);
});

afterAll(() => sandbox.dispose());

const show = (id: string) => sandbox.json<RolloutDetail>(['rollouts', 'show', id]);

it('is followed to its end while the orchestrator restarts, and waits while it is paused', async () => {
  const begin = ['apply', '-l', 'platform=linux', '-m', 'gate', '--yes', '--waves', '1,100%', '--detach', '-o', 'name'];
  const id = (await sandbox.orch(begin)).stdout.trim();
  const watch = sandbox.start(['rollouts', 'watch', id]);
  await until(async () => (await show(id)).counts.running === 1, 'the first agent is at work');
  expect(await sandbox.orch(['rollouts', 'pause', id, '--reason', 'lunch'])).toMatchObject({ status: 0 });
  writeFileSync(opened('web-01'), '');
  await until(async () => (await show(id)).counts.succeeded === 1, 'the first agent is done');
  await until(() => watch.output().includes('paused: lunch\n'), 'the watcher hears of the pause');
  await server.stop();
  await until(() => watch.output().includes('waiting for the orchestrator\n'), 'the watcher waits');
  const ports = [
    '--agent-port',
    new URL(`tcp://${ready.agent_address}`).port,
    '--api-port',
    new URL(ready.api_url).port,
  ];
  ({ server } = await sandbox.serve(ports));
  expect(await show(id)).toMatchObject({ state: 'paused', reason: 'lunch', counts: { waiting: 2 } });
  const resumed = await sandbox.orch(['rollouts', 'resume', id, '--yes']);
  expect(resumed).toMatchObject({ status: 0, stdout: expect.stringContaining(`orch rollouts watch ${id}`) });
  for (const name of NAMES) writeFileSync(opened(name), '');
  await until(() => watch.process.exitCode !== null, 'the watcher has ended');
  expect(watch.process.exitCode).toBe(0);
  expect(watch.output()).toMatch(/^State +succeeded$/m);
  expect(watch.output().match(/web-01: succeeded/g)).toHaveLength(1);
  for (const name of NAMES) expect(readFileSync(done(name), 'utf8')).toBe('');
});
