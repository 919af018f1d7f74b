/**
 * Parses public keys from people and checks that they are safe. Node verifies signatures of small-order keys, which anyone
 * can forge, so every key from outside is checked here (about 1 ms each).
 */

import { Point } from '@noble/ed25519';
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { publicKeyOfRaw } from './key-object.js';
import { describeSshKeyType, SSH_ED25519, SshReader } from './openssh.js';

const HINT = 'give the 64 hex digits of an Ed25519 public key, or the "ssh-ed25519 …" line of an OpenSSH .pub file';
/** Maximum length of the text; a key with its comment is far shorter. */
const MAX_LENGTH = 16 * 1024;

/**
 * Parses 64 hex digits or the line of an OpenSSH `.pub` file. Throws `invalid_public_key` for anything but a safe Ed25519 key.
 * @param what names the source in messages, such as a flag
 */
export function parsePublicKey(text: string, what = 'the public key'): PublicKeyHex {
  const refuse = (why: string): Fault => new Fault('invalid_public_key', `${what} ${why}`, { hint: HINT });
  const raw = readRaw(text.slice(0, MAX_LENGTH + 1).trim(), refuse);
  const weakness = weaknessOf(raw);
  if (weakness) throw refuse(weakness);
  return publicKeyOfRaw(raw);
}

function readRaw(text: string, refuse: (why: string) => Fault): Buffer {
  if (text === '') throw refuse('is empty');
  if (text.length > MAX_LENGTH) throw refuse('is too long to be a key');
  if (/^[0-9a-fA-F]+$/.test(text)) {
    if (text.length !== 64) throw refuse(`has ${text.length} hex digits, not 64`);
    return Buffer.from(text, 'hex');
  }
  if (/PRIVATE KEY-----/.test(text))
    throw refuse('is a private key, which belongs in no other place than its own file');
  if (/^-----BEGIN /.test(text)) throw refuse('is in PEM form');
  if (/[\r\n]/.test(text)) throw refuse('has more than one line');
  return readSshLine(text, refuse);
}

function readSshLine(line: string, refuse: (why: string) => Fault): Buffer {
  const [type = '', base64 = ''] = line.split(/[ \t]+/);
  const kind = describeSshKeyType(type);
  if (!kind) throw refuse('is neither hex nor an OpenSSH public key line');
  if (type !== SSH_ED25519) throw refuse(`is ${kind}, not a plain Ed25519 key`);
  if (base64 === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) throw refuse(`has no base64 after "${SSH_ED25519}"`);
  const reader = new SshReader(Buffer.from(base64, 'base64'), refuse);
  if (reader.text() !== SSH_ED25519) throw refuse('says another key type inside than in front');
  const raw = reader.string();
  if (reader.rest().length > 0) throw refuse('has bytes after its end');
  return raw;
}

/** Returns why a raw key is unsafe, for a sentence that begins with the key ("is …"); null for a safe key. */
function weaknessOf(raw: Uint8Array): string | null {
  if (raw.length !== 32) return `is ${raw.length} bytes long, not 32`;
  const point = decode(raw);
  if (!point) return 'is not the canonical form of a point on the Ed25519 curve';
  if (point.isSmallOrder()) return 'is of small order, so that anyone could sign in its name';
  if (!point.isTorsionFree()) return 'is not in the prime-order group of Ed25519';
  return null;
}

/** Returns true for a canonical point of the prime-order group. */
export const isAcceptableKey = (raw: Uint8Array): boolean => weaknessOf(raw) === null;

/** Returns true unless the key is a canonical point of large order; 20 times as fast as `isAcceptableKey`. */
export function isForgeableKey(raw: Uint8Array): boolean {
  return decode(raw)?.isSmallOrder() ?? true;
}

function decode(raw: Uint8Array): Point | null {
  try {
    return Point.fromBytes(raw);
  } catch {
    return null;
  }
}
