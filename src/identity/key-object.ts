/** Converts Ed25519 keys between Node's key objects and hex, and derives ids from them. Loads no curve library. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { Fault } from '../kernel/fault.js';
import { isPublicKeyHex, type NodeId, type OperatorId, type PublicKeyHex } from '../kernel/ids.js';

/** DER of everything before the 32 raw bytes of an Ed25519 SubjectPublicKeyInfo (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * Returns the public key of a public or private Ed25519 key object, without checking it for weakness.
 * Throws `invalid_public_key` for any other kind of key.
 */
export function publicKeyOfKeyObject(key: KeyObject): PublicKeyHex {
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new Fault('invalid_public_key', `the key is ${key.asymmetricKeyType ?? key.type}, not Ed25519`);
  }
  const spki = (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' });
  return publicKeyOfRaw(spki.subarray(-32));
}

/** Returns the public key of 32 raw bytes, without checking it for weakness. */
export function publicKeyOfRaw(raw: Uint8Array): PublicKeyHex {
  const hex = Buffer.from(raw).toString('hex');
  if (!isPublicKeyHex(hex)) throw new Fault('invalid_public_key', `the key is ${raw.length} bytes long, not 32`);
  return hex;
}

/** The 32 raw bytes. */
export const rawKeyOf = (key: PublicKeyHex): Buffer => Buffer.from(key, 'hex');

/** Returns a key object for verifying signatures. */
export const keyObjectOf = (key: PublicKeyHex): KeyObject =>
  createPublicKey({ key: Buffer.concat([SPKI_PREFIX, rawKeyOf(key)]), format: 'der', type: 'spki' });

/** Derives the node ID of an agent's public key. */
export const nodeIdOf = (key: PublicKeyHex): NodeId => idOf(key) as NodeId;

export const operatorIdOf = (key: PublicKeyHex): OperatorId => idOf(key) as OperatorId;

/** Splits an ID or key into groups of four characters, for reading aloud. */
export const groupsOfFour = (hex: string): string => hex.match(/.{1,4}/g)?.join(' ') ?? '';

const idOf = (key: PublicKeyHex): string =>
  createHash('sha256').update(rawKeyOf(key)).digest().subarray(0, 16).toString('hex');
