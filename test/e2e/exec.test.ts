/** `orch exec` with the real three programs: streams, status, input, time, signals, who may, and what is kept of it. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ApiClient } from '../../src/client/api-client.js';
import { resolveConnection } from '../../src/client/connection.js';
import { connect } from '../../src/client/http-api-client.js';
import { openSigner } from '../../src/client/login.js';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { TerminalDetail, TerminalSession } from '../../src/contract/terminal.js';
import { isFault } from '../../src/kernel/fault.js';
import { itInLong } from '../support/exhaustive.js';
import { type Finished, type Ready, Sandbox, until } from '../support/orch.js';
import { refuseRuntimeWarnings } from '../support/runtime-warnings.js';
import { SlowWay } from '../support/slow-way.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const sandbox = new Sandbox();

async function startAgent(name: string, settings: string, address: string, publicKey: string): Promise<void> {
  const config = sandbox.path(`${name}.yaml`);
  writeFileSync(config, settings);
  const key = ['--orchestrator-key', publicKey, '--config', config, '--hostname', name];
  sandbox.start(['agent', 'connect', address, ...key, '--data-dir', sandbox.path(name)]);
  let id = '';
  await until(async () => {
    const agents = await sandbox.json<Agent[]>(['agents', 'list', '--status', 'pending']);
    id = agents[0]?.node_id ?? '';
    return id !== '';
  }, `${name} waits`);
  await sandbox.json(['agents', 'approve', id, '--name', name, '--yes']);
  await sandbox.json(['agents', 'tag', name, name.startsWith('web') ? 'role=web' : 'role=db']);
}

let ready: Ready;

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ ready } = await sandbox.serve());
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  for (const name of ['web-01', 'web-02', 'db-01']) {
    const enabled = name !== 'db-01';
    await startAgent(name, `remote_terminal: {enabled: ${enabled}}\n`, ready.agent_address, ready.public_key);
  }
  await until(
    async () => (await sandbox.json<Agent[]>(['agents', 'list'])).every(({ connected }) => connected),
    'all are connected',
  );
});
afterAll(() => sandbox.dispose());

const exec = (args: readonly string[], options: { readonly input?: string } = {}): Promise<Finished> =>
  sandbox.orch(['exec', ...args], options);

/** A run in the background, whose signals are the test's. */
function start(args: readonly string[]): { child: ChildProcess; out: () => string; ended: Promise<Finished> } {
  const child = spawn(process.execPath, [ORCH, 'exec', ...args], {
    env: sandbox.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  const ended = new Promise<Finished>((resolve) => child.on('close', (status) => resolve({ status, stdout, stderr })));
  onTestFinished(() => refuseRuntimeWarnings(stderr));
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  });
  return { child, out: () => stdout, ended };
}

/** The library of the command line, for what takes hundreds of requests at the same time. */
function openApi(): ApiClient {
  const connection = resolveConnection({
    flags: { url: ready.api_url, tlsFingerprint: ready.tls_fingerprint },
    env: sandbox.env,
    profiles: { path: '/nowhere', standard: null, byName: {} },
  });
  const clock = { now: () => Date.now(), monotonic: () => performance.now() };
  const signer = async () => openSigner(connection.key);
  const api = connect({ connection, signer, clock, newId: randomUUID, warn: () => {} });
  onTestFinished(() => api.close());
  return api;
}

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);
const pidIn = (text: string): number => Number(/^pid (\d+)$/m.exec(text)?.[1] ?? Number.NaN);

const newest = async (): Promise<TerminalSession> => {
  const [first] = await sandbox.json<TerminalSession[]>(['term', 'list', '--all', '--kind', 'exec']);
  if (first === undefined) throw new Error('there is a session');
  return first;
};

