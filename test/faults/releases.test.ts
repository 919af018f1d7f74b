/**
 * Earlier releases against this one, in both directions: a fleet is upgraded from the orchestrator on, host by host. The
 * earlier releases are the commit before the newest change of the product, and one of the protocol version before.
 */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RunResult } from '../../src/contract/runs.js';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { ORCH, type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { TEST_SHELL } from '../support/test-shell.js';
import { type Built, buildRelease, type Found, previousRelease, releaseNamed } from './earlier-release.js';

/** A release of protocol version 1. */
const OLDER = '744b653';
const releases: readonly (readonly [name: string, found: Found])[] = [
  ['previous', previousRelease()],
  ['older', releaseNamed(OLDER)],
];

for (const [name, found] of releases) {
  const title = 'commit' in found ? `${name} release, ${found.commit.slice(0, 7)}` : `${name} release`;
  describe.skipIf('missing' in found)(
    `with the ${title}${'missing' in found ? ` (skipped: ${found.missing})` : ''}`,
    () => {
      let release: Built;
      beforeAll(async () => {
        release = await buildRelease('commit' in found ? found.commit : '', `release-${name}`);
      }, 900_000);

      it('as an agent: is served with what its protocol version has, and upgraded in place', async () => {
        const { server, ready } = await orchestrator(ORCH);
        const agent = machine(release.program, ready);
        await approve(server);
        await applies(server, agent.sandbox, ['one', 'two']);
        if (release.protocol === PROTOCOL_VERSION) await echoes(server);
        else await refusesTerminals(server);
        const violations = await server.orch(['audit', '--type', 'agent.protocol_violation', '-o', 'json']);
        expect(violations.stdout).not.toContain('agent.protocol_violation');
        await agent.upgrade();
        await connected(server);
        await applies(server, agent.sandbox, ['two', 'three'], 'unchanged');
        await echoes(server);
      });

      it('as an agent: goes on with an apply and a terminal while its orchestrator is upgraded', async () => {
        const { server, running, ready } = await orchestrator(release.program);
        const { sandbox } = machine(release.program, ready);
        await approve(server);
        const apply = await startApply(server, sandbox);
        const hasTerminals = release.protocol === PROTOCOL_VERSION;
        const shell = hasTerminals ? await openShell(server) : null;
        shell?.write('begun=yes; echo "before: $begun"\r');
        await shell?.shows(/before: yes/);
        await upgrade(server, running, ready);
        await connected(server);
        await shell?.shows(/connected to the orchestrator again/);
        shell?.write('echo "after: $begun"\r');
        await shell?.shows(/after: yes/);
        await apply.finish();
        await until(async () => {
          const { stdout } = await server.orch(['ops', 'list']);
          return stdout.includes('succeeded');
        }, 'the apply has succeeded');
        expect(readFileSync(sandbox.path('ran'), 'utf8')).toBe('once\n');
        shell?.write('exit 5\r');
        if (shell !== null) expect(await shell.ended()).toBe(5);
        expect(await server.orch(['audit', 'verify'])).toMatchObject({ status: 0 });
      });

      it('as an orchestrator: starts again after it was upgraded, on the store of before its migration', async () => {
        const { server, running, ready } = await orchestrator(release.program);
        expect(await server.orch(['operator', 'add', aPublicKey(), '--username', 'bert'])).toMatchObject({
          status: 0,
        });
        const upgraded = await upgrade(server, running, ready);
        await upgraded.stop();
        server.program = release.program;
        const data = server.path('serve');
        const backup = readdirSync(data).find((name) => name.startsWith('orch.db.schema-'));
        if (backup !== undefined) {
          expect(await server.orch(['serve', '--data-dir', data])).toMatchObject({ status: 1 });
          const restored = await server.orch(['serve', 'restore', join(data, backup), '--yes', '--data-dir', data]);
          expect(restored).toMatchObject({ status: 0 });
        }
        await server.serve(['--api-port', portOf(ready.api_url)]);
        expect(await server.json(['operator', 'list'])).toMatchObject(
          expect.arrayContaining([expect.objectContaining({ username: 'bert' })]),
        );
        expect(await server.orch(['audit', 'verify'])).toMatchObject({ status: 0 });
      });

      it('as an orchestrator: serves an agent of the same protocol version, and keeps everything when it is upgraded', async () => {
        const { server, running, ready } = await orchestrator(release.program);
        const agent = machine(ORCH, ready);
        const isServed = release.protocol === PROTOCOL_VERSION;
        if (isServed) {
          await approve(server);
          await applies(server, agent.sandbox, ['one', 'two']);
          await echoes(server);
        } else {
          await until(
            () => agent.running().output().includes('upgrade the orchestrator'),
            'the agent says why it is refused',
          );
          await until(() => running.output().includes('upgrade the orchestrator'), 'the orchestrator says so too');
        }
        const before = await server.json<readonly unknown[]>(['ops', 'list']);
        await upgrade(server, running, ready);
        // It would dial again by itself within a minute.
        await agent.upgrade();
        if (isServed) await connected(server);
        else await approve(server);
        expect(await server.json(['ops', 'list'])).toEqual(before);
        await applies(server, agent.sandbox, ['two', 'three'], isServed ? 'unchanged' : 'changed');
        await echoes(server);
        expect(await server.orch(['audit', 'verify'])).toMatchObject({ status: 0 });
        if (isServed)
          expect(await transcripts(server)).toEqual([
            expect.stringContaining('echo is'),
            expect.stringContaining('echo is'),
          ]);
      });
    },
  );
}

async function orchestrator(program: string) {
  const server = new Sandbox(program);
  onTestFinished(() => server.dispose());
  await server.orch(['operator', 'init']);
  const { server: running, ready } = await server.serve();
  const profile = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  await server.orch(['profile', 'create', 'test', ...profile]);
  return { server, running, ready };
}

/** Starts this release on the data directory and the ports of the earlier one. */
async function upgrade(server: Sandbox, running: Running, { api_url, agent_address }: Ready): Promise<Running> {
  await running.stop();
  server.program = ORCH;
  return (await server.serve(['--api-port', portOf(api_url), '--agent-port', portOf(agent_address)])).server;
}

const portOf = (address: string): string => /:(\d+)$/.exec(address)?.[1] ?? '';

function machine(program: string, ready: Ready) {
  const sandbox = new Sandbox(program);
  onTestFinished(() => sandbox.dispose());
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\n`);
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  const start = () => sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
  let running = start();
  return {
    sandbox,
    running: () => running,
    /** Starts this release on the data directory of the stopped agent. */
    upgrade: async () => {
      await running.stop();
      sandbox.program = ORCH;
      running = start();
    },
  };
}

const agents = (server: Sandbox) => server.json<Agent[]>(['agents', 'list']);
const connected = (server: Sandbox) =>
  until(async () => (await agents(server))[0]?.connected === true, 'the agent is connected');

async function approve(server: Sandbox): Promise<void> {
  await until(async () => (await agents(server)).length === 1, 'the agent waits');
  const [agent] = await agents(server);
  await server.json(['agents', 'approve', agent?.node_id ?? '', '--name', 'web-01', '--yes']);
  await connected(server);
}

/** Applies a file with one content after the other. */
async function applies(
  server: Sandbox,
  agent: Sandbox,
  contents: readonly string[],
  first: 'changed' | 'unchanged' = 'changed',
): Promise<void> {
  const file = agent.path('motd');
  const module = server.path('site.orch.yaml');
  for (const [index, content] of contents.entries()) {
    const resource = `{file-unix: {path: ${file}, content: ${content}}}`;
    writeFileSync(module, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: ${resource}\n`);
    const result = await server.json<RunResult>(['apply', 'web-01', '-f', module, '--yes']);
    expect(result).toMatchObject({
      status: 'succeeded',
      resources: [{ identity: file, status: index === 0 ? first : 'changed' }],
    });
    expect(readFileSync(file, 'utf8')).toBe(content);
  }
}

