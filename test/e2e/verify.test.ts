/** Health checks with real processes: an apply that fails them, one that passes them, and checks by hand. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { RunResult, Verification } from '../../src/contract/runs.js';
import { type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const file = sandbox.path('shop.orch.yaml');
const ready = sandbox.path('ready');
let agent: Running;
let agentArgs: readonly string[];
let web: Server;
let url: string;
let status = 503;

const writeModule = (more = '') =>
  writeFileSync(
    file,
    `name: shop
supports: [{platform: linux}]
resources:
  - resource: {file-unix: {path: ${sandbox.path('shop.conf')}, content: "port 80\\n"}}
verify:
  - {name: page, within: 1s, http: {url: "${url}"}}
  - {name: ready, within: 1s, script: {program: sh, run: test -e ${ready}}}
${more}`,
  );

const apply = () => sandbox.orch(['apply', 'shop-1', '-f', file, '--yes']);

beforeAll(async () => {
  web = createServer((_request, response) => response.writeHead(status).end());
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/health`;
  writeModule();
  await sandbox.orch(['operator', 'init']);
  const { ready: server } = await sandbox.serve();
  const { api_url, tls_fingerprint } = server;
  await sandbox.orch(['profile', 'create', 'test', '--url', api_url, '--tls-fingerprint', tls_fingerprint]);
  await sandbox.orch(['profile', 'use', 'test']);
  const key = ['--orchestrator-key', server.public_key, '--data-dir', sandbox.path('agent')];
  agentArgs = ['agent', 'connect', server.agent_address, ...key];
  agent = sandbox.start(agentArgs);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits for approval');
  await sandbox.orch(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'shop-1', '--yes']);
  await sandbox.orch(['agents', 'tag', 'shop-1', 'role=web']);
});

afterAll(async () => {
  web.close();
  await sandbox.dispose();
});

describe('health checks', () => {
  it('are named in the plan', async () => {
    const { stdout } = await sandbox.orch(['plan', 'shop-1', '-f', file]);
    expect(stdout).toContain('Checks: 2 health checks to run afterwards: shop "page", shop "ready".');
  });

  it('fail an apply, whose resources stay', async () => {
    writeFileSync(ready, '');
    const { status: exit, stdout } = await apply();
    expect(exit).toBe(3);
    expect(stdout).toContain(`shop "page"`);
    expect(stdout).toMatch(
      new RegExp(`error: check "page" of module shop failed: ${url} answered 503, expected 2xx or 3xx`),
    );
    expect(stdout).toContain('Checks: 1 healthy, 1 unhealthy.');
    expect(existsSync(sandbox.path('shop.conf'))).toBe(true);
    const [last] = (await sandbox.json<{ operations: OperationDetail[] }>(['ops', 'list'])).operations;
    const operation = await sandbox.json<OperationDetail>(['ops', 'show', last?.operation_id ?? '']);
    expect(operation).toMatchObject({
      status: 'failed',
      error: { code: 'verify_failed' },
      summary: { changed: 1 },
      checks: [
        { name: 'page', status: 'unhealthy' },
        { name: 'ready', status: 'healthy' },
      ],
    });
    expect((await sandbox.orch(['drift', 'shop-1'])).stdout).toContain('none');
  });

  it('run again by hand, and are green when the service is', async () => {
    const before = await sandbox.orch(['verify', 'shop-1']);
    expect(before.status).toBe(1);
    expect(before.stdout).toContain('unhealthy shop "page"');
    status = 200;
    const after = await sandbox.orch(['verify', '-l', 'role=web']);
    expect(after).toMatchObject({ status: 0, stdout: expect.stringContaining('Checks: 2 healthy.') });
    expect(await sandbox.json<Verification>(['verify', 'shop-1'])).toMatchObject({ ok: true, error: null });
  });

  it('pass with the next apply', async () => {
    expect(await apply()).toMatchObject({ status: 0, stdout: expect.stringContaining('Checks: 2 healthy.') });
  });

  it('end with the agent, and say after its return that they did not run to the end', async () => {
    const begun = sandbox.path('begun');
    writeModule(
      `  - {name: slow, within: 15m, timeout: 2m, script: {program: sh, run: "touch ${begun}; sleep 100"}}\n`,
    );
    expect((await sandbox.orch(['module', 'publish', file])).status).toBe(0);
    sandbox.start(['apply', 'shop-1', '-m', 'shop', '--yes']);
    await until(() => existsSync(begun), 'the check runs');
    await agent.stop('SIGKILL');
    agent = sandbox.start(agentArgs);
    const last = async () => (await sandbox.json<{ operations: OperationDetail[] }>(['ops', 'list'])).operations[0];
    await until(async () => (await last())?.status === 'interrupted', 'the operation has ended');
    expect((await last())?.error?.message).toContain('its health checks did not run to the end');
    writeModule();
  });

  it('run after an apply on this machine', async () => {
    rmSync(ready);
    const local = ['apply', '--local', '--data-dir', sandbox.path('local'), '-f', file, '--yes'];
    expect(await sandbox.orch(local)).toMatchObject({
      status: 3,
      stdout: expect.stringContaining('check "ready" of module shop failed: ended with status 1'),
    });
    writeFileSync(ready, '');
    const { checks } = await sandbox.json<RunResult>(local);
    expect(checks).toMatchObject([{ status: 'healthy' }, { status: 'healthy' }]);
    const { stdout } = await sandbox.orch(['plan', '--local', '--data-dir', sandbox.path('local'), '-f', file]);
    expect(stdout).toContain('Checks: 2 health checks to run afterwards');
  });
});
