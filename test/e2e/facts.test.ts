/** Facts of one's own with real processes: from files of the agent's user to conditions, and to the command line. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent, AgentFactsAnswer } from '../../src/contract/agents.js';
import { type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const site = sandbox.path('site');
const directory = sandbox.path('facts.d');
let agent: Running;

const write = (name: string, text: string, mode = 0o644) => {
  writeFileSync(`${directory}/${name}`, text);
  chmodSync(`${directory}/${name}`, mode);
};
const agentNow = async () => (await sandbox.json<Agent[]>(['agents', 'list']))[0];
const facts = (...args: readonly string[]) => sandbox.json<AgentFactsAnswer>(['facts', 'web-01', ...args]);

beforeAll(async () => {
  mkdirSync(directory, { mode: 0o755 });
  mkdirSync(site);
  write('app.json', '{"role": "web", "port": 80}');
  write('list', '#!/bin/sh\necho \'["one", "two"]\'\n', 0o755);
  writeFileSync(sandbox.path('agent.yaml'), `facts.directory: ${directory}\n`);
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  const { ready } = await sandbox.serve();
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const own = ['--data-dir', sandbox.path('agent'), '--config', sandbox.path('agent.yaml')];
  agent = sandbox.start(['agent', 'connect', ready.agent_address, '--orchestrator-key', ready.public_key, ...own]);
  await until(async () => (await agentNow())?.status === 'pending', 'the agent waits');
  const approve = ['agents', 'approve', (await agentNow())?.node_id ?? '', '--name', 'web-01', '--yes'];
  expect(await sandbox.orch(approve)).toMatchObject({ status: 0 });
  await until(async () => (await facts()).reported_at !== null, 'the agent has reported its facts');
});

afterAll(async () => {
  await sandbox.dispose();
});

it('reach conditions, loops and texts, and what changes them is shown', async () => {
  writeFileSync(
    sandbox.path('site.orch.yaml'),
    `name: site
supports: [{platform: linux}]
resources:
  - {if: facts.app.role == "web", file-unix: {path: ${site}/web, content: "\${{ facts.app.port | plus: 8000 }}"}}
  - {for_each: facts.list, file-unix: {path: "${site}/\${{ each.key }}", content: "\${{ attributes.processors }}"}}
`,
  );
  expect(await sandbox.orch(['module', 'publish', sandbox.path('site.orch.yaml')])).toMatchObject({ status: 0 });
  const create = ['assignments', 'create', 'all', '-m', 'site', '--selector', '*', '--mode', 'enforce'];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  await until(() => existsSync(`${site}/two`), 'the module is applied by itself');
  expect(readFileSync(`${site}/web`, 'utf8')).toBe('8080');
  const explained = await sandbox.orch(['explain', 'web-01', `file-unix ${site}/two`]);
  expect(explained).toMatchObject({ status: 0, stdout: expect.stringContaining('site') });
  expect(await sandbox.orch(['module', 'check', sandbox.path('site.orch.yaml')])).toMatchObject({ status: 0 });

  write('app.json', '{"role": "db", "port": 80}');
  expect((await facts('--refresh')).facts.app).toMatchObject({ value: { role: 'db' } });
  await until(async () => (await agentNow())?.automation_stopped != null, 'the automatic applies stop');
  const shown = await sandbox.orch(['agents', 'show', 'web-01']);
  expect(shown.stdout).toContain('orch apply web-01 --allow-removals 1');
  expect(shown.stdout).toContain('(facts.app.role changed from "web" to "db")');
  const plan = await sandbox.orch(['plan', 'web-01']);
  expect(plan.stdout).toContain(`note: file-unix ${site}/web goes because facts.app.role changed from "web" to "db"`);
  expect(existsSync(`${site}/web`)).toBe(true);
  expect(await sandbox.orch(['apply', 'web-01', '--yes'])).toMatchObject({ status: 0 });
  expect(existsSync(`${site}/web`)).toBe(false);
});

it('outlive a failure and a restart of the agent, and go with their file', async () => {
  write('list', '#!/bin/sh\nexit 7\n', 0o755);
  const { facts: failed } = await facts('--refresh');
  const error = `${directory}/list ended with status 7`;
  expect(failed.list).toMatchObject({ value: ['one', 'two'], error, since: expect.any(Number) });
  expect((await sandbox.orch(['facts', 'web-01'])).stdout).toContain(`  ${error}\n`);
  expect((await sandbox.orch(['plan', 'web-01'])).stdout).toContain('nothing to do');
  rmSync(`${directory}/list`);
  expect((await facts('--refresh')).facts).not.toHaveProperty('list');
  await until(async () => (await agentNow())?.standing_reason != null, 'the standing names the missing fact');
  expect((await agentNow())?.standing_reason).toContain('the agent has no fact "list"');
  expect(existsSync(`${site}/one`)).toBe(true);
  await agent.stop();
  await until(async () => (await agentNow())?.connected === false, 'the agent is away');
  const refused = await sandbox.orch(['facts', 'web-01', '--refresh']);
  expect(refused).toMatchObject({ status: expect.any(Number), stderr: expect.stringContaining('is not connected') });
  expect(refused.status).not.toBe(0);
});
