/** New machines with enrolment tokens, with real processes: the printed line, a place in the fleet, and no trace of the token. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { CreatedEnrolmentToken, EnrolmentTokenRecord } from '../../src/contract/enrolment-tokens.js';
import { formatEnrolmentToken, parseEnrolmentToken } from '../../src/wire/enrolment-token.js';
import { newIdentity } from '../support/identity.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const sandbox = new Sandbox();
const shells: ReturnType<typeof spawn>[] = [];
const tokens: string[] = [];
let server: Running;
let ready: Ready;
/** Everything that any agent has printed. */
let printed = '';

type Created = CreatedEnrolmentToken & { readonly command: string };

async function create(...options: readonly string[]): Promise<Created> {
  const created = await sandbox.json<Created>(['enroll', 'create', ...options]);
  tokens.push(created.token);
  return created;
}

const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
const agentOn = async (hostname: string) => (await agents()).find((one) => one.initial_hostname === hostname);

const environmentOf = (hostname: string): NodeJS.ProcessEnv => ({
  ORCH_AGENT_HOSTNAME: hostname,
  ORCH_AGENT_DATA_DIR: sandbox.path(hostname),
});

/** Tests are no service: the same line for an agent in the foreground. */
const inForeground = (line: string): string => line.replace('agent install', 'agent connect');

/** Types a line into a shell of a machine of that name, which then does what the line says. */
function type(line: string, hostname: string): void {
  const bin = sandbox.path('bin');
  const shell = spawn('/bin/sh', ['-s'], {
    env: { ...sandbox.env, ...environmentOf(hostname), PATH: `${bin}:${process.env.PATH}` },
    detached: true,
  });
  shells.push(shell);
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.on('data', (chunk) => {
      printed += chunk;
    });
  }
  shell.stdin.end(`${line}\n`);
}

/** The words of every process that hold the text. */
const seenIn = (text: string): readonly string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .map((name) => join('/proc', name, 'cmdline'))
    .filter((file) => existsSync(file))
    .map((file) => {
      try {
        return readFileSync(file, 'latin1');
      } catch {
        return '';
      }
    })
    .filter((words) => words.includes(text));

beforeAll(async () => {
  mkdirSync(sandbox.path('bin'));
  writeFileSync(sandbox.path('bin', 'orch'), `#!/bin/sh\nexec '${process.execPath}' '${ORCH}' "$@"\n`);
  chmodSync(sandbox.path('bin', 'orch'), 0o755);
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  ({ server, ready } = await sandbox.serve(['--log-level', 'debug']));
  const profile = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(profile)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
});
afterAll(async () => {
  for (const { pid, exitCode } of shells) if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL');
  await sandbox.dispose();
});

describe('the printed line', () => {
  it('makes a machine an agent that is approved, tagged and connected at once', async () => {
    const { command, id, token } = await create('--auto-approve', '--tag', 'role=web', '--tag', 'site=north');
    expect(command).toBe(`echo ${token} | orch agent install ${ready.agent_address} --token -`);
    type(` ${inForeground(command)}`, 'shop-01.example.org');
    await until(async () => (await agentOn('shop-01.example.org'))?.connected === true, 'the agent is connected');
    expect(await agentOn('shop-01.example.org')).toMatchObject({
      name: 'shop-01',
      status: 'approved',
      tags: { role: 'web', site: 'north' },
    });
    const [listed] = await sandbox.json<EnrolmentTokenRecord[]>(['enroll', 'list']);
    expect(listed).toMatchObject({ id, uses_left: 0, last_used_at: expect.any(Number) });
    expect(seenIn(token)).toEqual([]);
  });

  it('without --auto-approve makes one that waits, with its tags', async () => {
    const { command } = await create('--tag', 'role=db');
    type(inForeground(command), 'db-01');
    await until(async () => (await agentOn('db-01'))?.connected === true, 'the agent waits');
    const waiting = (await agentOn('db-01')) as Agent;
    expect(waiting).toMatchObject({ name: null, status: 'pending', tags: { role: 'db' } });
    await sandbox.json(['agents', 'approve', waiting.node_id, '--name', 'db', '--yes']);
    await until(async () => (await agentOn('db-01'))?.status === 'approved', 'the agent is approved');
  });
});

