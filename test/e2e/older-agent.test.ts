/** An agent of the protocol version before, beside one of today: it keeps its connection and does what it knows. */
import { writeFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { TestAgent } from '../support/fleet.js';
import { Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
afterAll(() => sandbox.dispose());

const types = (agent: TestAgent) => agent.received.map(({ type }) => type);

it('is asked for nothing that its version does not know, and applied to like any other', async () => {
  await sandbox.orch(['operator', 'init']);
  const { ready } = await sandbox.serve(['--metrics-poll-interval', '1']);
  const { api_url: url, tls_fingerprint: fingerprint } = ready;
  await sandbox.orch(['profile', 'create', 'test', '--url', url, '--tls-fingerprint', fingerprint]);
  await sandbox.orch(['profile', 'use', 'test']);
  const port = Number(ready.agent_address.split(':').at(-1));
  const [older, newer] = [await TestAgent.dial(port), await TestAgent.dial(port)];
  older.hello({ protocol_version: PROTOCOL_VERSION - 1 });
  newer.hello();
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list'])).length === 2, 'both wait');
  await sandbox.orch(['agents', 'approve', older.nodeId, '--name', 'older', '--yes']);
  await sandbox.orch(['agents', 'approve', newer.nodeId, '--name', 'newer', '--yes']);
  // Each question is answered or left, as the orchestrator likes; the second round has come to both by then.
  await until(() => types(newer).filter((type) => type === 'metrics_request').length >= 2, 'it was asked twice');
  expect(older.received).toMatchObject([
    { type: 'status', status: 'pending', protocol_version: PROTOCOL_VERSION - 1 },
    { type: 'status', status: 'approved', protocol_version: PROTOCOL_VERSION - 1 },
  ]);

  const refused = await sandbox.orch(['exec', 'older', '--', 'true']);
  expect(refused.stderr).toContain('is of an orch without remote terminals');
  expect(refused.stderr).toContain('install the orch of the orchestrator');
  const module = sandbox.path('site.orch.yaml');
  const resource = `file-unix: {path: ${sandbox.path('f')}, content: "x"}`;
  writeFileSync(module, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource:\n      ${resource}\n`);
  expect(await sandbox.orch(['module', 'publish', module])).toMatchObject({ status: 0 });
  const plan = sandbox.start(['plan', 'older', '-m', 'site']);
  await until(() => types(older).includes('run_part'), 'the plan has come');
  await plan.stop();
  // Agents of version 1 cut the connection for a member that they do not know.
  const run = older.received.find(({ type }) => type === 'run');
  const known = ['type', 'run_id', 'mode', 'epoch', 'generation', 'resources', 'removals', 'parts', 'expect'];
  expect(Object.keys(run ?? {}).filter((member) => !known.includes(member))).toEqual([]);
  expect(new Set(types(older))).toEqual(new Set(['status', 'run', 'run_part', 'run_cancel']));
  expect(older.socket.readyState).toBe(older.socket.OPEN);
});