describe('a command on one agent', () => {
  it('has its streams apart, and its own status', async () => {
    const ran = await exec(['web-01', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    expect(ran).toEqual({ status: 7, stdout: 'out\n', stderr: 'err\n' });
  });

  it('that is not there says so on standard error alone', async () => {
    const ran = await exec(['web-01', '--', '/no/such/program']);
    expect(ran).toMatchObject({ status: 127, stdout: '' });
    expect(ran.stderr).toMatch(/this agent has no program "\/no\/such\/program"/);
    const [body] = JSON.parse(
      `[${(await exec(['web-01', 'web-02', '-o', 'json', '--', '/etc'])).stdout.split('\n')[0]}]`,
    );
    expect(body).toMatchObject({ exit_status: 126, error: { code: 'command_not_executable' } });
  });

  it('that leaves a process with its output behind says so, and waits for it with --wait', async () => {
    const leaving = (pause: string) => ['sh', '-c', `(sleep ${pause}; echo late) & echo first; exit 3`];
    const cut = await exec(['web-01', '--', ...leaving('4')]);
    expect(cut).toMatchObject({ status: 3, stdout: 'first\n' });
    expect(cut.stderr).toMatch(/web-01: a process that the command left behind has its output open.*--wait/);
    const told = await exec(['web-01', '-o', 'json', '--', ...leaving('4')]);
    expect(JSON.parse(told.stdout)).toMatchObject({ stdout: 'first\n', complete: false, exit_status: 3 });

    const whole = await exec(['web-01', '--wait', '--', ...leaving('2.5')]);
    expect(whole).toEqual({ status: 3, stdout: 'first\nlate\n', stderr: '' });
    const daemon = 'setsid sleep 60 & echo up';
    const bounded = await exec(['web-01', '--wait', '--timeout', '1s', '-o', 'json', '--', 'sh', '-c', daemon]);
    expect(JSON.parse(bounded.stdout)).toMatchObject({ stdout: 'up\n', complete: false, exit_status: 124 });
    expect(await exec(['web-01', '-t', '--wait', '--', 'true'])).toMatchObject({ status: 64 });
  });

  it('takes more words than one message of the agent link may have', async () => {
    const words = Array.from({ length: 5_000 }, (_, index) => `word-${index}`);
    const ran = await exec(['web-01', '--', 'printf', '%s\\n', ...words]);
    expect(ran).toEqual({ status: 0, stdout: `${words.join('\n')}\n`, stderr: '' });
  });

  it('passes binary output, and the recording has its size and hashes', async () => {
    const kept = sandbox.path('dump');
    const ran = spawnSync(
      process.execPath,
      [ORCH, 'exec', 'web-01', '--', 'sh', '-c', `head -c 20000000 /dev/urandom | gzip | tee '${kept}'`],
      { env: sandbox.env, maxBuffer: 64 * 1024 * 1024 },
    );
    expect(ran.status).toBe(0);
    expect(ran.stdout.equals(readFileSync(kept))).toBe(true);
    const { session_id: id, output_bytes: bytes } = await newest();
    expect(bytes).toBe(ran.stdout.length);
    const cast = await sandbox.orch(['term', 'transcript', id]);
    expect(cast.status).toBe(0);
    expect(cast.stdout.length).toBeLessThan(1_000_000);
    const { stdout } = await sandbox.orch(['term', 'transcript', id, '--format', 'txt']);
    expect(stdout).toMatch(/^\[\d+ bytes of output are not kept\]$/m);
    const found = await sandbox.orch(['term', 'grep', 'bytes of output are not kept']);
    expect(found).toMatchObject({ status: 0, stderr: '' });
  });

  it('gets language and colours of this end, and nothing else of its environment', async () => {
    const given = { LANG: 'POSIX', COLORTERM: 'truecolor', LC_ALL: '/tmp', EDITOR: 'vi', TERM: 'xterm' };
    const ran = await sandbox.orch(['exec', 'web-01', '--', 'env'], { env: given });
    expect(ran.stdout).toMatch(/^LANG=POSIX$/m);
    expect(ran.stdout).toMatch(/^COLORTERM=truecolor$/m);
    expect(ran.stdout).not.toMatch(/^(?:LC_ALL|EDITOR|TERM)=/m);
  });

  it('gets its words as they are, and no terminal', async () => {
    const script = 'printf "<%s>" "$@"; test -t 0 -o -t 1 && echo terminal';
    const ran = await exec(['web-01', '--', 'sh', '-c', script, 'sh', 'a b', '$HOME', '--', "it's"]);
    expect(ran.stdout).toBe("<a b><$HOME><--><it's>");
  });

  it('reads all of standard input, to its end', async () => {
    const input = randomBytes(1_500_000).toString('base64');
    const ran = await exec(['web-01', '--', 'sha256sum'], { input });
    const local = spawn('sha256sum', { stdio: ['pipe', 'pipe', 'inherit'] });
    let expected = '';
    local.stdout.on('data', (chunk: Buffer) => {
      expected += chunk;
    });
    local.stdin.end(input);
    await new Promise((resolve) => local.on('close', resolve));
    expect(ran).toEqual({ status: 0, stdout: expected, stderr: '' });
  });

  it('gives back every byte of a lot of output', async () => {
    const ran = await exec(['web-01', '--', 'sh', '-c', 'seq 1 400000; echo end >&2']);
    expect(ran.status).toBe(0);
    expect(ran.stderr).toBe('end\n');
    const lines = ran.stdout.trimEnd().split('\n');
    expect(lines.length).toBe(400_000);
    expect(lines.every((line, index) => line === String(index + 1))).toBe(true);
  });

  it.each([
    ['a signal', ['web-01', '--', 'sh', '-c', 'kill -TERM $$'], 143],
    ['a program that is not there', ['web-01', '--', '/no/such/program'], 127],
    ['a program that is not there, by its name', ['web-01', '--', 'no-such-program'], 127],
    ['a file that cannot be executed', ['web-01', '--', '/etc/passwd'], 126],
    ['a program that is not there on several agents', ['web-01', 'web-02', '--', '/no/such/program'], 3],
    ['an agent that is not there', ['web-09', '--', 'true'], 255],
  ])('%s', async (_what, args, status) => {
    expect((await exec(args)).status).toBe(status);
  });

  it('is ended when its time is over, with what it has started', async () => {
    const ran = await exec(['web-01', '--timeout', '1s', '--', 'sh', '-c', 'echo pid $$; sleep 300; echo never']);
    expect(ran.status).toBe(124);
    expect(ran.stdout).not.toContain('never');
    expect(ran.stderr).toContain('timed out');
    await until(() => !isAlive(pidIn(ran.stdout)), 'it is gone');
  });

  it.each<['SIGINT' | 'SIGTERM', number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('%s ends it too', async (signal, status) => {
    const { child, out, ended } = start(['web-01', '--', 'sh', '-c', 'echo pid $$; exec sleep 300']);
    await until(() => Number.isInteger(pidIn(out())), 'it runs');
    child.kill(signal);
    expect((await ended).status).toBe(status);
    await until(() => !isAlive(pidIn(out())), 'it is gone');
  });

  it('Ctrl-C twice kills one that ignores it', async () => {
    const { child, out, ended } = start([
      'web-01',
      '--',
      'sh',
      '-c',
      'trap "echo no" INT; echo pid $$; while :; do sleep 0.1; done',
    ]);
    await until(() => Number.isInteger(pidIn(out())), 'it runs');
    child.kill('SIGINT');
    await until(() => out().includes('no'), 'it has got the first');
    child.kill('SIGINT');
    expect((await ended).status).toBe(137);
    await until(() => !isAlive(pidIn(out())), 'it is gone');
  });

  it('ends when whoever read its output leaves', async () => {
    const script = `"${process.execPath}" "${ORCH}" exec web-01 -- sh -c 'echo pid $$; exec yes' | head -n 1`;
    const child = spawn('bash', ['-o', 'pipefail', '-c', script], {
      env: sandbox.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    let told = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      told += chunk;
    });
    const status = await new Promise((resolve) => child.on('close', resolve));
    expect([status, told]).toEqual([141, '']);
    await until(() => !isAlive(pidIn(text)), 'it is gone');
  });

  itInLong('ends half a minute after its client was killed, or is found to be gone', async () => {
    const way = await SlowWay.to(Number(new URL(ready.api_url).port), 0);
    onTestFinished(() => way.close());
    const pinned = ['--url', `https://127.0.0.1:${way.port}`, '--tls-fingerprint', ready.tls_fingerprint];
    const runs = [];
    for (const options of [[], pinned]) {
      const run = start([...options, 'web-01', '--', 'sh', '-c', 'echo pid $$; exec sleep 3600']);
      await until(() => pidIn(run.out()) > 0, 'it runs');
      runs.push({ ...run, pid: pidIn(run.out()), id: (await newest()).session_id });
    }
    const [killed] = runs;
    killed?.child.kill('SIGKILL');
    await killed?.ended;
    // The other client has lost its network.
    way.hold();
    for (const { pid, id } of runs) {
      await vi.waitUntil(() => !isAlive(pid), { timeout: 200_000, interval: 200 });
      expect(await sandbox.json<TerminalDetail>(['term', 'show', id])).toMatchObject({ status: 'closed' });
    }
  });

  it('is recorded and audited', async () => {
    await exec(['web-01', '--', 'echo', 'for the record']);
    await until(async () => (await newest()).recording === 'complete', 'its recording is closed');
    const session = await newest();
    expect(session).toMatchObject({
      status: 'closed',
      reason: 'exited',
      exit_code: 0,
      command: ['echo', 'for the record'],
    });
    const detail = await sandbox.json<TerminalDetail>(['term', 'show', session.session_id]);
    expect(detail.transcript_sha256).toMatch(/^[0-9a-f]{64}$/);
    const raw = await sandbox.orch(['api', 'GET', `/terminal/session/${session.session_id}/transcript`]);
    expect(raw.stdout).toContain('for the record');
    const { events } = await sandbox.json<{ events: AuditEvent[] }>(['audit', 'list', '--category', 'terminal']);
    const own = events.filter(({ metadata, target }) =>
      JSON.stringify([metadata, target]).includes(session.session_id),
    );
    expect(own.map(({ event_type }) => event_type)).toEqual(
      expect.arrayContaining(['terminal.opened', 'terminal.closed']),
    );
  });

  it('is refused where remote terminals are disabled', async () => {
    const ran = await exec(['db-01', '--', 'true', '-o', 'json']);
    expect(ran.status).toBe(255);
    expect(ran.stderr).toContain('remote_terminal');
    const { stderr } = await exec(['db-01', '-o', 'json', '--', 'true']);
    expect(JSON.parse(stderr)).toMatchObject({ code: 'terminal_disabled' });
  });

  it('can be closed by another', async () => {
    const { out, ended } = start(['web-01', '--', 'sh', '-c', 'echo pid $$; exec sleep 300']);
    await until(() => Number.isInteger(pidIn(out())), 'it runs');
    const [session] = await sandbox.json<TerminalSession[]>(['term', 'list']);
    expect(session).toMatchObject({ status: 'active', kind: 'exec', node_name: 'web-01' });
    expect(await sandbox.orch(['term', 'close', session?.session_id ?? '', '--yes'])).toMatchObject({ status: 0 });
    const ran = await ended;
    expect(ran.status).toBe(254);
    await until(() => !isAlive(pidIn(ran.stdout)), 'it is gone');
  });
});

describe('a command on several agents', () => {
  it('has the name of its agent before each line', async () => {
    const ran = await exec(['web-01', 'web-02', '--', 'sh', '-c', 'echo one; echo two >&2']);
    expect(ran.status).toBe(0);
    expect(ran.stdout.split('\n').sort()).toEqual(['', 'web-01 | one', 'web-02 | one']);
    expect(ran.stderr).toContain('web-01 | two\n');
    expect(ran.stderr).toContain('2 agents: 2 succeeded.');
  });

  it('by a selector, equal output together', async () => {
    const args = ['-l', 'role=web', '--group', '--', 'echo', 'same'];
    expect(await exec(args)).toMatchObject({ status: 64 });
    const ran = await exec(['--yes', ...args]);
    expect(ran).toMatchObject({ status: 0, stdout: 'web-01, web-02 (2 agents):\nsame\n' });
  });

  it('tells where it could not run', async () => {
    const ran = await exec(['web-01', 'db-01', '-o', 'json', '--', 'echo', 'hello']);
    expect(ran.status).toBe(3);
    const bodies = ran.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly name: string });
    expect(bodies.find(({ name }) => name === 'web-01')).toMatchObject({
      exit_code: 0,
      stdout: 'hello\n',
      error: null,
    });
    expect(bodies.find(({ name }) => name === 'db-01')).toMatchObject({ error: { code: 'terminal_disabled' } });
  });

  it('each with the same environment of its user, and none of the agent\u2019s secrets', async () => {
    const { stdout } = await exec(['web-01', '--', 'env']);
    expect(stdout).toMatch(/^PATH=/m);
    expect(stdout).not.toMatch(/^ORCH_(TOKEN|KEY|AGENT_TOKEN)=/m);
  });
});

describe('orch top', () => {
  it('shows the fleet once for a pipe', async () => {
    const ran = await sandbox.orch(['top']);
    expect(ran.status).toBe(0);
    expect(ran.stdout).toContain('3 agents: 3 up');
    expect(ran.stdout).toMatch(/^web-01 .*up/m);
  });
});

it('leaves the transcript of a command where the answer says it is', async () => {
  const { session_id } = await newest();
  await until(async () => {
    const { transcript_path } = await sandbox.json<TerminalDetail>(['term', 'show', session_id]);
    // It is compressed once it is closed.
    if (transcript_path?.endsWith('.cast.gz') !== true) return false;
    return existsSync(sandbox.path('serve', transcript_path));
  }, 'it is there');
});

describe('more commands than an agent runs at a time', () => {
  it('are refused, all but 200, until one of them is over', async () => {
    const api = openApi();
    const [agent] = await sandbox.json<Agent[]>(['agents', 'list', '--filter', 'role=web']);
    const params = { node_id: agent?.node_id ?? '' };
    const body = { command: ['sleep', '600'], stdin: false };
    const ask = (count: number) =>
      Promise.allSettled(Array.from({ length: count }, () => api.call('execOnAgent', { params, body })));
    // Not all at the same time: on a loaded machine some would not be answered in time.
    const answers = [];
    for (let batch = 0; batch < 7; batch += 1) answers.push(...(await ask(25)));
    answers.push(...(await ask(26)));
    const opened = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.session_id] : []));
    expect(opened).toHaveLength(200);
    const limit = 'this agent allows at most 200 running commands at a time';
    expect(answers.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'terminal_limit', message: expect.stringContaining(limit) as string },
    });

    const name = agent?.name ?? '';
    expect(await exec([name, '--', 'true'])).toEqual({
      status: 255,
      stdout: '',
      stderr: expect.stringContaining(limit) as string,
    });
    const others = await exec(['-l', 'role=web', '--yes', '--', 'echo', 'here']);
    expect(others).toMatchObject({ status: 3, stdout: expect.stringMatching(/^web-0\d \| here\n$/) as string });

    // A slow machine may not start one of them in time, and gives it up then.
    const close = (session_id: string) =>
      api.call('closeTerminal', { params: { session_id } }).catch((error: unknown) => {
        if (!isFault(error, 'terminal_over')) throw error;
      });
    const [first = '', ...rest] = opened;
    await close(first);
    await until(async () => (await exec([name, '--', 'true'])).status === 0, 'there is room again');
    for (const session_id of rest) await close(session_id);
    const running = await sandbox.json<TerminalSession[]>(['term', 'list', '--kind', 'exec']);
    expect(running).toEqual([]);
  });
});
