/** The pinned public key of the peer, in a file. Only a person replaces a pin. */
import { Fault, isFault, systemCodeOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { createPrivateFile, readPrivateFile } from './private-file.js';
import { parsePublicKey } from './public-key.js';

const REPIN =
  'if the orchestrator really has a new key: stop the agent, forget the pinned key as root with "orch agent repin", and start the agent with the new one';

/** Returns the pinned key, or null without a pin file. Throws for a pin file that cannot be read. */
export function readPin(path: string): PublicKeyHex | null {
  let text: string;
  try {
    text = readPrivateFile(path);
  } catch (error) {
    if (isFault(error, 'key_unreadable') && systemCodeOf(error.cause) === 'ENOENT') return null;
    throw error;
  }
  try {
    return parsePublicKey(text, path);
  } catch (cause) {
    throw new Fault('key_invalid', `${path} holds no usable key`, { hint: REPIN, cause });
  }
}

/** Pins a key that the peer has proved. Throws `pin_mismatch` when another key is pinned. */
export function writePin(path: string, key: PublicKeyHex): void {
  try {
    createPrivateFile(path, `${key}\n`);
  } catch (error) {
    if (!isFault(error, 'key_exists')) throw error;
    const pinned = readPin(path);
    if (!pinned) throw error;
    if (pinned !== key) throw mismatch(pinned, key, `${path} pins ${pinned}, not ${key}`);
  }
}

/** Throws `pin_mismatch` unless the peer shows the pinned key. `where` is the peer's address, such as `host:port`. */
export function requirePinned(pinned: PublicKeyHex, shown: PublicKeyHex, where: string): void {
  if (shown !== pinned) throw mismatch(pinned, shown, `${where} shows the key ${shown}, but ${pinned} is pinned`);
}

const mismatch = (pinned: PublicKeyHex, shown: PublicKeyHex, message: string): Fault =>
  new Fault('pin_mismatch', message, { hint: REPIN, data: { pinned, shown } });
