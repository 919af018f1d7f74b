/** Mistakes of people and attackers, once each, against real processes. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RunResult } from '../../src/contract/runs.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { loadKey } from '../../src/identity/private-key.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const site = sandbox.path('site');
let ready: Ready;
let agent: Running;
let node: string;

const connect = (dataDir: string) =>
  sandbox.start([
    'agent',
    'connect',
    ready.agent_address,
    '--orchestrator-key',
    ready.public_key,
    '--data-dir',
    dataDir,
  ]);
const agents = () => sandbox.json<Agent[]>(['agents', 'list']);

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ ready } = await sandbox.serve());
  await sandbox.orch(['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint]);
  agent = connect(sandbox.path('agent'));
  await until(async () => (await agents()).length === 1, 'the agent waits');
  node = (await agents())[0]?.node_id as string;
  await sandbox.json(['agents', 'approve', node, '--name', 'web-01', '--yes']);
  await until(async () => (await agents())[0]?.connected === true, 'the agent is connected');
  mkdirSync(site);
});

afterAll(() => sandbox.dispose());

/** Sends a request past the command line's own care. */
async function post(path: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const args = ['-sk', '-w', '\n%{http_code}', '-H', 'content-type: application/json', '-d', JSON.stringify(body)];
  const { stdout } = spawnSync('curl', [...args, `${ready.api_url}/api/v1${path}`], { encoding: 'utf8' });
  const at = stdout.lastIndexOf('\n');
  return { status: Number(stdout.slice(at + 1)), body: JSON.parse(stdout.slice(0, at)) as Record<string, unknown> };
}

describe('keys and logins', () => {
  it('refuses a key file that others can read, and says how to close it', async () => {
    const key = sandbox.path('open.key');
    cpSync(sandbox.path('config', 'orch', 'operator.key'), key);
    chmodSync(key, 0o644);
    const { status, stderr } = await sandbox.orch(['operator', 'whoami'], { env: { ORCH_KEY_FILE: key } });
    expect(status).toBe(1);
    expect(stderr).toContain('mode 0644');
    expect(stderr).toContain(`chmod 600 ${key}`);
  });

  it('refuses a wrong signature and a replayed one alike', async () => {
    const key = loadKey(sandbox.path('config', 'orch', 'operator.key'));
    const publicKey = publicKeyOfKeyObject(key);
    const challenge = async () =>
      Buffer.from((await post('/auth/challenge', { public_key: publicKey })).body.nonce as string, 'hex');
    const signature = signNonce(key, await challenge());
    expect((await post('/auth/verify', { public_key: publicKey, signature })).status).toBe(200);
    const refusal = { status: 401, body: { code: 'signature_verification_failed' } };
    expect(await post('/auth/verify', { public_key: publicKey, signature })).toMatchObject(refusal);
    const nonce = await challenge();
    expect(await post('/auth/verify', { public_key: publicKey, signature: '00'.repeat(64) })).toMatchObject(refusal);
    // A failed attempt leaves the nonce: whoever knows the public key must not spoil a login.
    const right = { public_key: publicKey, signature: signNonce(key, nonce) };
    expect((await post('/auth/verify', right)).status).toBe(200);
    expect(await post('/auth/verify', right)).toMatchObject(refusal);
  });
});

describe('agents', () => {
  it('keeps the first of two agents with one key, and reports the second', async () => {
    cpSync(sandbox.path('agent'), sandbox.path('copy'), { recursive: true });
    rmSync(sandbox.path('copy', 'lock'), { force: true });
    const copy = connect(sandbox.path('copy'));
    await until(() => copy.output().includes('same key'), 'the copy is refused');
    await copy.stop();
    const { events } = await sandbox.json<{ events: unknown[] }>([
      'audit',
      'list',
      '--type',
      'agent.duplicate_identity',
    ]);
    expect(events).toHaveLength(1);
    expect((await agents())[0]).toMatchObject({ node_id: node, connected: true });
  });

  it('takes an agent with a changed key for a stranger', async () => {
    await agent.stop();
    cpSync(sandbox.path('agent', 'identity.key'), sandbox.path('kept.key'));
    rmSync(sandbox.path('agent', 'identity.key'));
    const changed = connect(sandbox.path('agent'));
    await until(async () => (await agents()).some((one) => one.status === 'pending'), 'a stranger waits');
    await changed.stop();
    cpSync(sandbox.path('kept.key'), sandbox.path('agent', 'identity.key'));
    agent = connect(sandbox.path('agent'));
    await until(async () => (await agents()).some((one) => one.node_id === node && one.connected), 'it is back');
  });

  it('refuses an orchestrator that it cannot trust: at once when there never was another, else again and again', async () => {
    const wrong = sandbox.start(['agent', 'connect', ready.agent_address, '--data-dir', sandbox.path('pinned')]);
    expect(await wrong.stop('SIGCONT')).toBe(78);
    expect(wrong.output()).toContain('--orchestrator-key');
    mkdirSync(sandbox.path('pinned'), { recursive: true });
    const key = publicKeyOfKeyObject(loadKey(sandbox.path('config', 'orch', 'operator.key')));
    writeFileSync(sandbox.path('pinned', 'orchestrator.pub'), `${key}\n`, { mode: 0o600 });
    const pinned = sandbox.start(['agent', 'connect', ready.agent_address, '--data-dir', sandbox.path('pinned')]);
    await until(() => pinned.output().split('nothing is done for it').length > 2, 'it has dialled twice');
    expect(pinned.output()).toContain('orch agent repin');
    expect(await pinned.stop()).toBe(0);
    const given = ['--orchestrator-key', key, '--data-dir', sandbox.path('given')];
    const mistyped = sandbox.start(['agent', 'connect', ready.agent_address, ...given]);
    expect(await mistyped.stop('SIGCONT')).toBe(78);
    expect(mistyped.output()).toContain('nothing was pinned');
    const unit = sandbox.start(['agent', 'connect', ready.agent_address, ...given], { INVOCATION_ID: 'of-a-unit' });
    await until(() => unit.output().includes('nothing is done for it'), 'the service has met it');
    expect(await unit.stop()).toBe(0);
  });
});

