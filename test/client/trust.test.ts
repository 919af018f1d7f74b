import { writeFileSync } from 'node:fs';
import { Agent, createServer as createHttpsServer, get } from 'node:https';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatFingerprint, spkiFingerprint } from '../../src/identity/fingerprint.js';
import { clientOf, faultOf, pinned, startServer, temporaryDirectory } from '../support/client.js';
import { tlsFiles } from '../support/http.js';

/** A TLS server that notes every byte of application data it gets. */
async function spyServer(tls: ReturnType<typeof tlsFiles>) {
  const received: string[] = [];
  const server = createTlsServer(tls, (socket) => {
    socket.on('data', (chunk) => received.push(String(chunk)));
    socket.on('error', () => {});
  });
  await listen(server);
  return { url: `https://127.0.0.1:${portOf(server)}`, received };
}

async function listen(server: Server): Promise<void> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return address.port;
}

describe('a pinned certificate', () => {
  it('is accepted on every connection', async () => {
    const server = await startServer();
    for (const client of [pinned(server), pinned(server)]) {
      const calls = Array.from({ length: 5 }, () => client.call('getStatus'));
      for (const status of await Promise.all(calls)) expect(status.status).toBe('ok');
      expect((await client.call('getStatus')).version).toBe('0.1.0');
    }
  });

  it('survives a renewal with the same key', async () => {
    const tls = tlsFiles();
    const first = await startServer({ tls });
    const again = await startServer({ tls });
    expect((await clientOf(again.url, { pin: first.api.fingerprint }).call('getStatus')).status).toBe('ok');
  });

  it('that is another one stops everything before a byte is sent', async () => {
    const spy = await spyServer(tlsFiles());
    const pin = 'ab'.repeat(32);
    const fault = await faultOf(clientOf(spy.url, { pin, profile: 'home' }).call('getStatus'));
    expect(fault.code).toBe('tls_mismatch');
    expect(fault.message).toContain(formatFingerprint(pin));
    const seen = String(fault.data?.fingerprint);
    expect(seen).toMatch(/^[0-9a-f]{64}$/);
    expect(fault.message).toContain(formatFingerprint(seen));
    expect(fault.hint).toContain(`orch profile update home --tls-fingerprint ${seen}`);
    expect(spy.received).toEqual([]);
  });

  it('is looked for again after the server came back with another one', async () => {
    const first = await startServer();
    const client = pinned(first);
    await client.call('getStatus');
    const { port } = first.api.address();
    await first.api.stop();
    const impostor = await startServer({ port });
    const fault = await faultOf(client.call('getStatus'));
    expect(fault).toMatchObject({ code: 'tls_mismatch', data: { fingerprint: impostor.api.fingerprint } });
    expect(impostor.seen).toEqual([]);
  });

  it('is not resumed from an earlier session, in which it could not be seen', async () => {
    const tls = tlsFiles();
    const reused: boolean[] = [];
    const server = createHttpsServer(tls, (request, response) => {
      if ('isSessionReused' in request.socket) reused.push((request.socket as TLSSocket).isSessionReused());
      response.setHeader('connection', 'close');
      response.setHeader('content-type', 'application/json');
      response.end('{"status":"ok"}');
    });
    await listen(server);
    const url = `https://127.0.0.1:${portOf(server)}`;
    // The trap: Node's own agent takes up the session again, and then there is no certificate to look at.
    const agent = new Agent({ rejectUnauthorized: false });
    for (let at = 0; at < 2; at += 1) {
      await new Promise((resolve) => get(url, { agent }, (answer) => answer.resume().on('end', resolve)));
    }
    expect(reused).toEqual([false, true]);
    const client = clientOf(url, { pin: spkiFingerprint(tls.cert) });
    for (let at = 0; at < 3; at += 1) await client.call('getStatus');
    expect(reused.slice(2)).toEqual([false, false, false]);
    client.close();
    expect((await faultOf(client.call('getStatus'))).code).toBe('unreachable');
  });

  it('holds together with a CA, or not at all', async () => {
    const tls = tlsFiles();
    const server = await startServer({ tls });
    const ca = join(temporaryDirectory(), 'ca.pem');
    writeFileSync(ca, tls.cert);
    expect((await pinned(server, { ca }).call('getStatus')).status).toBe('ok');
    const fault = await faultOf(clientOf(server.url, { ca, pin: 'cd'.repeat(32) }).call('getStatus'));
    expect(fault).toMatchObject({ code: 'tls_mismatch', data: { fingerprint: server.api.fingerprint } });
  });
});

describe('an unknown certificate', () => {
  it('is reported with its fingerprint, and nothing is sent', async () => {
    const spy = await spyServer(tlsFiles());
    const fault = await faultOf(clientOf(spy.url).call('getStatus'));
    expect(fault.code).toBe('tls_unknown');
    expect(fault.data?.url).toBe(spy.url);
    expect(fault.hint).toContain(`--tls-fingerprint ${fault.data?.fingerprint}`);
    expect(spy.received).toEqual([]);
    const server = await startServer();
    const known = await faultOf(clientOf(server.url).call('getStatus'));
    expect(known.data?.fingerprint).toBe(server.api.fingerprint);
  });
});

