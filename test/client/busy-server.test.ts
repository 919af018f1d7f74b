/** A server that is busy accepts a connection at once and needs long for the TLS handshake. */
import { X509Certificate } from 'node:crypto';
import { createServer as createTlsServer, request } from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { TrustedAgent } from '../../src/client/transport.js';
import { unreachable } from '../../src/client/unreachable.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { spkiFingerprint } from '../../src/identity/fingerprint.js';
import { generateKey } from '../../src/identity/private-key.js';

const privateKey = generateKey('p256');
const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

interface Timeouts {
  readonly connectTimeout: number;
  readonly handshakeTimeout: number;
}

/** Asks a server that looks at a connection after `delay` milliseconds; null: never. Returns its status, or the error as a client tells it. */
async function ask(delay: number | null, timeouts: Timeouts): Promise<number | string> {
  const secure = createTlsServer({ cert, key }, (_, response) => response.end());
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, async (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (delay === null) return;
    await pause(delay);
    secure.emit('connection', socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const agent = new TrustedAgent({
    url,
    pin: spkiFingerprint(new X509Certificate(cert)),
    ca: null,
    caFile: null,
    profile: null,
    env: {},
    ...timeouts,
    keepAliveMsecs: 15_000,
    idleMsecs: 10_000,
    closing: new AbortController().signal,
  });
  onTestFinished(() => {
    agent.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return await new Promise((resolve) => {
    const asked = request(url, { agent }, (response) => resolve(response.statusCode ?? 0));
    asked.on('error', (error) => resolve(unreachable(error, url).message));
    asked.end();
  });
}

it('is waited for longer than a connection that is not accepted', async () => {
  expect(await ask(2_500, { connectTimeout: 2_000, handshakeTimeout: 60_000 })).toBe(200);
});

it('that never finishes the handshake is distinguished from one that does not answer', async () => {
  expect(await ask(null, { connectTimeout: 60_000, handshakeTimeout: 100 })).toMatch(
    /cannot be reached: it accepts the connection, but does not finish the TLS handshake$/,
  );
});
