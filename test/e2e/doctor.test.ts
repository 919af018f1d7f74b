/** `orch doctor` beside real programs: each thing is broken once. */
import { spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { DoctorCheck } from '../../src/programs/doctor-check.js';
import { ORCH, type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { tinyDisk } from '../support/tiny-disk.js';

const sandbox = new Sandbox();
const places = {
  ORCH_SERVE_DATA_DIR: sandbox.path('serve'),
  ORCH_AGENT_DATA_DIR: sandbox.path('agent'),
  ORCH_AGENT_CONFIG: sandbox.path('agent.yaml'),
};
afterAll(() => sandbox.dispose());

interface Examined {
  readonly status: number | null;
  readonly checks: readonly DoctorCheck[];
  /** Returns the first check of that name that is not ok, else the first one. */
  readonly of: (name: string) => DoctorCheck | undefined;
}

async function doctor(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Examined> {
  const { status, stdout, stderr } = await sandbox.orch(['doctor', ...args, '-o', 'json'], {
    env: { ...places, ...env },
  });
  if (stdout === '') throw new Error(stderr);
  const checks = JSON.parse(stdout) as DoctorCheck[];
  const of = (name: string) => {
    const named = checks.filter((check) => check.name === name);
    return named.find(({ state }) => state !== 'ok') ?? named[0];
  };
  return { status, checks, of };
}

const problems = ({ checks }: Examined): readonly string[] =>
  checks.filter(({ state }) => state === 'problem').map(({ name }) => name);

/** Changes a file for the length of a test. */
function withFile(path: string, change: () => void): void {
  const kept = `${path}.kept`;
  copyFileSync(path, kept);
  const { mode } = statSync(path);
  onTestFinished(() => {
    copyFileSync(kept, path);
    chmodSync(path, mode & 0o777);
    rmSync(kept);
  });
  change();
}

describe('a first-time user', () => {
  it('names the next step, and writes nothing', async () => {
    const empty = new Sandbox();
    onTestFinished(() => empty.dispose());
    const env = { ORCH_SERVE_DATA_DIR: empty.path('none'), ORCH_AGENT_DATA_DIR: empty.path('none') };
    const { status, stdout } = await empty.orch(['doctor'], { env });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ok +node +Node\.js \d+/);
    for (const next of ['orch operator init', 'orch profile create', 'orch serve install', 'orch agent install']) {
      expect(stdout).toContain(next);
    }
    expect(stdout).toMatch(/\nNo problems\.\n$/);
    expect(existsSync(empty.path('config'))).toBe(false);
    expect(existsSync(empty.path('state'))).toBe(false);
  });
});

describe('beside a running orchestrator and agent', () => {
  const key = sandbox.path('config', 'orch', 'operator.key');
  const config = sandbox.path('config', 'orch', 'config.yaml');
  let ready: Ready;
  let server: Running;
  let agent: Running;

  const startAgent = () => {
    const trust = ['--orchestrator-key', ready.public_key];
    return sandbox.start(['agent', 'connect', ready.agent_address, ...trust], {
      ORCH_AGENT_DATA_DIR: places.ORCH_AGENT_DATA_DIR,
      ORCH_AGENT_CONFIG: places.ORCH_AGENT_CONFIG,
    });
  };
  const agents = () => sandbox.json<Agent[]>(['agents', 'list']);

  beforeAll(async () => {
    writeFileSync(places.ORCH_AGENT_CONFIG, 'remote_terminal: {enabled: true}\n');
    await sandbox.orch(['operator', 'init']);
    ({ server, ready } = await sandbox.serve());
    const profile = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
    await sandbox.orch(['profile', 'create', 'test', ...profile]);
    agent = startAgent();
    await until(async () => (await agents()).length === 1, 'the agent waits');
  });

  it('says that the agent waits for approval, and how to approve it', async () => {
    const [waiting] = await agents();
    const found = await doctor();
    expect(found.of('agent link')).toMatchObject({ state: 'warning', fix: `orch agents approve ${waiting?.node_id}` });
    expect(found.status).toBe(0);
    await sandbox.orch(['agents', 'approve', waiting?.node_id ?? '', '--name', 'web-01', '--yes']);
    await until(async () => (await doctor()).of('agent link')?.state === 'ok', 'the agent is connected');
    const module = sandbox.path('site.orch.yaml');
    const resource = `{file-unix: {path: ${sandbox.path('motd')}, content: "hello"}}`;
    writeFileSync(module, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: ${resource}\n`);
    expect(await sandbox.orch(['apply', 'web-01', '-f', module, '--yes'])).toMatchObject({ status: 0 });
  });

  it('finds no problem when there is none, and leaves the session of other commands as it is', async () => {
    const sessions = sandbox.path('state', 'orch', 'tokens', 'profile-test.json');
    const before = readFileSync(sessions, 'utf8');
    const found = await doctor();
    expect(problems(found)).toEqual([]);
    expect(found.status).toBe(0);
    expect(found.of('login')).toMatchObject({
      state: 'ok',
      found: expect.stringMatching(/^your key belongs to .+ \(admin\)$/),
    });
    expect(found.of('clock')?.state).toBe('ok');
    expect(found.of('version')?.state).toBe('ok');
    const settings = found.of('agent settings')?.found;
    expect(settings).toContain(
      'terminals are on; orch forward may reach nothing, and orch ssh-proxy nothing; orch cp may copy nothing',
    );
    expect(found.of('agent version')?.state).toBe('ok');
    expect(found.of('serve store')?.found).toContain(`process ${ready.pid} uses it`);
    expect(readFileSync(sessions, 'utf8')).toBe(before);
  });

  it.each<readonly [what: string, name: string, found: RegExp, fix: RegExp, change: () => void]>([
    ['a key that others may read', 'key', /has mode 0644/, /^chmod 600 /, () => chmodSync(key, 0o644)],
    [
      'a key of another kind',
      'key',
      /not an Ed25519 key/,
      /operator init/,
      () => {
        const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
        writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
      },
    ],
    ['an empty key', 'key', /is empty/, /operator init/, () => writeFileSync(key, '')],
    ['a missing key', 'key', /there is no operator's key/, /orch operator init/, () => rmSync(key)],
    [
      'a key that the orchestrator does not know',
      'login',
      /does not know your key/,
      /orch operator add/,
      () => {
        const { privateKey } = generateKeyPairSync('ed25519');
        writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
      },
    ],
    [
      'a broken profile file',
      'profiles',
      /config\.yaml:1:/,
      /config\.yaml, or move it away/,
      () => writeFileSync(config, 'profiles: ['),
    ],
    [
      'a profile that does not exist',
      'profile',
      /names the profile "gone"/,
      /^orch profile use NAME/,
      () => {
        writeFileSync(config, readFileSync(config, 'utf8').replace('default: test', 'default: gone'));
      },
    ],
    [
      'another certificate than the pinned one',
      'certificate',
      /instead of the one with/,
      /orch profile update test/,
      () => {
        const text = readFileSync(config, 'utf8');
        writeFileSync(config, text.replace(/(tls_fingerprint: )\S+/, `$1${'ab'.repeat(32)}`));
      },
    ],
    [
      'a certificate that is not pinned yet',
      'certificate',
      /is not known/,
      /orch profile update test --tls-fingerprint/,
      () => {
        writeFileSync(config, readFileSync(config, 'utf8').replace(/ *tls_fingerprint: \S+\n/, ''));
      },
    ],
  ])('finds %s', async (_, name, text, fix, change) => {
    withFile(name === 'key' || name === 'login' ? key : config, change);
    const found = await doctor();
    expect(found.of(name)).toMatchObject({
      state: 'problem',
      found: expect.stringMatching(text),
      fix: expect.stringMatching(fix),
    });
    expect(problems(found)).toEqual([name]);
    expect(found.status).toBe(1);
    // The other checks go on.
    expect(found.of('serve store')?.state).toBe('ok');
  });

  it('tries no login with a key that asks for its passphrase', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' });
    withFile(key, () => writeFileSync(key, pem));
    const found = await doctor();
    expect(found.of('key')).toMatchObject({
      state: 'ok',
      found: expect.stringContaining('encrypted with a passphrase'),
    });
    expect(found.of('login')).toMatchObject({ state: 'note', fix: 'try it: orch login' });
  });

  it.each([
    ['a port where nothing listens', 'https://127.0.0.1:1', /nothing listens there/],
    ['a name that does not resolve', 'https://orch.invalid:4748', /no such host|could not be looked up/],
  ])('tells %s apart', async (_, url, text) => {
    const found = await doctor(['--url', url]);
    expect(found.of('orchestrator')).toMatchObject({ state: 'problem', found: expect.stringMatching(text) });
  });

  it('waits a limited time for a server that says nothing', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const found = await doctor(['--url', `https://127.0.0.1:${port}`]);
    expect(found.of('orchestrator')).toMatchObject({
      state: 'problem',
      found: expect.stringContaining('did not answer within 10 seconds'),
    });
  });

  it('finds clocks that differ, and an orchestrator of another release', async () => {
    const other = createHttpServer((_, response) => {
      const body = { status: 'ok', protocol_version: 2, public_key: ready.public_key, version: '0.0.9', reasons: [] };
      const date = new Date(Date.now() + 600_000).toUTCString();
      response.writeHead(200, { 'content-type': 'application/json', date }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const found = await doctor(['--url', `http://127.0.0.1:${port}`]);
    expect(found.of('clock')).toMatchObject({
      state: 'warning',
      found: expect.stringMatching(/^(599|600|601) s behind/),
    });
    expect(found.of('clock')?.fix).toContain('timedatectl');
    expect(found.of('version')).toMatchObject({ found: expect.stringContaining('the orchestrator 0.0.9') });
  });

  it('finds what is wrong with the files of the agent', async () => {
    await agent.stop();
    const at = (name: string) => join(places.ORCH_AGENT_DATA_DIR, name);
    expect((await doctor()).of('agent link')).toMatchObject({
      state: 'note',
      found: expect.stringContaining('does not run'),
    });
    chmodSync(at('identity.key'), 0o644);
    chmodSync(at(''), 0o755);
    const journal = readFileSync(at('journal'));
    writeFileSync(at('journal'), Buffer.concat([Buffer.alloc(40, 7), journal]));
    writeFileSync(places.ORCH_AGENT_CONFIG, 'remote_terminal: {enabled: maybe}\n');
    const found = await doctor();
    expect(problems(found)).toEqual(['agent settings', 'agent data', 'agent data', 'agent key', 'agent journal']);
    expect(found.of('agent settings')?.found).toContain('agent.yaml:1:');
    expect(found.checks.filter(({ name }) => name === 'agent data').map(({ fix }) => fix)).toEqual([
      `chmod 700 ${places.ORCH_AGENT_DATA_DIR}`,
      `chmod 600 ${at('identity.key')}`,
    ]);
    expect(found.of('agent journal')?.fix).toContain('check the disk');
    chmodSync(at('identity.key'), 0o600);
    chmodSync(at(''), 0o700);
    writeFileSync(at('journal'), journal);
    writeFileSync(places.ORCH_AGENT_CONFIG, '');
    expect(problems(await doctor())).toEqual([]);
  });

  it('finds what is wrong with the files of a stopped orchestrator', async () => {
    await server.stop();
    const at = (name: string) => join(places.ORCH_SERVE_DATA_DIR, name);
    const store = at('orch.db');
    const whole = readFileSync(store);
    expect((await doctor()).of('serve store')).toMatchObject({ state: 'ok', found: expect.stringContaining('whole') });
    const size = whole.readUInt16BE(16);
    const damages: readonly (readonly [RegExp, () => void])[] = [
      [/is cut off: it has \d+ bytes of \d+$/, () => truncateSync(store, whole.length - size)],
      [/is no database/, () => writeFileSync(store, 'hello')],
      [/is damaged: /, () => writeFileSync(store, Buffer.from(whole).fill(0xa5, size * 3, size * 4))],
    ];
    for (const [text, damage] of damages) {
      damage();
      const found = (await doctor()).of('serve store');
      expect(found).toMatchObject({
        state: 'problem',
        found: expect.stringMatching(text),
        fix: expect.stringContaining('orch serve restore'),
      });
      writeFileSync(store, whole);
    }
    const later = Buffer.from(whole);
    later.writeUInt32BE(99, 60);
    writeFileSync(store, later);
    expect((await doctor()).of('serve store')).toMatchObject({
      state: 'problem',
      found: expect.stringContaining('has schema 99'),
    });
    const earlier = Buffer.from(whole);
    earlier.writeUInt32BE(13, 60);
    writeFileSync(store, earlier);
    expect((await doctor()).of('serve store')).toMatchObject({
      state: 'note',
      found: expect.stringContaining('migrates it'),
    });
    writeFileSync(store, whole);
    withFile(at('secrets.key'), () => rmSync(at('secrets.key')));
    expect((await doctor()).of('serve keys')).toMatchObject({
      state: 'problem',
      found: expect.stringContaining('secrets.key'),
    });
    expect(readFileSync(store).equals(whole)).toBe(true);
    expect(existsSync(at('orch.db-wal'))).toBe(false);
  });

  it('goes on with settings that are not valid', async () => {
    const file = sandbox.path('orchestrator.yaml');
    writeFileSync(file, 'api_prot: 4748\n');
    const found = await doctor([], { ORCH_SERVE_CONFIG: file });
    expect(found.of('serve settings')).toMatchObject({
      state: 'problem',
      found: expect.stringContaining('unknown key "api_prot"'),
    });
    expect(found.of('serve store')?.state).toBe('ok');
  });

  it('finds a disk that is nearly full', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const found = await doctor([], { ORCH_SERVE_DATA_DIR: disk.path });
    expect(found.of('serve disk')).toMatchObject({ state: 'problem', fix: 'free some space on its file system' });
  });
});

const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)(`for another user, and with another /opt${isRoot ? '' : ' (skipped: needs root)'}`, () => {
  it('says that only root sees the data of services', async () => {
    chmodSync(sandbox.root, 0o755);
    const env = { PATH: process.env.PATH, HOME: '/nonexistent', ...places };
    const child = spawn(process.execPath, [ORCH, 'doctor', '-o', 'json'], { env, uid: 65534, gid: 65534, cwd: '/' });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
    const closed = (JSON.parse(output) as DoctorCheck[]).filter(({ fix }) => fix === 'sudo orch doctor');
    expect(closed.map(({ name }) => name)).toEqual(['agent data', 'serve data']);
  });

  it('finds a link to a release that is gone', async (context) => {
    const script = `mount -t tmpfs tmpfs /opt && mkdir /opt/orch && ln -s releases/gone /opt/orch/current && "$0" "$1" doctor`;
    const run = spawnSync('unshare', ['-m', 'sh', '-c', script, process.execPath, ORCH], {
      encoding: 'utf8',
      env: { ...sandbox.env, ...places },
    });
    if (/unshare|mount/.test(run.stderr)) return context.skip(run.stderr);
    expect(run.status).toBe(1);
    expect(run.stdout).toContain('/opt/orch/current links to releases/gone, which does not exist');
  });
});