/** Starts an apply whose script waits until `finish` is called. */
async function startApply(server: Sandbox, agent: Sandbox) {
  const module = server.path('slow.orch.yaml');
  const [began, go] = [agent.path('began'), agent.path('go')];
  const lines = [`touch ${began}`, `while [ ! -e ${go} ]; do sleep 0.1; done`, `echo once >> ${agent.path('ran')}`];
  writeFileSync(
    module,
    `name: slow
supports: [{platform: linux}]
resources:
  - resource:
      script:
        program: sh
        manages: the end of a wait
        apply: ${JSON.stringify(lines.join('\n'))}
`,
  );
  const applying = server.start(['apply', 'web-01', '-f', module, '--yes']);
  await until(() => existsSync(began) || applying.process.exitCode !== null, 'the script runs');
  if (!existsSync(began)) throw new Error(applying.output());
  return {
    finish: async () => {
      writeFileSync(go, '');
      await applying.stop('SIGKILL');
    },
  };
}

const aPublicKey = (): string =>
  generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');

async function openShell(server: Sandbox): Promise<Pty> {
  const pty = new Pty([process.execPath, server.program, 'term', 'web-01'], { env: server.env, cwd: server.root });
  onTestFinished(() => pty.kill());
  await pty.shows(/[$#] $/);
  return pty;
}

/** Types into a shell on the agent, and reads its echo and the output. */
async function echoes(server: Sandbox): Promise<void> {
  const pty = await openShell(server);
  pty.write("echo 'echo' is $((40 + 2))\r");
  await pty.shows(/echo 'echo' is[\s\S]*echo is 42/);
  pty.write('exit 7\r');
  expect(await pty.ended()).toBe(7);
  expect(await server.orch(['exec', 'web-01', '--', 'echo', 'here'])).toMatchObject({ status: 0, stdout: 'here\n' });
}

async function refusesTerminals(server: Sandbox): Promise<void> {
  const refused = await server.orch(['exec', 'web-01', '--', 'true']);
  expect(refused).toMatchObject({ status: 255 });
  expect(refused.stderr).toContain('install the orch of the orchestrator on that machine');
  expect((await agents(server))[0]?.connected).toBe(true);
}

/** Recorded output of the shells, newest first. */
async function transcripts(server: Sandbox): Promise<readonly string[]> {
  const sessions = await server.json<TerminalSession[]>(['term', 'list', '--all']);
  const shells = sessions.filter(({ kind }) => kind === 'shell');
  return Promise.all(
    shells.map(async ({ session_id }) => (await server.orch(['term', 'transcript', session_id])).stdout),
  );
}
