import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openSigner } from '../../src/client/login.js';
import { generateKey, privateKeyPem, wantsPassphrase, writeNewKey } from '../../src/identity/private-key.js';
import { Fault } from '../../src/kernel/fault.js';
import {
  clientOf,
  faultOf,
  newHome,
  newSigner,
  pinned,
  startServer,
  temporaryDirectory,
  testOperator,
} from '../support/client.js';

const logins = (seen: readonly string[]) => seen.filter((id) => id === 'verifyChallenge').length;

describe('a login', () => {
  it('happens by itself, once, and is kept for the next command', async () => {
    const server = await startServer();
    const env = newHome();
    const signer = newSigner();
    const first = pinned(server, { env, signer: async () => signer });
    await Promise.all([1, 2, 3, 4].map(() => first.call('getSession')));
    expect(logins(server.seen)).toBe(1);
    const directory = join(String(env.HOME), '.local/state/orch/tokens');
    const [name = ''] = readdirSync(directory);
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    const second = pinned(server, {
      env,
      signer: async () => {
        throw new Error('the key is not needed');
      },
    });
    await second.call('getSession');
    expect(logins(server.seen)).toBe(1);
  });

  it('is not needed for what is open to everybody', async () => {
    const server = await startServer();
    await pinned(server).call('getStatus');
    expect(server.seen).toEqual(['getStatus']);
  });

  it('is repeated once when the token is refused', async () => {
    const server = await startServer();
    const client = pinned(server);
    await client.call('getSession');
    server.sessions.clear();
    expect((await client.call('getSession')).operator.username).toBe('tester');
    expect(logins(server.seen)).toBe(2);
    server.sessions.clear();
    const stream = async () => {
      for await (const _ of client.stream('planAgent', { params: { node_id: 'a' }, body: { modules: [] } }));
    };
    await stream();
    expect(logins(server.seen)).toBe(3);
    server.sessions.clear();
    await Promise.all([client.call('getSession'), client.call('getSession'), client.raw('GET', '/auth/session')]);
    expect(logins(server.seen)).toBe(4);
  });

  it('is not repeated for ever', async () => {
    const server = await startServer({
      handlers: {
        verifyChallenge: async () => ({ status: 200, body: { token: 'orch_st_unknown', expires_at: 9_999_999_999 } }),
      },
    });
    const client = pinned(server);
    const fault = await faultOf(client.call('getSession'));
    expect(fault).toMatchObject({ code: 'unauthenticated', data: { status: 401 } });
    expect(logins(server.seen)).toBe(2);
  });

  it('happens anew when the kept token has ended, without trying it', async () => {
    let refused = 0;
    const server = await startServer({
      handlers: {
        verifyChallenge: async () => {
          const token = `orch_st_${randomUUID()}`;
          server.sessions.set(token, testOperator);
          return { status: 200, body: { token, expires_at: Math.floor(Date.now() / 1000) + 5 } };
        },
      },
      onRefusal: () => {
        refused += 1;
      },
    });
    const client = pinned(server);
    await client.call('getSession');
    await client.call('getSession');
    expect(logins(server.seen)).toBe(2);
    expect(refused).toBe(0);
  });

  it('that is refused says what to do', async () => {
    const server = await startServer({
      handlers: {
        createChallenge: async () => {
          throw new Fault('unknown_operator', 'this key may not log in');
        },
      },
    });
    const signer = newSigner();
    const fault = await faultOf(pinned(server, { signer: async () => signer }).call('getSession'));
    expect(fault.code).toBe('unknown_operator');
    expect(fault.hint).toContain(`orch operator add ${signer.publicKey}`);
  });

  it('takes only what a challenge and a token look like', async () => {
    const junk = await startServer({
      handlers: { createChallenge: async () => ({ status: 200, body: { nonce: 'abc' } }) },
    });
    expect((await faultOf(pinned(junk).call('getSession'))).code).toBe('unreachable');
  });

  it('works all the same where nothing can be kept', async () => {
    const server = await startServer();
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'file'), '');
    const warnings: string[] = [];
    const client = pinned(server, { env: { HOME: directory, XDG_STATE_HOME: join(directory, 'file') }, warnings });
    await client.call('getSession');
    await client.call('getSession');
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('could not be kept');
  });
});