describe('a token', () => {
  it('that is used up, as a word or a variable, is refused with a message, and is not in the list of processes', async () => {
    const { token, command } = await create('--auto-approve');
    type(inForeground(command), 'first');
    await until(async () => (await agentOn('first'))?.connected === true, 'the first agent is connected');
    const word = sandbox.start(['agent', 'connect', ready.agent_address, '--token', token], environmentOf('second'));
    const variable = sandbox.start(['agent', 'connect', ready.agent_address], {
      ...environmentOf('third'),
      ORCH_AGENT_TOKEN: token,
    });
    for (const hostname of ['second', 'third']) {
      await until(async () => (await agentOn(hostname))?.connected === true, `${hostname} waits`);
      expect(await agentOn(hostname)).toMatchObject({ status: 'pending', name: null, tags: {} });
      const status = await sandbox.json(['agent', 'status', '--data-dir', sandbox.path(hostname)]);
      const last_error = 'the enrolment token was not accepted: it has no uses left';
      expect(status).toMatchObject({ link: 'pending', last_error });
    }
    expect(seenIn(token)).toEqual([]);
    for (const agent of [word, variable]) {
      expect(agent.output().split('it has no uses left')).toHaveLength(2);
      printed += agent.output();
      await agent.stop();
    }
  });

  it('is not needed again, and does no harm when it is still given', async () => {
    const { token } = await create('--auto-approve', '--uses', '2');
    const file = sandbox.path('token');
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    for (const credentials of [['--token', `@${file}`], ['--token', `@${file}`], []]) {
      const agent = sandbox.start(['agent', 'connect', ready.agent_address, ...credentials], environmentOf('again'));
      await until(async () => (await agentOn('again'))?.connected === true, 'the agent is connected');
      printed += agent.output();
      await agent.stop();
      await until(async () => (await agentOn('again'))?.connected === false, 'the agent is gone');
    }
    const tokens = await sandbox.json<EnrolmentTokenRecord[]>(['enroll', 'list']);
    expect(tokens.find(({ id }) => token.includes(id))).toMatchObject({ uses: 2, uses_left: 1 });
  });

  it('of another orchestrator is refused where one is pinned, and what is no token is wrong usage', async () => {
    const orchestratorKey = newIdentity().publicKey;
    const token = formatEnrolmentToken({ id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T', secret: randomBytes(32), orchestratorKey });
    const connect = ['agent', 'connect', ready.agent_address, '--token', '-'];
    const pinned = await sandbox.orch(connect, { input: token, env: environmentOf('again') });
    expect([pinned.status, pinned.stderr]).toEqual([78, expect.stringContaining('orch agent repin')]);
    const both = [...connect, '--orchestrator-key', ready.public_key];
    const torn = await sandbox.orch(both, { input: token, env: environmentOf('fourth') });
    expect([torn.status, torn.stderr]).toEqual([64, expect.stringContaining('another orchestrator')]);
    const wrong = await sandbox.orch(connect, { input: token.slice(1), env: environmentOf('fourth') });
    expect([wrong.status, wrong.stderr]).toEqual([64, expect.stringContaining('no enrolment token')]);
    expect(torn.stderr + wrong.stderr).not.toContain(token.slice(50, 80));
    expect(existsSync(sandbox.path('fourth'))).toBe(false);
  });

  it('that was revoked lets no agent in', async () => {
    const { id, token } = await create('--auto-approve', '--uses', '5');
    expect((await sandbox.orch(['enroll', 'revoke', id])).status).toBe(0);
    const agent = sandbox.start(['agent', 'connect', ready.agent_address, '--token', token], environmentOf('late'));
    await until(async () => (await agentOn('late'))?.connected === true, 'the agent waits');
    expect(await agentOn('late')).toMatchObject({ status: 'pending' });
    await until(() => agent.output().includes('it was revoked'), 'the agent says why');
    await agent.stop();
    const events = await sandbox.json<{ events: { event_type: string }[] }>(['audit', 'list', '--limit', '500']);
    const types = new Set(events.events.map(({ event_type }) => event_type));
    for (const type of ['enrolment.created', 'enrolment.used', 'enrolment.revoked']) expect(types).toContain(type);
  });

  it('has left no trace in any file or log', () => {
    const directories = ['serve', 'state', 'shop-01.example.org', 'db-01', 'first', 'second', 'third', 'again', 'late'];
    const files = directories
      .map((name) => sandbox.path(name))
      .filter((directory) => existsSync(directory))
      .flatMap((directory) => readdirSync(directory, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    expect(files.length).toBeGreaterThan(20);
    expect(tokens.length).toBe(5);
    for (const text of [...files, server.output(), printed]) {
      for (const token of tokens) {
        const secret = parseEnrolmentToken(token)?.secret ?? Buffer.alloc(0);
        for (const form of ['base64url', 'base64', 'hex', 'latin1'] as const) {
          expect(text.includes(secret.toString(form))).toBe(false);
        }
      }
    }
  });
});
