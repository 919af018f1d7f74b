/** Fingerprints of TLS certificates: SHA-256 of the SubjectPublicKeyInfo, so that a renewal with the same key keeps it. */
import { createHash, X509Certificate } from 'node:crypto';
import { Fault } from '../kernel/fault.js';

/** 64 lower-case hex digits. Takes DER, PEM or a parsed certificate; throws `key_invalid` for what is none. */
export function spkiFingerprint(certificate: X509Certificate | Uint8Array | string): string {
  const spki = parse(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex');
}

/** A fingerprint in pairs, `ab:cd:…`, as people compare it. */
export const formatFingerprint = (fingerprint: string): string => fingerprint.match(/../g)?.join(':') ?? '';

/**
 * A fingerprint as people give it: hex in any case, with or without colons or spaces and a `sha256:` in front.
 * Throws `usage`; `what` names the place, such as a flag.
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
