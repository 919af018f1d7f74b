/**
 * Login nonces bound to the server's TLS key, so that a malicious server cannot relay another server's nonce.
 * Half of a nonce is random. The other half is a hash of that half, the operator's key and the server's certificate.
 * Before it signs, the client recomputes the hash from the certificate it sees.
 */
import { createHash, type KeyObject, sign, timingSafeEqual } from 'node:crypto';
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { rawKeyOf } from './key-object.js';

const DOMAIN = 'orch-login-v1';
const NONCE_LENGTH = 32;

interface NonceOptions {
  /** Fresh random bytes. */
  readonly random16: Uint8Array;
  readonly operatorKey: PublicKeyHex;
  /** SHA-256 of the SPKI of the server's certificate; null over plain HTTP on loopback. */
  readonly serverSpki: Uint8Array | null;
}

/** Returns 32 bytes for one login of the operator. */
export function makeBoundNonce({ random16, operatorKey, serverSpki }: NonceOptions): Buffer {
  requireLength('the random half of a nonce', random16, 16);
  return Buffer.concat([random16, binding(random16, operatorKey, serverSpki)]);
}

/** Returns true when the server with this certificate made the nonce for this operator. */
export function isBoundNonce(nonce: Uint8Array, operatorKey: PublicKeyHex, serverSpki: Uint8Array | null): boolean {
  if (nonce.length !== NONCE_LENGTH) return false;
  return timingSafeEqual(nonce.subarray(16), binding(nonce.subarray(0, 16), operatorKey, serverSpki));
}

/** Signs a login nonce and returns 128 hex digits. Refuses any other length than 32 bytes. */
export function signNonce(privateKey: KeyObject, nonce: Uint8Array): string {
  requireLength('a login nonce', nonce, NONCE_LENGTH);
  return sign(null, nonce, privateKey).toString('hex');
}

function binding(random16: Uint8Array, operatorKey: PublicKeyHex, serverSpki: Uint8Array | null): Buffer {
  const spki = serverSpki ?? Buffer.alloc(32);
  requireLength('the SPKI hash of a server', spki, 32);
  const hash = createHash('sha256').update(DOMAIN).update(random16).update(rawKeyOf(operatorKey)).update(spki);
  return hash.digest().subarray(0, 16);
}

function requireLength(what: string, bytes: Uint8Array, length: number): void {
  if (bytes.length === length) return;
  throw new Fault('protocol_violation', `${what} has to be ${length} bytes, not ${bytes.length}`);
}