describe('modules', () => {
  it('reports five mistakes at once, each with its place, here and on the server', async () => {
    const file = sandbox.path('five.orch.yaml');
    const lines = [
      'name: five',
      'supports:',
      '  - platfrom: linux',
      'resources:',
      '  - id: a',
      '    depends_on: [nowhere]',
      '    resource:',
      '      file-unix:',
      '        path: relative/path',
      '        mode: 0644',
      '        content: x',
      '        template: missing',
      '',
    ];
    writeFileSync(file, lines.join('\n'));
    const places = [/five\.orch\.yaml:3:\d+/, /:6:\d+/, /:9:\d+/, /:10:\d+/, /:12:\d+/];
    const local = await sandbox.orch(['module', 'validate', file]);
    expect(local.status).toBe(1);
    for (const place of places) expect(local.stdout + local.stderr).toMatch(place);
    const pushed = await sandbox.orch([
      'api',
      'POST',
      '/modules',
      '--data',
      JSON.stringify({ name: 'five', content: lines.join('\n') }),
    ]);
    expect(pushed.status).toBe(1);
    const problem = JSON.parse(pushed.stdout || pushed.stderr) as { code: string; errors: { line: number }[] };
    expect(problem.code).toBe('invalid_module');
    expect([...new Set(problem.errors.map((error) => error.line))]).toEqual([3, 6, 9, 10, 12]);
  });
});

describe('what is in the way on the machine', () => {
  const applyFile = async (name: string, path: string) => {
    writeFileSync(
      sandbox.path(`${name}.orch.yaml`),
      `name: ${name}\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: ${JSON.stringify(path)}, content: "new\\n"}}\n`,
    );
    expect(await sandbox.orch(['module', 'publish', sandbox.path(`${name}.orch.yaml`)])).toMatchObject({ status: 0 });
    const body = JSON.stringify({ modules: [name], allow_removals: 10 });
    const { stdout } = await sandbox.orch(['api', 'POST', `/agents/${node}/apply`, '--data', body]);
    return (JSON.parse(stdout) as RunResult).resources.find((resource) => resource.identity === path);
  };

  it('a file where a directory should be', async () => {
    writeFileSync(`${site}/file`, 'kept\n');
    expect(await applyFile('below', `${site}/file/x`)).toMatchObject({
      status: 'failed',
      error: { code: 'parent_missing' },
    });
    expect(readFileSync(`${site}/file`, 'utf8')).toBe('kept\n');
  });

  it('a symlink is replaced and its target left alone', async () => {
    writeFileSync(`${site}/target`, 'kept\n');
    symlinkSync('target', `${site}/link`);
    expect(await applyFile('link', `${site}/link`)).toMatchObject({ status: 'changed', error: null });
    expect(lstatSync(`${site}/link`).isFile()).toBe(true);
    expect(readFileSync(`${site}/target`, 'utf8')).toBe('kept\n');
  });

  it('a FIFO is a failure and hangs nothing', async () => {
    spawnSync('mkfifo', [`${site}/fifo`]);
    expect(await applyFile('fifo', `${site}/fifo`)).toMatchObject({ status: 'failed', error: { code: 'wrong_type' } });
    expect(lstatSync(`${site}/fifo`).isFIFO()).toBe(true);
  });

  it('a device is a failure', async () => {
    expect(await applyFile('device', '/dev/null')).toMatchObject({ status: 'failed', error: { code: 'wrong_type' } });
  });

  it.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)(
    'a read-only file system is a failure (skipped without root on Linux)',
    async () => {
      const mount = `${site}/read-only`;
      mkdirSync(mount);
      spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'orch-test', mount]);
      onTestFinished(() => void spawnSync('umount', [mount]));
      expect(await applyFile('readonly', `${mount}/file`)).toMatchObject({
        status: 'failed',
        error: { code: expect.stringMatching(/read_only|permission_denied/) },
      });
    },
  );

  it.skipIf(!existsSync('/sys/kernel'))(
    'a file system of the kernel is a failure (skipped without /sys/kernel)',
    async () => {
      expect(await applyFile('kernel', '/sys/kernel/orch-test')).toMatchObject({
        status: 'failed',
        error: { code: 'wrong_type', message: expect.stringContaining('files cannot be made in /sys/kernel') },
      });
    },
  );
});
