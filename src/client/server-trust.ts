/** Whether the server at the other end of a TLS connection is the one that is meant. */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { formatFingerprint, spkiFingerprint } from '../identity/fingerprint.js';
import { Fault } from '../kernel/fault.js';
import { urlText } from './server-url.js';

export interface ServerTrust {
  readonly url: URL;
  /** 64 lower-case hex digits, or null. */
  readonly pin: string | null;
  /** PEM of the CA that the handshake was verified with, or null. */
  readonly ca: string | null;
  /** Name of the profile that says so, or null: for the command that accepts a new certificate. */
  readonly profile: string | null;
}

/**
 * The SPKI hash of the certificate of a connection that has just been made. Throws `tls_unknown` when nothing says what it
 * has to be, `tls_mismatch` when it is another one than the pin says or cannot be seen. Once per connection: Node 20
 * gives the certificate away with the first look.
 */
export function requireTrusted(socket: TLSSocket, trust: ServerTrust): Buffer {
  const { url, pin, ca } = trust;
  // In a resumed session there is no certificate, or that of an earlier connection.
  const certificate = socket.isSessionReused() ? undefined : socket.getPeerX509Certificate();
  const seen = certificate && fingerprintOf(certificate);
  if (seen === undefined) throw mismatch(trust, null);
  if (pin !== null && seen !== pin) throw mismatch(trust, seen);
  if (pin === null && ca === null) throw unknown(url, seen);
  return Buffer.from(seen, 'hex');
}

/** The fault for a handshake that Node refused because of the CA. */
export function refusedByCa({ url }: ServerTrust, file: string, reason: string): Fault {
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
    // A key of a kind that this OpenSSL does not know is certainly not the pinned one.
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
        ? 'somebody may be in between'
        : `somebody may be in between; only if you know that it changed: ${accept}`,
    data: { url: urlText(url), expected: pin, fingerprint: seen },
  });
}
