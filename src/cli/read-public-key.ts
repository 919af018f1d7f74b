/** A public key as it was typed. */
import { parsePublicKey } from '../identity/public-key.js';
import { Fault, isFault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';

/** What is no key is a mistake in the command, of which nothing was sent. @throws Fault `usage` naming `label` */
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
