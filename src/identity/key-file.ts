/** Private keys in files: `identity.key`, `operator.key`, and the key of the API's TLS. */
import type { KeyObject } from 'node:crypto';
import { isFault, systemCodeOf } from '../kernel/fault.js';
import { createPrivateFile, readPrivateFile } from './private-file.js';
import { generateKey, type KeyType, parsePrivateKey, privateKeyPem } from './private-key.js';

export interface LoadKeyOptions {
  readonly passphrase?: string | undefined;
  readonly type?: KeyType | undefined;
}

/**
 * The key in a file. Throws `key_unreadable`, `key_permissions` or `key_invalid`; see `wantsPassphrase` for one that
 * is encrypted.
 */
export function loadKey(path: string, options: LoadKeyOptions = {}): KeyObject {
  return parsePrivateKey(readPrivateFile(path), { ...options, source: path });
}

/** Writes a key to a file that is not there yet, else throws `key_exists`. */
export function writeNewKey(path: string, key: KeyObject, { passphrase }: LoadKeyOptions = {}): void {
  createPrivateFile(path, privateKeyPem(key, passphrase));
}

/**
 * The key in a file, made at the first call. When two processes come at the same time, both get the same key. A
 * file that is there but damaged or too open is refused, never replaced.
 */
export function loadOrCreateKey(path: string, type: KeyType = 'ed25519'): KeyObject {
  try {
    return loadKey(path, { type });
  } catch (error) {
    if (!isFault(error, 'key_unreadable') || systemCodeOf(error.cause) !== 'ENOENT') throw error;
  }
  try {
    writeNewKey(path, generateKey(type));
  } catch (error) {
    if (!isFault(error, 'key_exists')) throw error;
  }
  return loadKey(path, { type });
}
