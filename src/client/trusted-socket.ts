/** Opens TLS connections and verifies the server by pin or CA before anything is sent. */

import type { X509Certificate } from 'node:crypto';
import { isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { formatFingerprint, spkiFingerprint } from '../identity/fingerprint.js';
import { Fault, systemCodeOf } from '../kernel/fault.js';
import type { Environment } from './operator-files.js';
import { openTunnel, proxyFor } from './proxy.js';
import { hostOf, urlText } from './server-url.js';

export interface TrustedSocketOptions extends ServerTrust {
  /** Path of the CA file, for messages. */
  readonly caFile: string | null;
  readonly env: Environment;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the connection, through any proxy, and the handshake begins. */
  readonly onReached: () => void;
}

interface TrustedSocket {
  readonly socket: TLSSocket;
  /** SHA-256 of the SPKI of its certificate. */
  readonly spki: Buffer;
}

/** Opens a verified connection. Throws `tls_unknown`, `tls_mismatch`, `unreachable` or the system's error. */
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
    // Otherwise the first request waits one round-trip time for the acknowledgement of the handshake.
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
    // In some versions of Node, a server that closes during the handshake causes no error.
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
    // With a CA, Node verifies chain and name. Without one, only the pin counts, and an empty list saves Node from loading
    // all its CAs, which takes longer than the handshake.
    ...(ca === null ? { rejectUnauthorized: false, ca: [] } : { rejectUnauthorized: true, ca }),
  };
}

interface ServerTrust {
  readonly url: URL;
  /** SPKI fingerprint as 64 lower-case hex digits, or null. */
  readonly pin: string | null;
  /** PEM of the CA that Node verifies with, or null. */
  readonly ca: string | null;
  /** Name of the profile with these settings, or null; the hint of a mismatch names it. */
  readonly profile: string | null;
}

/**
 * Returns the SPKI hash of a new connection's certificate. Throws `tls_unknown` without a pin and a CA, `tls_mismatch`
 * when the certificate differs from the pin or cannot be read. Call it once per connection: in Node 20 a second call
 * gets no certificate.
 */
function requireTrusted(socket: TLSSocket, trust: ServerTrust): Buffer {
  const { url, pin, ca } = trust;
  // In a resumed session the certificate is missing or belongs to an earlier connection.
  const certificate = socket.isSessionReused() ? undefined : socket.getPeerX509Certificate();
  const seen = certificate && fingerprintOf(certificate);
  if (seen === undefined) throw mismatch(trust, null);
  if (pin !== null && seen !== pin) throw mismatch(trust, seen);
  if (pin === null && ca === null) throw unknown(url, seen);
  return Buffer.from(seen, 'hex');
}

/** Returns the fault of a handshake that Node refused because of the CA. */
function refusedByCa({ url }: ServerTrust, file: string, reason: string): Fault {
  return new Fault(
    'tls_mismatch',
    `the certificate of ${urlText(url)} does not hold before the CA in ${file}: ${reason}`,
    {
      hint: 'use the CA that signed it and a name that is in it, or pin it with --tls-fingerprint',
      data: { url: urlText(url), ca: file, reason },
    },
  );
}

function fingerprintOf(certificate: X509Certificate): string | undefined {
  try {
    return spkiFingerprint(certificate);
  } catch {
    // A key type unknown to this OpenSSL cannot be the pinned key.
    return undefined;
  }
}

function unknown(url: URL, seen: string): Fault {
  return new Fault(
    'tls_unknown',
    `the certificate of ${urlText(url)} is not known: its fingerprint is ${formatFingerprint(seen)}`,
    {
      hint: `if that is what "orch serve" wrote when it started: --tls-fingerprint ${seen}`,
      data: { url: urlText(url), fingerprint: seen },
    },
  );
}

function mismatch({ url, pin, profile }: ServerTrust, seen: string | null): Fault {
  const shown =
    seen === null
      ? 'no certificate that can be checked'
      : `a certificate with the fingerprint ${formatFingerprint(seen)}`;
  const wanted = pin === null ? 'one that can be checked' : `the one with ${formatFingerprint(pin)}`;
  const accept =
    profile === null ? `--tls-fingerprint ${seen}` : `orch profile update ${profile} --tls-fingerprint ${seen}`;
  return new Fault('tls_mismatch', `${urlText(url)} shows ${shown} instead of ${wanted}; nothing was sent`, {
    hint:
      seen === null
        ? 'another machine may be intercepting the connection'
        : `another machine may be intercepting the connection; only if you know that the certificate changed: ${accept}`,
    data: { url: urlText(url), expected: pin, fingerprint: seen },
  });
}
