/**
 * Nonces that are bound to the server's TLS key, so that an evil server cannot pass on another server's nonce to be
 * signed: half of it is random, the other half follows from that, the operator's key and the certificate the server
 * knows it shows. The client recomputes it from the certificate it sees, before it signs.
 */
import { createHash, type KeyObject, sign, timingSafeEqual } from 'node:crypto';
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { rawKeyOf } from './key-object.js';

const DOMAIN = 'orch-login-v1';
const NONCE_LENGTH = 32;

export interface NonceOptions {
  /** 16 fresh random bytes. */
  readonly random16: Uint8Array;
  readonly operatorKey: PublicKeyHex;
  /** SHA-256 of the SPKI of the certificate that clients see; null over plain HTTP on loopback. */
  readonly serverSpki: Uint8Array | null;
}

/** 32 bytes for one login of that operator. */
export function makeBoundNonce({ random16, operatorKey, serverSpki }: NonceOptions): Buffer {
  requireLength('the random half of a nonce', random16, 16);
  return Buffer.concat([random16, binding(random16, operatorKey, serverSpki)]);
}

/** Tells whether a nonce was made for this operator by the server with this certificate. */
export function isBoundNonce(nonce: Uint8Array, operatorKey: PublicKeyHex, serverSpki: Uint8Array | null): boolean {
  if (nonce.length !== NONCE_LENGTH) return false;
  return timingSafeEqual(nonce.subarray(16), binding(nonce.subarray(0, 16), operatorKey, serverSpki));
}

/** The signature to log in with, 128 hex digits. Signs nothing but 32 bytes. */
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
