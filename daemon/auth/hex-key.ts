/** Public keys as the API takes them: in hex and no other form. */
import { parsePublicKey } from '../../src/identity/public-key.js';
import { Fault } from '../../src/kernel/fault.js';
import { PUBLIC_KEY_PATTERN } from '../../src/kernel/identifiers.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

/** Throws `invalid_public_key` for anything but the hex of an Ed25519 key that is safe to trust. */
export function parseHexKey(text: string): PublicKeyHex {
  if (new RegExp(PUBLIC_KEY_PATTERN).test(text)) return parsePublicKey(text, 'public_key');
  throw new Fault('invalid_public_key', 'public_key is not a public key in hex', {
    hint: 'send the 64 hex digits of a raw Ed25519 public key',
  });
}
