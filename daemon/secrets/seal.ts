/**
 * Seals a text with AES-256-GCM under a key of its own, made with HKDF-SHA256 from the key-encryption key and a fresh
 * salt. A sealed text opens only in its place: under the same key, for the same record, name and version.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';

/** Where a sealed text belongs. None of the texts holds a `|`. */
export interface Place {
  readonly keyId: string;
  readonly recordId: string;
  readonly name: string;
  readonly version: number;
}

export interface SealOptions extends Pick<Core, 'randomBytes'> {
  /** 32 bytes. */
  readonly key: Buffer;
  readonly place: Place;
}

const VERSION = 1;
const SALT = 16;
const NONCE = 12;
const TAG = 16;

/** Base64 of the version, the salt, the nonce, the encrypted text and the tag. */
export function seal(text: string, { key, place, randomBytes }: SealOptions): string {
  const salt = randomBytes(SALT);
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', recordKey(key, salt), nonce, { authTagLength: TAG });
  cipher.setAAD(associated(place));
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), salt, nonce, encrypted, cipher.getAuthTag()]).toString('base64');
}

/** Throws `secrets_locked` when anything about it is not as it was sealed. */
export function open(sealed: string, { key, place }: Omit<SealOptions, 'randomBytes'>): string {
  const bytes = Buffer.from(sealed, 'base64');
  if (bytes.length < 1 + SALT + NONCE + TAG || bytes[0] !== VERSION) throw notAsSealed(place);
  const salt = bytes.subarray(1, 1 + SALT);
  const nonce = bytes.subarray(1 + SALT, 1 + SALT + NONCE);
  const encrypted = bytes.subarray(1 + SALT + NONCE, -TAG);
  const decipher = createDecipheriv('aes-256-gcm', recordKey(key, salt), nonce, { authTagLength: TAG });
  decipher.setAAD(associated(place));
  decipher.setAuthTag(bytes.subarray(-TAG));
  try {
    return Buffer.concat([decipher.update(encrypted), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw notAsSealed(place, cause);
  }
}

const recordKey = (key: Buffer, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, 'orch-secret-v1', 32));

const associated = ({ keyId, recordId, name, version }: Place): Buffer =>
  Buffer.from([VERSION, keyId, recordId, name, version].join('|'));

const notAsSealed = ({ name }: Place, cause?: unknown): Fault =>
  new Fault('secrets_locked', `"${name}" cannot be decrypted: it was altered in the store, or another key sealed it`, {
    cause,
  });
