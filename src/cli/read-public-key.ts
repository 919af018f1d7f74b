/** Parses public keys as operators type them. */
import { parsePublicKey } from '../identity/public-key.js';
import { Fault, isFault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';

/** Parses a public key. @throws Fault `usage` naming `label` */
export function readPublicKey(text: string, label: string): PublicKeyHex {
  try {
    return parsePublicKey(text, label);
  } catch (error) {
    if (!isFault(error)) throw error;
    throw new Fault('usage', error.message, {
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      cause: error,
    });
  }
}
