/** Own certificates of the API: when a renewal takes effect, who notices it, and the hook of the examples. */
import { spawnSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { freePort } from '../support/free-port.js';
import { itNeeding } from '../support/needing.js';
import { type Running, Sandbox, until } from '../support/orch.js';

const HOOK = fileURLToPath(new URL('../../examples/certificates/deploy-hook.sh', import.meta.url));
const it = itNeeding('openssl');
const sandbox = new Sandbox();
const tls = sandbox.path('tls');
let server: Running;
let port: number;

function openssl(...args: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', args, { cwd: tls, encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
}

/** Makes a certificate for localhost below the test's own authority, with a new key unless `key` names an older one. */
function issue(name: string, key = name): void {
  if (key === name)
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', `${name}.key`);
  openssl('req', '-new', '-key', `${key}.key`, '-subj', '/CN=localhost', '-out', `${name}.csr`);
  writeFileSync(`${tls}/names`, 'subjectAltName=DNS:localhost');
  const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'];
  openssl('x509', '-req', '-in', `${name}.csr`, ...authority, '-days', '1', '-extfile', 'names', '-out', `${name}.crt`);
}

const put = (name: string, key = name) => {
  copyFileSync(`${tls}/${name}.crt`, `${tls}/api.crt`);
  copyFileSync(`${tls}/${key}.key`, `${tls}/api.key`);
};

/** An open connection to the API. */
const connected = (): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => resolve(socket));
    socket.on('error', reject);
  });

/** Serial number of the certificate that the API shows to a new connection. */
async function served(): Promise<string> {
  const socket = await connected();
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

const start = async () => {
  const words = ['--api-port', String(port), '--tls-cert', `${tls}/api.crt`, '--tls-key', `${tls}/api.key`];
  const { server: started, ready } = await sandbox.serve(words);
  server = started;
  return ready;
};

beforeAll(async () => {
  mkdirSync(tls);
  port = await freePort();
  if (spawnSync('openssl', ['version']).status !== 0) return;
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-subj',
    '/CN=test authority',
  );
  issue('first');
  issue('renewed', 'first');
  issue('other');
  put('first');
  await sandbox.json(['operator', 'init']);
  const ready = await start();
  const url = `https://localhost:${port}`;
  await sandbox.json(['profile', 'create', 'pinned', '--url', url, '--tls-fingerprint', ready.tls_fingerprint]);
  await sandbox.json(['profile', 'create', 'authority', '--url', url, '--ca', `${tls}/ca.crt`]);
});

afterAll(() => sandbox.dispose());

const status = async (profile: string) => (await sandbox.orch(['status', '--profile', profile])).stderr;

