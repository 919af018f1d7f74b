/** Opens a TLS connection and hands it out only when the server is the right one: before that, nothing is sent. */
import { isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { systemCodeOf } from '../kernel/fault.js';
import type { Environment } from './directories.js';
import { proxyFor } from './proxy.js';
import { refusedByCa, requireTrusted, type ServerTrust } from './server-trust.js';
import { hostOf } from './server-url.js';
import { openTunnel } from './tunnel.js';

export interface TrustedSocketOptions extends ServerTrust {
  /** Path of the CA, for messages. */
  readonly caFile: string | null;
  readonly env: Environment;
  readonly signal: AbortSignal;
  /** Called when the server, through any proxy, has accepted the connection and the handshake begins. */
  readonly onReached: () => void;
}

export interface TrustedSocket {
  readonly socket: TLSSocket;
  /** SHA-256 of the SPKI of its certificate. */
  readonly spki: Buffer;
}

/** Throws `tls_unknown`, `tls_mismatch`, `unreachable` or the network's own error. */
export async function openTrustedSocket(options: TrustedSocketOptions): Promise<TrustedSocket> {
  const { url, env, signal } = options;
  const proxy = proxyFor(url, env);
  const way = proxy && (await openTunnel({ proxy, url, signal }));
  const socket = await shakeHands(way, options);
  try {
    return { socket, spki: requireTrusted(socket, options) };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function shakeHands(way: Duplex | null, options: TrustedSocketOptions): Promise<TLSSocket> {
  const { signal, caFile, onReached } = options;
  return new Promise((resolve, reject) => {
    const socket = connect(tlsOptions(way, options));
    // Else the first request waits until the server has acknowledged the end of the handshake: as long as a way there and back.
    (way instanceof Socket ? way : socket).setNoDelay(true);
    if (way === null) socket.once('connect', onReached);
    else onReached();
    const abort = () => socket.destroy(signal.reason);
    const fail = (error: Error) => {
      signal.removeEventListener('abort', abort);
      const isVerdict = caFile !== null && /CERT|^ERR_TLS|_ISSUER|_SIGNATURE|CRL/.test(systemCodeOf(error) ?? '');
      reject(isVerdict ? refusedByCa(options, caFile, error.message) : error);
    };
    socket.once('error', fail);
    // A server that hangs up in the middle of the handshake causes no error in some versions of Node.
    const hangUp = () => fail(Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' }));
    socket.once('close', hangUp);
    signal.addEventListener('abort', abort, { once: true });
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', abort);
      socket.off('error', fail);
      socket.off('close', hangUp);
      resolve(socket);
    });
    if (signal.aborted) abort();
  });
}

function tlsOptions(way: Duplex | null, { url, ca }: TrustedSocketOptions): ConnectionOptions {
  const host = hostOf(url);
  return {
    host,
    port: Number(url.port || 443),
    ...(way ? { socket: way } : {}),
    ...(isIP(host) > 0 ? {} : { servername: host }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    // With a CA, Node verifies chain and name. Without, the pin alone counts and is checked by us; Node would read all the CAs that
    // it knows, which takes longer than the handshake.
    ...(ca === null ? { rejectUnauthorized: false, ca: [] } : { rejectUnauthorized: true, ca }),
  };
}