describe('the relay attack', () => {
  it('is refused: a nonce of another server is not signed', async () => {
    const real = await startServer();
    // The evil server shows its own certificate, which the victim has accepted, and passes on the real server's nonce.
    const evil = await startServer({ boundTo: Buffer.from(String(real.api.fingerprint), 'hex') });
    let signed = 0;
    const own = newSigner();
    const signer = async () => ({
      publicKey: own.publicKey,
      sign: async (nonce: Uint8Array) => {
        signed += 1;
        return await own.sign(nonce);
      },
    });
    const fault = await faultOf(pinned(evil, { signer }).call('getSession'));
    expect(fault.code).toBe('login_unbound');
    expect(fault.hint).toContain('--allow-unbound-login');
    expect(signed).toBe(0);
    expect(evil.seen).toEqual(['createChallenge']);
    const warnings: string[] = [];
    await pinned(evil, { signer, allowUnboundLogin: true, warnings }).call('getSession');
    expect(warnings[0]).toContain('not bound');
    expect(signed).toBe(1);
  });

  it('is refused for a nonce of plain HTTP over TLS, and the other way round', async () => {
    const secure = await startServer({ boundTo: null });
    expect((await faultOf(pinned(secure).call('getSession'))).code).toBe('login_unbound');
    const plain = await startServer({ tls: null, boundTo: Buffer.alloc(32, 1) });
    expect((await faultOf(clientOf(plain.url).call('getSession'))).code).toBe('login_unbound');
  });
});

describe('a kept token', () => {
  it('is sent to no other server, and stands for no other key or trust', async () => {
    const env = newHome();
    const first = await startServer();
    const other = await startServer();
    const profile = 'home';
    await pinned(first, { env, profile }).call('getSession');
    await pinned(other, { env, profile }).call('getSession');
    expect(logins(other.seen)).toBe(1);
    await pinned(other, { env, profile, key: { kind: 'file', path: '/other.key', from: '--key-file' } }).call(
      'getSession',
    );
    expect(logins(other.seen)).toBe(2);
  });

  it('that others could read, or that is damaged, is as good as none', async () => {
    const env = newHome();
    const server = await startServer();
    await pinned(server, { env }).call('getSession');
    const directory = join(String(env.HOME), '.local/state/orch/tokens');
    const path = join(directory, readdirSync(directory)[0] ?? '');
    chmodSync(path, 0o644);
    await pinned(server, { env }).call('getSession');
    expect(logins(server.seen)).toBe(2);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(path, '{"token":');
    await pinned(server, { env }).call('getSession');
    expect(logins(server.seen)).toBe(3);
  });

  it('is forgotten with the log-out', async () => {
    const env = newHome();
    const server = await startServer();
    const client = pinned(server, { env });
    await client.logOut();
    expect(server.seen).toEqual([]);
    await client.call('getSession');
    await client.logOut();
    expect(server.sessions.size).toBe(0);
    expect(readdirSync(join(String(env.HOME), '.local/state/orch/tokens'))).toEqual([]);
    await client.call('getSession');
    server.sessions.clear();
    await client.logOut();
    await client.logOut();
  });
});

describe('a token from outside', () => {
  it('is used as it is: no login, no cache', async () => {
    const env = newHome();
    const server = await startServer();
    await pinned(server).call('getSession');
    const [token = ''] = server.sessions.keys();
    const client = pinned(server, { env, token });
    expect((await client.call('getSession')).operator.username).toBe('tester');
    expect(logins(server.seen)).toBe(1);
    expect(() => readdirSync(join(String(env.HOME), '.local'))).toThrow();
    server.sessions.clear();
    const fault = await faultOf(client.call('getSession'));
    expect(fault).toMatchObject({ code: 'unauthenticated', data: { status: 401 } });
    expect(fault.message).toContain('ORCH_TOKEN');
    expect((await client.raw('GET', '/auth/session')).status).toBe(401);
  });
});

describe('the key of an operator', () => {
  it('comes from a file or from a variable', () => {
    const key = generateKey();
    const path = join(temporaryDirectory(), 'operator.key');
    writeNewKey(path, key);
    const fromFile = openSigner({ kind: 'file', path, from: '--key-file' });
    const fromVariable = openSigner({ kind: 'pem', pem: readFileSync(path, 'utf8'), from: 'ORCH_KEY' });
    expect(fromVariable.publicKey).toBe(fromFile.publicKey);
  });

  it('that is missing says how to make one', async () => {
    const path = join(temporaryDirectory(), 'operator.key');
    const open = async () => openSigner({ kind: 'file', path, from: 'the default' });
    const fault = await faultOf(open());
    expect(fault).toMatchObject({ code: 'key_unreadable', hint: expect.stringContaining('orch operator init') });
    mkdirSync(path);
    expect((await faultOf(open())).code).toBe('key_invalid');
  });

  it('that is encrypted opens with its passphrase', () => {
    const pem = privateKeyPem(generateKey(), 'sesame');
    const source = { kind: 'pem', pem, from: 'ORCH_KEY' } as const;
    try {
      openSigner(source);
      expect.unreachable();
    } catch (error) {
      expect(wantsPassphrase(error)).toBe(true);
    }
    expect(openSigner(source, 'sesame').publicKey).toMatch(/^[0-9a-f]{64}$/);
  });
});
