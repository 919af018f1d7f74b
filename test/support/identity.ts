import { execFileSync, spawnSync } from 'node:child_process';
import { constants, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { Point } from '@noble/ed25519';
import { onTestFinished } from 'vitest';
import { selfSignedEd25519, selfSignedP256 } from '../../src/identity/certificate.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { isFault } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

/** An empty directory that goes away with the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-identity-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Returns always the same Ed25519 key. */
export function fixedKey(): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** True when the program is on this machine. */
export const has = (program: string, ...args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore', timeout: 10_000 }).error === undefined;

export const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', timeout: 30_000, stdio: ['ignore', 'pipe', 'pipe'] });

/** The fault that a call throws, as the code, message and hint that a person sees. */
export function faultOf(call: () => unknown): { code: string; message: string; hint: string | undefined } {
  try {
    call();
  } catch (error) {
    if (!isFault(error)) throw error;
    return { code: error.code, message: error.message, hint: error.hint };
  }
  throw new Error('nothing was thrown');
}

export interface Identity {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
}

export function newIdentity(): Identity {
  const { privateKey } = generateKeyPairSync('ed25519');
  return { privateKey, publicKey: publicKeyOfKeyObject(privateKey) };
}

/** All points of order 1, 2, 4 and 8 in canonical form. */
export const SMALL_ORDER_KEYS: readonly string[] = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
];

/** Other encodings of small-order points: y not below the prime, or a sign on x = 0. */
export const NON_CANONICAL_KEYS: readonly string[] = [
  '0100000000000000000000000000000000000000000000000000000000000080',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
];

/** A good key plus a point of order 8: on the curve, of large order, outside the prime-order group. */
export const withTorsion = (key: PublicKeyHex): string =>
  Point.fromHex(key)
    .add(Point.fromHex(SMALL_ORDER_KEYS[4] ?? ''))
    .toHex();

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
