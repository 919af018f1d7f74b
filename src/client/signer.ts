/** Who can sign a login: the operator's key in a file or a variable. */

import type { KeyObject } from 'node:crypto';
import { loadKey } from '../identity/key-file.js';
import { publicKeyOfKeyObject } from '../identity/key-object.js';
import { signNonce } from '../identity/login-binding.js';
import { parsePrivateKey } from '../identity/private-key.js';
import { Fault, isFault, systemCodeOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import type { KeySource } from './connection.js';

/** A key that may be elsewhere, for instance in an ssh-agent. */
export interface Signer {
  readonly publicKey: PublicKeyHex;
  /** Signs the 32 bytes of a login nonce: 128 hex digits. */
  sign(nonce: Uint8Array): Promise<string>;
}

/**
 * The signer of a key source. Throws `key_unreadable`, `key_permissions` or `key_invalid`; see `wantsPassphrase` in
 * `src/identity/private-key.ts` for a key that is encrypted: ask, and call again with the passphrase.
 */
export function openSigner(source: KeySource, passphrase?: string): Signer {
  const key = open(source, passphrase);
  return { publicKey: publicKeyOfKeyObject(key), sign: async (nonce) => signNonce(key, nonce) };
}

function open(source: KeySource, passphrase: string | undefined): KeyObject {
  if (source.kind === 'pem') return parsePrivateKey(source.pem, { source: source.from, passphrase });
  try {
    return loadKey(source.path, { passphrase });
  } catch (error) {
    if (!isFault(error, 'key_unreadable') || systemCodeOf(error.cause) !== 'ENOENT') throw error;
    throw new Fault('key_unreadable', `there is no operator key at ${source.path} (from ${source.from})`, {
      hint: 'make one with: orch operator init, or name another one with --key-file',
      cause: error.cause,
    });
  }
}
