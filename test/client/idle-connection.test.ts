import { X509Certificate } from 'node:crypto';
import { createServer, request } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { TrustedAgent } from '../../src/client/transport.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { spkiFingerprint } from '../../src/identity/fingerprint.js';
import { generateKey } from '../../src/identity/private-key.js';
import { until } from '../support/orch.js';

it('an unused connection is closed by the client, and one in use is not', async () => {
  const privateKey = generateKey('p256');
  const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const server = createServer({ cert, key }, async (incoming, response) => {
    await pause(incoming.url === '/slow' ? 600 : 0);
    response.end('answer');
  });
  const open = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const closing = new AbortController();
  const agent = new TrustedAgent({
    url,
    pin: spkiFingerprint(new X509Certificate(cert)),
    ca: null,
    caFile: null,
    profile: null,
    env: {},
    connectTimeout: 10_000,
    handshakeTimeout: 10_000,
    keepAliveMsecs: 15_000,
    idleMsecs: 200,
    closing: closing.signal,
  });
  onTestFinished(() => {
    agent.destroy();
    server.close();
  });
  const get = (path: string) =>
    new Promise<string>((resolve, reject) => {
      const asked = request(new URL(path, url), { agent }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      });
      asked.on('error', reject);
      asked.end();
    });

  expect(await get('/')).toBe('answer');
  expect(await get('/slow')).toBe('answer');
  await until(() => open.size === 0, 'the connection is closed');
  expect(await get('/')).toBe('answer');
  expect(connections).toBeGreaterThan(1);
});
