/** `orch serve` as an operator of the host meets it: signals, files and their modes. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { holdDataDirectory } from '../../src/identity/data-directory.js';
import { generateKey, privateKeyPem } from '../../src/identity/private-key.js';
import { ORCH, Sandbox, until } from '../support/orch.js';

let sandbox: Sandbox;
afterEach(() => sandbox.dispose());

const ready = async (...args: readonly string[]) => {
  sandbox = new Sandbox();
  await sandbox.orch(['operator', 'init']);
  return sandbox.serve(args);
};

const PRIVATE_PORTS = ['--agent-port', '0', '--api-port', '0', '--agent-host', '127.0.0.1'];

/** No system has an account of that number. */
const NAMELESS = 54_321;

/** Only root can become another user, who may have no access to this repository or to Node. */
const canBeNameless = (): boolean =>
  process.geteuid?.() === 0 && spawnSync(process.execPath, [ORCH, '--version'], { uid: NAMELESS }).status === 0;

/** PEM texts that are no key of a certificate that is made apart from them. */
const KEYS = {
  p256: () => privateKeyPem(generateKey('p256')),
  ed25519: () => privateKeyPem(generateKey('ed25519')),
  encrypted: () => privateKeyPem(generateKey('p256'), 'passphrase'),
  junk: () => 'nothing of the kind\n',
};

