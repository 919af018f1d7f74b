/** From an empty home to a session, against the real API server with real TLS and real logins. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { generateKey, privateKeyPem } from '../../src/identity/private-key.js';
import { Home, type RunOptions, runOrch } from '../support/cli.js';
import { startServer } from '../support/client.js';
import { tlsFiles } from '../support/http.js';

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.dispose());

const run = (argv: readonly string[], { env, ...options }: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...home.env, NO_COLOR: '1', ...env } });

const keyFile = () => home.file('.config', 'orch', 'operator.key');
const yes = { at: 'Is it the right one?', type: 'y\r' };

describe('a key', () => {
  it('is made once, private, and never replaced', async () => {
    const first = await run(['operator', 'init', '--json']);
    expect(first.status).toBe(0);
    expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
    const before = readFileSync(keyFile(), 'utf8');
    expect(JSON.parse(first.stdout)).toMatchObject({
      key_file: keyFile(),
      public_key: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const second = await run(['operator', 'init']);
    expect(second).toMatchObject({ status: 1, stdout: '' });
    expect(second.stderr).toContain('is already there and is not overwritten');
    expect(readFileSync(keyFile(), 'utf8')).toBe(before);
  });

  it('goes where a flag or a variable says', async () => {
    expect((await run(['operator', 'init', '--key-file', home.file('a.key')])).status).toBe(0);
    expect((await run(['operator', 'init'], { env: { ORCH_KEY_FILE: home.file('deep', 'b.key') } })).status).toBe(0);
    expect([existsSync(home.file('a.key')), existsSync(home.file('deep', 'b.key')), existsSync(keyFile())]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('with a passphrase asks for it twice, and then at the login', async () => {
    const answers = [
      { at: 'New passphrase:', type: 'correct horse\r' },
      { at: 'Once more:', type: 'correct horse\r' },
    ];
    const made = await run(['operator', 'init', '--passphrase'], { columns: 100, answers });
    expect(made.status).toBe(0);
    expect(made.stderr).not.toContain('correct');
    expect(readFileSync(keyFile(), 'utf8')).toContain('ENCRYPTED');
    const { url } = await startServer({ tls: null });
    const login = await run(['login', '--url', url], {
      columns: 100,
      answers: [
        { at: 'Passphrase of', type: 'wrong\r' },
        { at: /not its passphrase[\s\S]*Passphrase of/, type: 'correct horse\r' },
      ],
    });
    expect(login).toMatchObject({ status: 0, stdout: expect.stringContaining('Logged in as tester (admin)') });
    const without = await run(['login', '--url', url], { env: { XDG_STATE_HOME: home.file('elsewhere') } });
    expect(without).toMatchObject({ status: 64, stdout: '' });
    expect(without.stderr).toContain('--key-file, ORCH_KEY_FILE or ORCH_KEY');
  });

  it('with two different passphrases is not written', async () => {
    const answers = [
      { at: 'New passphrase:', type: 'one\r' },
      { at: 'Once more:', type: 'two\r' },
    ];
    const ran = await run(['operator', 'init', '--passphrase'], { columns: 100, answers });
    expect(ran.status).toBe(64);
    expect(ran.stderr).toContain('the two passphrases differ, so nothing was written');
    expect(existsSync(keyFile())).toBe(false);
    expect((await run(['operator', 'init', '--passphrase'])).status).toBe(64);
  });

  it('that others can read is refused with the command that mends it', async () => {
    await run(['operator', 'init']);
    chmodSync(keyFile(), 0o644);
    const { url } = await startServer({ tls: null });
    const ran = await run(['login', '--url', url]);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain(`chmod 600 ${keyFile()}`);
  });

  it('that is missing is asked for', async () => {
    const { url } = await startServer({ tls: null });
    const ran = await run(['agents', '--url', url]);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain('make one with: orch operator init');
  });

  it('comes from a variable as well', async () => {
    const key = generateKey();
    const { url } = await startServer({ tls: null });
    const ran = await run(['operator', 'whoami', '--url', url, '--json'], { env: { ORCH_KEY: privateKeyPem(key) } });
    expect(JSON.parse(ran.stdout)).toMatchObject({ operator: { public_key: publicKeyOfKeyObject(key) } });
  });
});

describe('the first connection', () => {
  it('shows the fingerprint, asks, and remembers', async () => {
    await run(['operator', 'init']);
    const server = await startServer();
    const first = await run(['login', '--url', server.url], { columns: 100, answers: [yes] });
    expect(first.status).toBe(0);
    expect(first.stderr).toContain(server.api.fingerprint);
    expect(first.stderr).toContain('Remembered as profile 127.0.0.1.');
    expect(await run(['login', '--url', server.url])).toMatchObject({ status: 0, stderr: '' });
    expect(await run(['login'])).toMatchObject({ status: 0, stderr: '' });
    const profiles = JSON.parse((await run(['profile', 'list', '--json'])).stdout);
    expect(profiles).toEqual([
      { name: '127.0.0.1', default: true, url: server.url, tls_fingerprint: server.api.fingerprint },
    ]);
    const other = await startServer();
    const second = await run(['login', '--url', other.url], { columns: 100, answers: [yes] });
    expect(second.stderr).toContain('Remembered as profile 127.0.0.1-2.');
    expect(await run(['login', '--url', other.url])).toMatchObject({ status: 0, stderr: '' });
  });

  it('sends nothing after a no', async () => {
    await run(['operator', 'init']);
    const server = await startServer();
    const ran = await run(['login', '--url', server.url], { columns: 100, answers: [{ ...yes, type: 'n\r' }] });
    expect(ran.status).toBe(64);
    expect(ran.stderr).toContain('was not accepted, so nothing was sent');
    expect(server.seen).toEqual([]);
  });

  it('without a terminal needs the fingerprint, and gives the command', async () => {
    await run(['operator', 'init']);
    const server = await startServer();
    const ran = await run(['login', '--url', server.url]);
    expect(ran).toMatchObject({ status: 64, stdout: '' });
    expect(ran.stderr).toContain(`--tls-fingerprint ${server.api.fingerprint}`);
    expect(server.seen).toEqual([]);
    const flag = ['login', '--url', server.url, '--tls-fingerprint', server.api.fingerprint ?? ''];
    expect((await run(flag)).status).toBe(0);
    const env = { ORCH_TLS_FINGERPRINT: server.api.fingerprint ?? '' };
    expect((await run(['login', '--url', server.url], { env })).status).toBe(0);
  });

  it('into a profile that has no certificate yet fills it in', async () => {
    await run(['operator', 'init']);
    const server = await startServer();
    await run(['profile', 'create', 'home', '--url', server.url]);
    const ran = await run(['login'], { columns: 100, answers: [yes] });
    expect(ran.stderr).toContain('Remembered as profile home.');
    expect(await run(['login', '--profile', 'home'])).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('a session', () => {
  it('is refused when the certificate has changed, with both fingerprints', async () => {
    await run(['operator', 'init']);
    const server = await startServer();
    await run(['profile', 'create', 'home', '--url', server.url, '--tls-fingerprint', 'ab'.repeat(32)]);
    const ran = await run(['agents']);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain(Array(32).fill('ab').join(':'));
    expect(ran.stderr).toContain(server.api.fingerprint);
    expect(ran.stderr).toMatch(/orch profile update home/);
    expect(server.seen).toEqual([]);
  });

  it('ends with orch logout', async () => {
    await run(['operator', 'init']);
    const { url, sessions } = await startServer({ tls: null });
    await run(['login', '--url', url]);
    expect(sessions.size).toBe(1);
    expect(await run(['logout', '--url', url])).toMatchObject({ status: 0, stdout: 'Logged out.\n' });
    expect(sessions.size).toBe(0);
    expect(await run(['logout', '--url', url])).toMatchObject({ status: 0 });
  });

  it('of an expired token is distinguished', async () => {
    const { url } = await startServer({ tls: null });
    const ran = await run(['agents', '--url', url], { env: { ORCH_TOKEN: 'orch_st_old' } });
    expect(ran.status).toBe(4);
  });

  it('cannot begin where nothing listens', async () => {
    const ran = await run(['status', '--url', 'http://127.0.0.1:9']);
    expect(ran).toMatchObject({ status: 69, stdout: '' });
    expect(ran.stderr).toMatch(/^orch: .*127\.0\.0\.1:9/);
    const json = await run(['status', '--url', 'http://127.0.0.1:9', '--json']);
    expect(JSON.parse(json.stderr)).toMatchObject({ code: 'unreachable' });
  });

  it('at a server that does not bind logins is refused, unless that is allowed', async () => {
    await run(['operator', 'init']);
    const { url } = await startServer({ tls: null, boundTo: Buffer.alloc(32, 7) });
    expect((await run(['login', '--url', url])).status).toBe(4);
    const allowed = await run(['login', '--url', url, '--allow-unbound-login']);
    expect(allowed.status).toBe(0);
    expect(allowed.stderr).toContain('warning: ');
  });
});

describe('an authority', () => {
  it('stands in for a fingerprint', async () => {
    await run(['operator', 'init']);
    const tls = tlsFiles();
    const server = await startServer({ tls });
    writeFileSync(home.file('ca.pem'), tls.cert);
    const ran = await run(['login', '--url', server.url, '--ca', home.file('ca.pem')]);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
  });
});
