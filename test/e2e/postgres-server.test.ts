/** The server of a store on PostgreSQL: it goes away, asks for a password, speaks TLS, and is examined by `orch doctor`. */
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Status } from '../../src/contract/status.js';
import type { DoctorCheck } from '../../src/programs/doctor-check.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { freePort, noPostgres, TestPostgres } from '../support/postgres.js';

if (noPostgres !== null) console.info(`skipped: ${noPostgres}`);

const PASSWORD = 'correct-horse-battery';
const PGBOUNCER = '/usr/sbin/pgbouncer';
const SCRAPE = 's'.repeat(32);

describe.skipIf(noPostgres !== null)('the server of a store', () => {
  const sandbox = new Sandbox();
  const passwordFile = sandbox.path('store.password');
  const ca = sandbox.path('ca.pem');
  let postgres: TestPostgres;
  let url: string;
  let running: Running | null = null;
  let ready: Ready;

  const start = async (store: string, ...args: readonly string[]): Promise<void> => {
    const given = ['--store', store, '--store-password-file', passwordFile, '--no-tls', '--metrics-token', SCRAPE];
    ({ server: running, ready } = await sandbox.serve([...given, ...args]));
  };
  const refused = async (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> => {
    const begun = await sandbox.serve(args, env).catch((error: Error) => error.message);
    if (typeof begun === 'string') return begun.replaceAll(/\s+/g, ' ');
    await begun.server.stop();
    throw new Error(`orch serve ${args.join(' ')} has started`);
  };
  const status = async (): Promise<Status> => (await fetch(`${ready.api_url}/api/v1/status`)).json() as Promise<Status>;
  const metrics = async (): Promise<string> => {
    const answer = await fetch(`${ready.api_url}/api/v1/metrics`, { headers: { authorization: `Bearer ${SCRAPE}` } });
    expect(answer.status).toBe(200);
    return answer.text();
  };
  const doctor = async (store: string, env: NodeJS.ProcessEnv = {}): Promise<readonly DoctorCheck[]> => {
    const places = {
      ORCH_SERVE_DATA_DIR: sandbox.path('serve'),
      ORCH_SERVE_STORE: store,
      ORCH_SERVE_STORE_PASSWORD_FILE: passwordFile,
    };
    const { stdout, stderr } = await sandbox.orch(['doctor', '-o', 'json'], { env: { ...places, ...env } });
    expect(stdout + stderr).not.toContain(PASSWORD);
    const checks = JSON.parse(stdout) as DoctorCheck[];
    return checks.filter(({ name }) => name.startsWith('serve store'));
  };
  const named = (checks: readonly DoctorCheck[], name: string) =>
    checks.find((one) => one.name === `serve store ${name}`.trim());

  beforeAll(async () => {
    makeCertificates();
    postgres = await TestPostgres.start({
      hba: [
        'local all all trust',
        'hostssl all tls 127.0.0.1/32 scram-sha-256',
        'host all all 127.0.0.1/32 scram-sha-256',
      ],
      conf: ["password_encryption = 'scram-sha-256'", 'track_commit_timestamp = off'],
    });
    await postgres.sql(`create role keeper login password '${PASSWORD}'; create role tls login password '${PASSWORD}'`);
    for (const name of ['keeper', 'tls']) await postgres.sql(`create database ${name} owner ${name}`);
    url = `postgres://keeper@127.0.0.1:${postgres.port}/keeper`;
    writeFileSync(passwordFile, `${PASSWORD}\n`, { mode: 0o600 });
    await sandbox.orch(['operator', 'init']);
  });
  afterAll(async () => {
    await sandbox.dispose();
    await postgres?.remove();
  });

  it('is asked with a password that no output, argument or file shows', async () => {
    await start(url);
    const shown = `postgres://keeper@127.0.0.1:${postgres.port}/keeper`;
    const commandLine = readFileSync(`/proc/${running?.process.pid}/cmdline`, 'utf8');
    expect(commandLine).not.toContain(PASSWORD);
    expect(running?.output()).not.toContain(PASSWORD);
    expect(JSON.stringify(ready)).not.toContain(PASSWORD);
    expect(
      await postgres.sql('select string_agg(metadata_json, $$ $$) from orch.audit_events', 'keeper'),
    ).not.toContain(PASSWORD);
    await running?.stop();
    for (const name of readdirSync(sandbox.path('serve'))) {
      const path = sandbox.path('serve', name);
      if (statSync(path).isFile()) expect(readFileSync(path, 'latin1')).not.toContain(PASSWORD);
    }

    const withPassword = `postgres://keeper:${PASSWORD}@127.0.0.1:${postgres.port}/keeper`;
    const message = await refused(['--store', withPassword]);
    expect(message).toMatch(/holds a password.*store_password_file/);
    expect(message).not.toContain(PASSWORD);
    const wrong = sandbox.path('wrong.password');
    writeFileSync(wrong, `${PASSWORD}x\n`, { mode: 0o600 });
    const failed = await refused(['--store', url, '--store-password-file', wrong]);
    expect(failed).toContain(`the database ${shown} cannot be used: password authentication failed`);
    expect(failed).not.toContain(PASSWORD);
    chmodSync(wrong, 0o644);
    expect(await refused(['--store', url, '--store-password-file', wrong])).toMatch(/may be read by others.*chmod 600/);
    const passFile = sandbox.path('pgpass');
    writeFileSync(passFile, `127.0.0.1:${postgres.port}:keeper:keeper:${PASSWORD}\n`, { mode: 0o600 });
    const env = { PGPASSFILE: passFile };
    const begun = await sandbox.serve(['--store', url], env);
    await begun.server.stop();
  });

  it('is away: the status is degraded without it, metrics say so, and all is well when it is back', async () => {
    await start(url, '--store-readers', '2');
    expect((await status()).reasons.map(({ code }) => code)).not.toContain('store_unreachable');
    expect(await metrics()).toContain('orch_store_up{kind="postgres"} 1');
    await postgres.stop('immediate');
    await until(async () => (await status()).reasons.some(({ code }) => code === 'store_unreachable'), 'it is noticed');
    const away = await status();
    expect(away.status).toBe('degraded');
    expect(JSON.stringify(away.reasons)).not.toContain('keeper');
    const text = await metrics();
    expect(text).toContain('orch_store_up{kind="postgres"} 0');
    expect(text).toContain('orch_degraded{reason="store_unreachable"} 1');
    expect(text).toContain('orch_agents_connected 0');
    expect((await doctor(url)).find(({ state }) => state === 'problem')?.found).toMatch(
      /cannot be used: connect ECONNREFUSED/,
    );
    await postgres.boot();
    await until(async () => (await status()).reasons.every(({ code }) => code !== 'store_unreachable'), 'it is back');
    expect(await metrics()).toMatch(/^orch_agents\{status="approved"\} 0$/m);
    expect(running?.output()).not.toContain(PASSWORD);
  });

  it('is examined by orch doctor, which changes nothing', async () => {
    const fingerprint =
      "select md5(string_agg(key || value, '' order by key)), (select count(*) from orch.audit_events) from orch.meta";
    const before = await postgres.sql(fingerprint, 'keeper');
    const checks = await doctor(url);
    expect(checks.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(checks.map(({ name }) => name)).toEqual(
      ['password', '', 'server', 'schema', 'lock', 'sessions', 'connections'].map((one) => `serve store ${one}`.trim()),
    );
    expect(await postgres.sql(fingerprint, 'keeper')).toBe(before);
    const elsewhere = await doctor(url, { ORCH_SERVE_DATA_DIR: otherDirectory('other') });
    expect(named(elsewhere, 'lock')).toMatchObject({ state: 'warning', found: expect.stringContaining('127.0.0.1') });
    await running?.stop();

    await postgres.sql(
      "insert into orch.meta values ('schema_version', '9999') on conflict (key) do update set value = '9999'",
      'keeper',
    );
    expect(named(await doctor(url), 'schema')).toMatchObject({
      state: 'problem',
      found: expect.stringContaining('9999'),
    });
    expect(await refused(['--store', url, '--store-password-file', passwordFile])).toMatch(
      /has schema 9999, this program knows/,
    );
    await postgres.sql('drop schema orch cascade', 'keeper');
    expect(named(await doctor(url), 'schema')).toMatchObject({
      state: 'note',
      fix: expect.stringContaining('store copy'),
    });

    await postgres.sql('alter database keeper set synchronous_commit = off; alter role keeper connection limit 6');
    const weak = await doctor(url);
    expect(named(weak, 'server')).toMatchObject({
      state: 'problem',
      fix: expect.stringContaining('synchronous_commit'),
    });
    expect(named(weak, 'connections')).toMatchObject({
      state: 'warning',
      fix: expect.stringContaining('store_readers'),
    });
    await postgres.sql('alter database keeper reset synchronous_commit; alter role keeper connection limit -1');

    chmodSync(passwordFile, 0o640);
    expect(named(await doctor(url), 'password')).toMatchObject({
      state: 'problem',
      fix: expect.stringContaining('chmod 600'),
    });
    chmodSync(passwordFile, 0o600);
    const two = `postgres://keeper@127.0.0.1:${postgres.port},127.0.0.1:1/keeper`;
    expect(named(await doctor(two), 'standby')).toMatchObject({
      state: 'warning',
      fix: expect.stringContaining('synchronous_standby_names'),
    });
  });

  it('is copied to and from with the password of each side', async () => {
    const empty = `postgres://tls@127.0.0.1:${postgres.port}/tls`;
    const file = sandbox.path('copy.db');
    const begun = await sandbox.serve([
      '--store',
      url,
      '--store-password-file',
      passwordFile,
      '--data-dir',
      sandbox.path('copied'),
    ]);
    await begun.server.stop();
    const without = await sandbox.orch(['store', 'copy', url, file]);
    expect(without.stderr).toMatch(/cannot be used.*password/);
    const from = ['--from-password-file', passwordFile];
    expect((await sandbox.orch(['store', 'copy', url, file, ...from])).status).toBe(0);
    const there = await sandbox.orch(['store', 'copy', file, empty], { env: { PGPASSWORD: PASSWORD } });
    expect(there.stderr + there.stdout).not.toContain(PASSWORD);
    expect(there.status, there.stderr).toBe(0);
    await postgres.sql('drop schema orch cascade', 'tls');
  });

  it.skipIf(!existsSync(PGBOUNCER))(
    'behind a pooler that shares sessions is refused, and orch doctor says so',
    async () => {
      const port = await freePort();
      const { uid, gid } = statSync(postgres.data);
      const config = join(postgres.directory, 'pgbouncer.ini');
      writeFileSync(
        config,
        `[databases]
keeper = host=127.0.0.1 port=${postgres.port} dbname=keeper user=keeper password=${PASSWORD}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
`,
      );
      chownSync(config, uid, gid);
      const pooler = spawn(PGBOUNCER, ['-q', config], { uid, gid, stdio: 'ignore' });
      onTestFinished(() => void pooler.kill());
      await until(async () => isOpen(port), 'the pooler listens');
      const pooled = `postgres://keeper@127.0.0.1:${port}/keeper`;
      const hint = /pooler that shares sessions.*pool_mode = session/;
      expect(await refused(['--store', pooled, '--store-password-file', passwordFile])).toMatch(hint);
      const sessions = named(await doctor(pooled), 'sessions');
      expect(sessions?.state).toBe('problem');
      expect(`${sessions?.found} ${sessions?.fix}`).toMatch(hint);
    },
  );

  it('proves itself by TLS: by a certificate of a known authority, for the name in the URL', async () => {
    const { uid, gid } = statSync(postgres.data);
    for (const [from, to] of [
      ['server.pem', 'server.crt'],
      ['server.key', 'server.key'],
    ] as const) {
      copyFileSync(sandbox.path(from), join(postgres.data, to));
      chmodSync(join(postgres.data, to), 0o600);
      chownSync(join(postgres.data, to), uid, gid);
    }
    postgres.configure(['ssl = on']);
    await postgres.reload();
    const at = (host: string, parameters: string) =>
      `postgres://tls@${host}:${postgres.port}/tls?sslmode=verify-full${parameters}`;
    const password = ['--store-password-file', passwordFile, '--data-dir', sandbox.path('tls'), '--no-tls'];
    const begun = await sandbox.serve(['--store', at('localhost', `&sslrootcert=${ca}`), ...password]);
    expect(
      await postgres.sql(
        "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'tls'",
      ),
    ).toBe('t');
    await begun.server.stop();
    // The certificate is not for an address.
    expect(await refused(['--store', at('127.0.0.1', `&sslrootcert=${ca}`), ...password])).toMatch(
      /IP|altnames|does not match/,
    );
    // The authority is not one of the system.
    expect(await refused(['--store', at('localhost', ''), ...password])).toMatch(/self-signed|unable to (get|verify)/);
    expect(
      await refused(['--store', at('localhost', `&sslrootcert=${sandbox.path('other-ca.pem')}`), ...password]),
    ).toMatch(/certificate|self-signed|unable/);
    expect(await refused(['--store', at('localhost', '&sslrootcert=/nowhere.pem'), ...password])).toMatch(
      /\/nowhere\.pem \(sslrootcert\) cannot be read/,
    );
    expect(await refused(['--store', 'postgres://tls@db.example/tls?sslmode=disable', ...password])).toMatch(
      /turns TLS off/,
    );
  });

  /** A data directory with the same keys, which no process holds. */
  function otherDirectory(name: string): string {
    const directory = sandbox.path(name);
    mkdirSync(directory, { mode: 0o700 });
    for (const key of ['identity.key', 'audit.key', 'secrets.key']) {
      copyFileSync(sandbox.path('serve', key), join(directory, key));
    }
    return directory;
  }

  /** Makes two authorities, and a certificate for the name localhost by the first. */
  function makeCertificates(): void {
    const openssl = (...args: readonly string[]) =>
      execFileSync('openssl', [...args], { cwd: sandbox.root, stdio: 'pipe' });
    for (const name of ['ca', 'other-ca']) {
      openssl(
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
        '-subj',
        `/CN=${name}`,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.pem`,
      );
    }
    openssl(
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      '/CN=localhost',
      '-keyout',
      'server.key',
      '-out',
      'server.csr',
    );
    writeFileSync(sandbox.path('server.ext'), 'subjectAltName = DNS:localhost\n');
    openssl(
      'x509',
      '-req',
      '-in',
      'server.csr',
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      'server.ext',
      '-out',
      'server.pem',
    );
  }
});

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