describe('orch serve', () => {
  it('tells its addresses in its first line, and keeps everything it makes to itself', async () => {
    const { server, ready: info } = await ready();
    const first = JSON.parse(server.output().split('\n')[0] as string) as Record<string, unknown>;
    expect(first).toMatchObject({ ...info, msg: 'the orchestrator is ready' });
    const data = sandbox.path('serve');
    expect(statSync(data).mode & 0o777).toBe(0o700);
    const open = readdirSync(data).filter((name) => (statSync(join(data, name)).mode & 0o077) !== 0);
    expect(open).toEqual([]);
    expect(await server.stop('SIGINT')).toBe(0);
  });

  it('reads its configuration again on SIGHUP, and keeps the old one when the new one is broken', async () => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    const config = sandbox.path('serve.yaml');
    writeFileSync(config, 'removal_guard: 10\n');
    const { server } = await sandbox.serve(['--config', config]);
    writeFileSync(config, 'removal_guard: 5\nagent_host: 127.0.0.2\n');
    server.process.kill('SIGHUP');
    await until(() => server.output().includes('"changed":["removal_guard"]'), 'the change is taken over');
    writeFileSync(config, 'removal_guard: lots\n');
    server.process.kill('SIGHUP');
    await until(() => server.output().includes('the old one stays'), 'the broken one is refused');
    expect(server.output()).toContain('serve.yaml:1:1');
    expect(await server.stop()).toBe(0);
  });

  it('lets its metrics token read the metrics and nothing else, as long as the configuration names it', async () => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    const config = sandbox.path('serve.yaml');
    writeFileSync(config, 'metrics_token: first-token-of-a-scraper\n');
    const { server, ready: info } = await sandbox.serve(['--config', config]);
    const statusOf = (path: string, token: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const url = `${info.api_url}/api/v1${path}`;
        const options = { headers: { authorization: `Bearer ${token}` }, rejectUnauthorized: false };
        get(url, options, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
      });
    expect(await statusOf('/metrics', 'first-token-of-a-scraper')).toBe(200);
    expect(await statusOf('/metrics', 'another-token-of-a-scraper')).toBe(401);
    expect(await statusOf('/agents', 'first-token-of-a-scraper')).toBe(401);
    writeFileSync(config, 'metrics_token: second-token-of-a-scraper\n');
    server.process.kill('SIGHUP');
    await until(
      async () => (await statusOf('/metrics', 'second-token-of-a-scraper')) === 200,
      'the new token is valid',
    );
    expect(await statusOf('/metrics', 'first-token-of-a-scraper')).toBe(401);
    expect(await server.stop()).toBe(0);
  });

  it('waits for a command that holds its directory, and starts when that is done', async () => {
    const { server } = await ready();
    expect(await server.stop()).toBe(0);
    const data = sandbox.path('serve');
    const held = holdDataDirectory(data, 'orch serve backup');
    const impatient = sandbox.start(['serve', ...PRIVATE_PORTS, '--data-dir', data]);
    const isWaiting = (one: typeof impatient) => one.output().includes('"program":"orch serve backup"');
    await until(() => isWaiting(impatient), 'a start waits');
    expect(await impatient.stop()).toBe(0);

    const patient = sandbox.start(['serve', ...PRIVATE_PORTS, '--data-dir', data]);
    await until(() => isWaiting(patient), 'another start waits');
    const backup = await sandbox.orch(['serve', 'backup', sandbox.path('b.db'), '--data-dir', data]);
    expect(backup.stderr).toContain(`in use by process ${process.pid} (orch serve backup)`);
    held.release();
    await until(() => patient.output().includes('the orchestrator is ready'), 'it starts');
    expect(await patient.stop()).toBe(0);
  });

  it('ends itself with status 1 when its stop is held up, and keeps what it acknowledged', {
    timeout: 60_000,
  }, async () => {
    sandbox = new Sandbox();
    const holdUp = sandbox.path('hold-up.mjs');
    writeFileSync(
      holdUp,
      "import { Server } from 'node:net';\nServer.prototype.close = function () { return this; };\n",
    );
    await sandbox.orch(['operator', 'init']);
    const { server, ready: info } = await sandbox.serve([], { NODE_OPTIONS: `--import=${holdUp}` });
    const profile = ['--url', info.api_url, '--tls-fingerprint', info.tls_fingerprint];
    await sandbox.orch(['profile', 'create', 'test', ...profile]);
    await sandbox.orch(['profile', 'use', 'test']);
    expect(await sandbox.orch(['audit', 'retention', 'set', '400'])).toMatchObject({ status: 0 });
    expect(await server.stop()).toBe(1);
    expect(server.output()).toContain('the orchestrator did not stop in time and is cut off');

    const again = await sandbox.serve(['--api-port', new URL(info.api_url).port]);
    expect((await sandbox.orch(['audit', 'retention'])).stdout).toContain('400');
    expect(await sandbox.orch(['audit', 'verify'])).toMatchObject({ status: 0 });
    expect(await again.server.stop()).toBe(0);
  });

  it('ends, and leaves its directory free, when the ready file cannot be written', async () => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    const file = sandbox.path('missing', 'ready.json');
    const data = ['--data-dir', sandbox.path('other')];
    const { status, stderr } = await sandbox.orch(['serve', ...PRIVATE_PORTS, ...data, '--ready-file', file]);
    expect(status).toBe(1);
    expect(stderr).toContain(`cannot write the ready file ${file}`);
    expect(readdirSync(sandbox.path('other'))).not.toContain('lock');
  });

  it.runIf(process.platform === 'linux')(
    'takes the directory of one that was killed and not reaped (needs Linux)',
    async () => {
      sandbox = new Sandbox();
      await sandbox.orch(['operator', 'init']);
      const data = ['--data-dir', sandbox.path('serve')];
      const file = sandbox.path('unwaited.json');
      const command = [process.execPath, ORCH, 'serve', ...PRIVATE_PORTS, ...data, '--ready-file', file];
      // The shell makes itself a program that never asks for the status of its child.
      const parent = spawn('sh', ['-c', '"$@" & exec sleep 600', 'sh', ...command], {
        env: { ...sandbox.env, ...sandbox.storeOf(['serve', ...data]) },
        stdio: 'ignore',
      });
      try {
        await until(() => existsSync(file), 'it is ready');
        const { pid } = JSON.parse(readFileSync(file, 'utf8')) as { pid: number };
        process.kill(pid, 'SIGKILL');
        const isOver = () => /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
        await until(() => isOver() && readdirSync(`/proc/${pid}/task`).length === 1, 'it is over');
        const { server } = await sandbox.serve();
        expect(await server.stop()).toBe(0);
      } finally {
        parent.kill('SIGKILL');
      }
    },
  );

  it.runIf(canBeNameless())(
    'takes the key of a user who has no name as that of admin (needs root, and Node and orch where all may run them)',
    async () => {
      sandbox = new Sandbox();
      await sandbox.orch(['operator', 'init']);
      execFileSync('chown', ['-R', String(NAMELESS), sandbox.root]);
      const args = [ORCH, 'serve', ...PRIVATE_PORTS, '--data-dir', sandbox.path('serve')];
      const child = spawn(process.execPath, args, { env: sandbox.env, cwd: sandbox.root, uid: NAMELESS });
      const ended = new Promise((resolve) => child.on('close', resolve));
      let output = '';
      child.stderr.on('data', (chunk) => {
        output += chunk;
        if (output.includes('first operator') && !child.killed) child.kill();
      });
      expect(await ended).toBe(0);
      expect(output).toContain('"username":"admin"');
    },
  );

  it('says what to do when there is no operator, and the own key has a passphrase', async () => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    writeFileSync(sandbox.path('config', 'orch', 'operator.key'), privateKeyPem(generateKey(), 'passphrase'));
    const { status, stderr } = await sandbox.orch(['serve', ...PRIVATE_PORTS, '--data-dir', sandbox.path('serve')]);
    expect(status).toBe(1);
    expect(stderr).toContain('has a passphrase');
    expect(stderr).toContain('--bootstrap-key');
  });

  it.each([
    ['of another certificate', 'p256', 'the key is not that of the certificate'],
    ['of another kind', 'ed25519', 'the key is not that of the certificate'],
    ['with a passphrase', 'encrypted', 'the key is encrypted with a passphrase'],
    ['that is none', 'junk', 'the key cannot be read'],
  ])('does not start with a TLS key %s', async (_, given, reason) => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    const cert = sandbox.path('api.crt');
    const key = sandbox.path('api.key');
    writeFileSync(cert, selfSignedP256({ privateKey: generateKey('p256'), dnsNames: ['localhost'], addresses: [] }));
    writeFileSync(key, KEYS[given as keyof typeof KEYS]());
    const { status, stderr } = await sandbox.orch([
      'serve',
      ...PRIVATE_PORTS,
      '--data-dir',
      sandbox.path('serve'),
      '--tls-cert',
      cert,
      '--tls-key',
      key,
    ]);
    expect(status).toBe(1);
    expect(stderr).toContain(`cannot use tls_cert ${cert} with tls_key ${key}: ${reason}`);
  });

  it('prints the schema of its configuration', async () => {
    sandbox = new Sandbox();
    const { status, stdout } = await sandbox.orch(['serve', '--config-schema']);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      additionalProperties: false,
      properties: { api_port: { default: 4748 } },
    });
  });
});