describe('an own certificate', () => {
  it('is taken over without a restart when its files change, and no client with the same key notices', async () => {
    const before = await served();
    const open = await connected();
    put('renewed', 'first');
    server.process.kill('SIGHUP');
    await until(async () => (await served()) !== before, 'new connections see the renewed certificate');
    expect(open.getPeerCertificate().serialNumber).toBe(before);
    open.destroy();
    expect([await status('pinned'), await status('authority')]).toEqual(['', '']);
    const renewed = await served();
    put('first');
    await until(async () => (await served()) !== renewed, 'the files are looked at without a signal', 30_000);
  });

  it('whose two files do not fit each other is not taken over, and the next change is', async () => {
    const before = await served();
    copyFileSync(`${tls}/other.crt`, `${tls}/api.crt`);
    server.process.kill('SIGHUP');
    await until(() => server.output().includes('was not taken over, the old one stays'), 'the log says so');
    expect(await served()).toBe(before);
    copyFileSync(`${tls}/other.key`, `${tls}/api.key`);
    server.process.kill('SIGHUP');
    await until(async () => (await served()) !== before, 'both files are taken over');
    expect(await status('authority')).toBe('');
    put('renewed', 'first');
    server.process.kill('SIGHUP');
    await until(async () => (await status('pinned')) === '', 'logins are bound to the new certificate');
  });

  it('that ends soon is reported in the log, the status, the metrics, orch doctor and an event, once', async () => {
    expect(server.output()).toContain('the certificate of the API ends in less than a day');
    const { status: ended, stdout } = await sandbox.orch(['status', '--profile', 'pinned']);
    expect([ended, stdout]).toEqual([0, expect.stringMatching(/^Certificate +ends in 23 h.*renew it$/m)]);
    expect((await sandbox.orch(['doctor', '--profile', 'pinned'])).stdout).toMatch(
      /^warning +certificate +it ends in 23 h/m,
    );
    const metrics = await sandbox.orch(['api', 'GET', '/metrics', '--profile', 'pinned']);
    expect(metrics.stdout).toMatch(/^orch_api_certificate_expires \d{10}$/m);
    const list = ['audit', 'list', '--type', 'orchestrator.certificate_expiring', '--profile', 'pinned'];
    const { events } = await sandbox.json<{ events: readonly { summary: string }[] }>(list);
    expect(events[0]?.summary).toContain('The certificate of the API ends in less than a day, at ');
    await server.stop();
    await start();
    expect((await sandbox.json<{ events: readonly unknown[] }>(list)).events.length).toBe(events.length);
  });

  it('that has ended is reported too', async () => {
    const privateKey = createPrivateKey(readFileSync(`${tls}/first.key`));
    const validity = { from: new Date('2020-01-01T00:00:00Z'), to: new Date('2021-01-01T00:00:00Z') };
    writeFileSync(`${tls}/ended.crt`, selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: [], validity }));
    put('ended', 'first');
    server.process.kill('SIGHUP');
    await until(
      () => server.output().includes('the certificate of the API ended at 2021-01-01T00:00:00Z'),
      'the log says so',
    );
    const { stdout } = await sandbox.orch(['status', '--profile', 'pinned']);
    expect(stdout).toContain('(certificate_expired)');
    const list = ['audit', 'list', '--type', 'orchestrator.certificate_expired', '--profile', 'pinned'];
    expect((await sandbox.json<{ events: readonly unknown[] }>(list)).events).toMatchObject([{ severity: 'critical' }]);
  });

  it('with another key is refused by clients that pin it, and accepted by those that trust its authority', async () => {
    put('other');
    await server.stop();
    await start();
    expect(await status('pinned')).toContain('orch profile update pinned --tls-fingerprint');
    expect(await status('authority')).toBe('');
  });

  it('that does not belong to its key stops the start', async () => {
    put('first', 'other');
    await server.stop();
    await expect(start()).rejects.toThrow('the key is not that of the certificate');
  });
});

describe('the hook', () => {
  const target = sandbox.path('deployed');
  const run = (env: NodeJS.ProcessEnv) => {
    const bin = sandbox.path('bin');
    mkdirSync(bin, { recursive: true });
    // Instead of the services of this machine.
    writeFileSync(`${bin}/systemctl`, `#!/bin/sh\necho "$@" >> ${sandbox.path('systemctl.log')}\n`, { mode: 0o755 });
    const group = spawnSync('id', ['-gn'], { encoding: 'utf8' }).stdout.trim();
    return spawnSync('sh', [HOOK], {
      encoding: 'utf8',
      env: { PATH: `${bin}:${process.env.PATH}`, ORCH_TLS_DIR: target, ORCH_TLS_GROUP: group, ...env },
    });
  };

  it('deploys what certbot has renewed, and restarts the service', () => {
    const lineage = sandbox.path('lineage');
    mkdirSync(lineage);
    copyFileSync(`${tls}/first.crt`, `${lineage}/fullchain.pem`);
    copyFileSync(`${tls}/first.key`, `${lineage}/privkey.pem`);
    expect(run({ RENEWED_LINEAGE: lineage })).toMatchObject({ status: 0, stderr: '' });
    expect(readFileSync(`${target}/api.key`)).toEqual(readFileSync(`${tls}/first.key`));
    expect(statSync(`${target}/api.key`).mode & 0o777).toBe(0o640);
    expect(readFileSync(sandbox.path('systemctl.log'), 'utf8')).toBe('restart orch-serve\n');
  });

  it('deploys what lego has renewed', () => {
    expect(run({ LEGO_CERT_PATH: `${tls}/other.crt`, LEGO_CERT_KEY_PATH: `${tls}/other.key` })).toMatchObject({
      status: 0,
    });
    expect(readFileSync(`${target}/api.crt`)).toEqual(readFileSync(`${tls}/other.crt`));
  });

  it('changes nothing when certificate and key do not belong together', () => {
    const mixed = run({ LEGO_CERT_PATH: `${tls}/first.crt`, LEGO_CERT_KEY_PATH: `${tls}/other.key` });
    expect(mixed).toMatchObject({ status: 1 });
    expect(mixed.stderr).toContain('nothing was changed');
    expect(readFileSync(`${target}/api.crt`)).toEqual(readFileSync(`${tls}/other.crt`));
  });
});
