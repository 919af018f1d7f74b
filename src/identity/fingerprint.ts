/** Fingerprints of TLS certificates: SHA-256 of the SubjectPublicKeyInfo, which survives a renewal with the same key. */
import { createHash, X509Certificate } from 'node:crypto';
import { Fault } from '../kernel/fault.js';

/** Returns 64 lower-case hex digits for DER, PEM or a parsed certificate. Throws `key_invalid` for other input. */
export function spkiFingerprint(certificate: X509Certificate | Uint8Array | string): string {
  const spki = parse(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex');
}

/** Formats a fingerprint in pairs, `ab:cd:…`, for people to compare. */
export const formatFingerprint = (fingerprint: string): string => fingerprint.match(/../g)?.join(':') ?? '';

/**
 * Parses a fingerprint: hex in any case, optionally with colons, spaces and a `sha256:` prefix.
 * Throws `usage`; `what` names the source, such as a flag.
 */
export function parseFingerprint(text: string, what = 'the TLS fingerprint'): string {
  const hex = text
    .replace(/^\s*sha256[:/]+/i, '')
    .replace(/[\s:]/g, '')
    .toLowerCase();
  if (/^[0-9a-f]{64}$/.test(hex)) return hex;
  throw new Fault('usage', `${what} is not a SHA-256 fingerprint`, { hint: 'give 64 hex digits, colons allowed' });
}

function parse(certificate: X509Certificate | Uint8Array | string): X509Certificate {
  if (certificate instanceof X509Certificate) return certificate;
  try {
    return new X509Certificate(certificate);
  } catch (cause) {
    throw new Fault('key_invalid', 'the certificate cannot be read', { cause });
  }
}
