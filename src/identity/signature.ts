/** Verifies Ed25519 signatures strictly. */
import { type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import type { PublicKeyHex } from '../kernel/ids.js';
import { isForgeableKey } from './acceptable-key.js';
import { keyObjectOf, rawKeyOf } from './key-object.js';

/** Tells whether a text has the form of a signature: 64 bytes in hex. */
export const isSignatureHex = (text: string): boolean => /^[0-9a-fA-F]{128}$/.test(text);

/**
 * True only for a well-formed, canonical signature (RFC 8032: S below the group order, R compared as bytes) of a key
 * that nobody can forge for.
 */
export function verifySignature(key: PublicKeyHex, message: Uint8Array, signatureHex: string): boolean {
  if (!isSignatureHex(signatureHex) || isForgeableKey(rawKeyOf(key))) return false;
  return verify(null, message, keyObjectOf(key), Buffer.from(signatureHex, 'hex'));
}

const verifyInThread = promisify(verify);

/**
 * Returns the same test as `verifySignature` for many messages of which one was signed. It runs beside the event loop; the
 * key is looked at when the first message comes.
 */
export function signatureTest(key: PublicKeyHex, signatureHex: string): (message: Uint8Array) => Promise<boolean> {
  let keyObject: KeyObject | null | undefined;
  const signature = Buffer.from(signatureHex, 'hex');
  return async (message) => {
    if (keyObject === undefined) {
      const isUsable = isSignatureHex(signatureHex) && !isForgeableKey(rawKeyOf(key));
      keyObject = isUsable ? keyObjectOf(key) : null;
    }
    return keyObject !== null && (await verifyInThread(null, message, keyObject, signature));
  };
}
