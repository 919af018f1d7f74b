/** An older release against this one, in both directions: a fleet is upgraded from the orchestrator on, host by host. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RunResult } from '../../src/contract/runs.js';
import { ORCH, type Ready, Sandbox, until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';

/** The commit whose build is the older release. It is built with the libraries of this tree. */
const OLDER = '744b653';
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
    // Adds the libraries that only the older release has; the others, with what was compiled for them, stay as they are.
    rmSync(join(directory, 'node_modules/.package-lock.json'), { force: true });
    execFileSync('npm', ['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: directory });
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
    writeFileSync(join(directory, 'built'), '');
  });

  it('serves agents of the older release, and says what they cannot do yet', async () => {
    const { server, ready } = await orchestrator(ORCH);
    const agent = machine(older, ready);
    const agents = () => server.json<Agent[]>(['agents', 'list']);
    await approve(server);
    await applies(server, agent.sandbox);
    const refused = await server.orch(['exec', 'web-01', '--', 'true']);
    expect(refused).toMatchObject({ status: 255 });
    expect(refused.stderr).toContain('install the orch of the orchestrator on that machine');
    const violations = await server.orch(['audit', '--type', 'agent.protocol_violation', '-o', 'json']);
    expect(violations.stdout).not.toContain('agent.protocol_violation');
    expect((await agents())[0]?.connected).toBe(true);
  });

  it('is turned away by an orchestrator of the older release with the reason, and taken once that is upgraded', async () => {
    const { server, running, ready } = await orchestrator(older);
    const agent = machine(ORCH, ready);
    await until(() => agent.running.output().includes('upgrade the orchestrator'), 'the agent says why it is refused');
    await until(() => running.output().includes('upgrade the orchestrator'), 'the orchestrator says so too');
    await running.stop();
    server.program = ORCH;
    // It would dial again by itself within a minute.
    await agent.running.stop();
    const ports = ['--api-port', portOf(ready.api_url), '--agent-port', portOf(ready.agent_address)];
    await server.serve(ports);
    agent.start();
    await approve(server);
    await applies(server, agent.sandbox);
    expect(await server.orch(['exec', 'web-01', '--', 'echo', 'here'])).toMatchObject({ status: 0, stdout: 'here\n' });
  });
});

const portOf = (address: string): string => /:(\d+)$/.exec(address)?.[1] ?? '';

async function orchestrator(program: string) {
  const server = new Sandbox(program);
  onTestFinished(() => server.dispose());
  await server.orch(['operator', 'init']);
  const { server: running, ready } = await server.serve();
  const profile = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  await server.orch(['profile', 'create', 'test', ...profile]);
  return { server, running, ready };
}

function machine(program: string, ready: Ready) {
  const sandbox = new Sandbox(program);
  onTestFinished(() => sandbox.dispose());
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\n`);
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  const start = () => sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
  return { sandbox, start, running: start() };
}

async function approve(server: Sandbox): Promise<void> {
  const agents = () => server.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await server.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await agents())[0]?.connected === true, 'the agent is connected');
}

/** Applies twice, the second time with another content. */
async function applies(server: Sandbox, agent: Sandbox): Promise<void> {
  const file = agent.path('motd');
  const module = server.path('site.orch.yaml');
  for (const content of ['one', 'two']) {
    const resource = `{file-unix: {path: ${file}, content: ${content}}}`;
    writeFileSync(module, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: ${resource}\n`);
    const result = await server.json<RunResult>(['apply', 'web-01', '-f', module, '--yes']);
    expect(result.status).toBe('succeeded');
    expect(readFileSync(file, 'utf8')).toBe(content);
  }
}
