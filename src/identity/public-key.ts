/** Reads a public key as people give it: 64 hex digits, or the line of an OpenSSH `.pub` file. */
import { Fault } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { weaknessOf } from './acceptable-key.js';
import { publicKeyOfRaw } from './key-object.js';
import { describeSshKeyType, SSH_ED25519 } from './ssh-key-type.js';
import { SshReader } from './ssh-wire.js';

const HINT = 'give the 64 hex digits of an Ed25519 public key, or the "ssh-ed25519 …" line of an OpenSSH .pub file';
/** Far more than a key and its comment need. */
const MAX_LENGTH = 16 * 1024;

/**
 * Throws `invalid_public_key` for anything but an Ed25519 key that is safe to trust.
 * @param what names the place in messages, such as a flag
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
