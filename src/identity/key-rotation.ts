/** The proof that an operator who rotates a key holds the new one, so that a mistyped key cannot lock the operator out. */
import { type KeyObject, sign } from 'node:crypto';
import type { PublicKeyHex } from '../kernel/ids.js';
import { publicKeyOfKeyObject, rawKeyOf } from './key-object.js';

const DOMAIN = 'orch-rotate-key-v1\0';

/** Returns the bytes that the new key signs. They name both keys, so that the proof is of use for this rotation alone. */
export const rotationMessage = (from: PublicKeyHex, to: PublicKeyHex): Buffer =>
  Buffer.concat([Buffer.from(DOMAIN), rawKeyOf(from), rawKeyOf(to)]);

/** Signs the rotation from a public key to this private key. Returns 128 hex digits. */
export const proveRotation = (from: PublicKeyHex, to: KeyObject): string =>
  sign(null, rotationMessage(from, publicKeyOfKeyObject(to)), to).toString('hex');
