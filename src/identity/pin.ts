/** The one key that may be at the other end, kept in a file: pinned once, and never replaced by anything but a person. */
import { Fault, isFault, systemCodeOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { createPrivateFile, readPrivateFile } from './private-file.js';
import { parsePublicKey } from './public-key.js';

const REPIN =
  'if the orchestrator really has a new key: stop the agent, forget the pinned key as root with "orch agent repin", and start the agent with the new one';

/** The pinned key, or null when there is no pin yet. A pin that cannot be read is a fault, not a missing one. */
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

/** Pins a key that the peer has proved. Throws `pin_mismatch` when another one is pinned. */
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

/** Throws `pin_mismatch` unless the peer shows the pinned key. `where` names the peer, such as `host:port`. */
export function requirePinned(pinned: PublicKeyHex, shown: PublicKeyHex, where: string): void {
  if (shown !== pinned) throw mismatch(pinned, shown, `${where} shows the key ${shown}, but ${pinned} is pinned`);
}

const mismatch = (pinned: PublicKeyHex, shown: PublicKeyHex, message: string): Fault =>
  new Fault('pin_mismatch', message, { hint: REPIN, data: { pinned, shown } });
