/** An older release against this one, in both directions: an apply and a command go through, and no end closes the link. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RunResult } from '../../src/contract/runs.js';
import { ORCH, Sandbox, until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';

/** The commit whose build is the older release. */
const OLDER = '94891af';
const root = fileURLToPath(new URL('../..', import.meta.url));
const git = (...args: readonly string[]) => spawnSync('git', ['-C', root, ...args], { encoding: 'utf8' });
const reason = git('cat-file', '-e', `${OLDER}^{commit}`).status === 0 ? null : 'the history is not here';

describe.skipIf(reason !== null)(`with a release before${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  const directory = join(root, '.cache', `older-${OLDER}-${process.version}`);
  const older = join(directory, 'dist/orch/orch.js');

  beforeAll(() => {
    if (existsSync(join(directory, 'built'))) return;
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    const archive = execFileSync('git', ['-C', root, 'archive', OLDER], { maxBuffer: 2 ** 28 });
    execFileSync('tar', ['-x', '-C', directory], { input: archive });
    // Linked file by file: the bundle names modules by their place in the tree.
    execFileSync('cp', ['-al', join(root, 'node_modules'), directory]);
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
    writeFileSync(join(directory, 'built'), '');
  });

  it('serves agents of the older release', () => bothWays(ORCH, older));
  it('connects to an orchestrator of the older release', () => bothWays(older, ORCH));
});

async function bothWays(serving: string, managed: string): Promise<void> {
  const server = new Sandbox(serving);
  const machine = new Sandbox(managed);
  onTestFinished(async () => {
    await server.dispose();
    await machine.dispose();
  });
  await server.orch(['operator', 'init']);
  const { ready } = await server.serve();
  const profile = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  await server.orch(['profile', 'create', 'test', ...profile]);
  const config = machine.path('agent.yaml');
  writeFileSync(config, `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\n`);
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', machine.path('agent'), '--config', config];
  const agent = machine.start(['agent', 'connect', ready.agent_address, ...key]);
  const agents = () => server.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await server.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await agents())[0]?.connected === true, 'the agent is connected');
  const file = machine.path('motd');
  const module = server.path('site.orch.yaml');
  for (const content of ['one', 'two']) {
    writeFileSync(
      module,
      `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: ${file}, content: ${content}}}\n`,
    );
    const result = await server.json<RunResult>(['apply', 'web-01', '-f', module, '--yes']);
    expect(result.status).toBe('succeeded');
    expect(readFileSync(file, 'utf8')).toBe(content);
  }
  expect(await server.orch(['exec', 'web-01', '--', 'echo', 'here'])).toMatchObject({ status: 0, stdout: 'here\n' });
  await until(async () => (await server.orch(['metrics', 'web-01', '-o', 'json'])).status === 0, 'it was measured');
  const violations = await server.orch(['audit', '--type', 'agent.protocol_violation', '-o', 'json']);
  expect(violations.stdout).not.toContain('agent.protocol_violation');
  expect(agent.output()).not.toContain('protocol');
  expect((await agents())[0]?.connected).toBe(true);
}