describe('a CA', () => {
  it('vouches for the server', async () => {
    const tls = tlsFiles();
    const server = await startServer({ tls });
    const ca = join(temporaryDirectory(), 'ca.pem');
    writeFileSync(ca, tls.cert);
    const client = clientOf(server.url, { ca });
    expect((await client.call('getStatus')).status).toBe('ok');
    expect((await client.call('getSession')).operator.username).toBe('tester');
  });

  it('that did not sign it, or for another name, does not', async () => {
    const tls = tlsFiles();
    const server = await startServer({ tls });
    const directory = temporaryDirectory();
    const other = join(directory, 'other.pem');
    writeFileSync(other, tlsFiles().cert);
    const fault = await faultOf(clientOf(server.url, { ca: other }).call('getStatus'));
    expect(fault).toMatchObject({ code: 'tls_mismatch' });
    expect(fault.message).toContain(other);
    const own = join(directory, 'own.pem');
    writeFileSync(own, tls.cert);
    const elsewhere = server.url.replace('127.0.0.1', '127.0.0.2');
    const spy = await spyServer(tls);
    const named = await faultOf(
      clientOf(spy.url.replace('127.0.0.1', 'other.localhost'), { ca: own }).call('getStatus'),
    );
    expect(['tls_mismatch', 'unreachable']).toContain(named.code);
    expect((await faultOf(clientOf(elsewhere, { ca: own }).call('getStatus'))).code).toBe('unreachable');
    expect(spy.received).toEqual([]);
  });

  it('has to be a readable certificate', async () => {
    const directory = temporaryDirectory();
    const junk = join(directory, 'junk.pem');
    writeFileSync(junk, 'hello');
    for (const ca of [junk, join(directory, 'missing.pem'), directory]) {
      expect(() => clientOf('https://127.0.0.1:1', { ca })).toThrow(
        expect.objectContaining({ code: 'invalid_config' }),
      );
    }
  });
});

describe('plain HTTP', () => {
  it('works on this machine', async () => {
    const server = await startServer({ tls: null });
    expect((await clientOf(server.url).call('getSession')).operator.username).toBe('tester');
    expect((await clientOf(server.url.replace('127.0.0.1', 'localhost')).call('getStatus')).status).toBe('ok');
  });

  it('is refused to any other unless it was allowed', async () => {
    for (const url of ['http://192.0.2.1:4748', 'http://orch.example', 'http://128.0.0.1', 'http://[2001:db8::1]']) {
      expect(() => clientOf(url)).toThrow(expect.objectContaining({ code: 'tls_required' }));
    }
    expect(() => clientOf('http://192.0.2.1:4748', { allowPlainHttp: true })).not.toThrow();
  });
});

describe('a server that cannot be reached', () => {
  it('is reported with its address and the reason', async () => {
    const server = await startServer();
    await server.api.stop();
    const refused = await faultOf(pinned(server).call('getStatus'));
    expect(refused).toMatchObject({ code: 'unreachable', data: { url: server.url, reason: 'ECONNREFUSED' } });
    expect(refused.message).toBe(`${server.url} cannot be reached: nothing listens there`);
    expect(refused.hint).toContain('orch serve');
    const unknown = await faultOf(clientOf('https://no-such-host.invalid', { pin: 'ab'.repeat(32) }).call('getStatus'));
    expect(unknown.code).toBe('unreachable');
  });

  it('because it speaks something else', async () => {
    const plain = await startServer({ tls: null });
    const noTls = await faultOf(
      clientOf(plain.url.replace('http:', 'https:'), { pin: 'ab'.repeat(32) }).call('getStatus'),
    );
    expect(noTls.code).toBe('unreachable');
    expect(noTls.message).toMatch(/does not speak TLS|the connection broke/);
    const secure = await startServer();
    expect((await faultOf(clientOf(secure.url.replace('https:', 'http:')).call('getStatus'))).code).toBe('unreachable');
    const silent = createServer((socket) => socket.end());
    await listen(silent);
    expect((await faultOf(clientOf(`https://127.0.0.1:${portOf(silent)}`).call('getStatus'))).code).toBe('unreachable');
    const web = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () =>
        socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<h1>'),
      );
    });
    await listen(web);
    const other = await faultOf(clientOf(`http://127.0.0.1:${portOf(web)}`).call('getStatus'));
    expect(other).toMatchObject({ code: 'unreachable', data: { status: 502 } });
  });

  it('gives up when asked to', async () => {
    const silent = createServer(() => {});
    await listen(silent);
    const client = clientOf(`https://127.0.0.1:${portOf(silent)}`);
    const controller = new AbortController();
    const call = client.call('getStatus', { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await expect(client.call('getStatus', { signal: controller.signal })).rejects.toThrow('enough');
    const closed = client.call('getStatus');
    client.close();
    expect((await faultOf(closed)).code).toBe('unreachable');
  });
});
