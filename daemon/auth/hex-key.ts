/** Public keys as the API takes them: in hex and no other form. */
import { parsePublicKey } from '../../src/identity/public-key.js';
import { Fault } from '../../src/kernel/fault.js';
import { isPublicKeyHex, type PublicKeyHex } from '../../src/kernel/ids.js';

/** Throws `invalid_public_key` for anything but the hex of an Ed25519 key that is safe to trust. */
export const parseHexKey = (text: string): PublicKeyHex => parsePublicKey(formOfHexKey(text), 'public_key');

/**
 * The key in lower case, of which only the form is checked: enough to look for it among keys that were checked when they
 * were added, and a hundred times as fast. Throws `invalid_public_key`.
 */
export function formOfHexKey(text: string): PublicKeyHex {
  const key = text.toLowerCase();
  if (isPublicKeyHex(key)) return key;
  throw new Fault('invalid_public_key', 'public_key is not a public key in hex', {
    hint: 'send the 64 hex digits of a raw Ed25519 public key',
  });
}
