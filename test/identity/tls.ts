import { constants, type KeyObject } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { type ConnectionOptions, connect, createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';
import { selfSignedEd25519, selfSignedP256 } from '../../src/identity/certificate.js';

export interface Credentials {
  readonly key: string;
  readonly cert: string;
}

export function credentialsOf(privateKey: KeyObject): Credentials {
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const cert =
    privateKey.asymmetricKeyType === 'ed25519'
      ? selfSignedEd25519(privateKey).certPem
      : selfSignedP256({ privateKey, dnsNames: ['agent'], addresses: [] });
  return { key, cert };
}

/** A TLS 1.3 server that asks for a certificate and takes any; it ends with the test. */
export async function serve(
  options: TlsOptions,
  onConnection: (socket: TLSSocket) => void,
): Promise<{ server: Server; port: number }> {
  const server = createServer(
    {
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      secureOptions: constants.SSL_OP_NO_TICKET,
      ...options,
    },
    onConnection,
  );
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => sockets.add(socket));
  server.on('secureConnection', (socket) => socket.on('error', () => socket.destroy()));
  server.on('tlsClientError', (_, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

/** Connects and calls back with the socket right after the handshake; the answer of the call is the result. */
export const handshake = <T>(port: number, options: ConnectionOptions, look: (socket: TLSSocket) => T): Promise<T> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
    socket.once('secureConnect', () => resolve(look(socket)));
    socket.on('error', reject);
    onTestFinished(() => {
      socket.destroy();
    });
  });
