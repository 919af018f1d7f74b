/** Ed25519 keys between Node's key objects and the hex form that the rest of the program uses. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { Fault } from '../kernel/fault.js';
import { isPublicKeyHex, type PublicKeyHex } from '../kernel/ids.js';

/** DER of everything before the 32 raw bytes of an Ed25519 SubjectPublicKeyInfo (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * The public key of a public or private Ed25519 key object. It is not checked for weakness.
 * Throws `invalid_public_key` for any other kind of key.
 */
export function publicKeyOfKeyObject(key: KeyObject): PublicKeyHex {
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new Fault('invalid_public_key', `the key is ${key.asymmetricKeyType ?? key.type}, not Ed25519`);
  }
  const spki = (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' });
  return publicKeyOfRaw(spki.subarray(-32));
}

/** The public key of its 32 raw bytes, unchecked for weakness. */
export function publicKeyOfRaw(raw: Uint8Array): PublicKeyHex {
  const hex = Buffer.from(raw).toString('hex');
  if (!isPublicKeyHex(hex)) throw new Fault('invalid_public_key', `the key is ${raw.length} bytes long, not 32`);
  return hex;
}

/** The 32 raw bytes. */
export const rawKeyOf = (key: PublicKeyHex): Buffer => Buffer.from(key, 'hex');

/** A key object to verify signatures with. */
export const keyObjectOf = (key: PublicKeyHex): KeyObject =>
  createPublicKey({ key: Buffer.concat([SPKI_PREFIX, rawKeyOf(key)]), format: 'der', type: 'spki' });
