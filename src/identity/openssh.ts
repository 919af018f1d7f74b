/** Reads OpenSSH's key formats: private key files (`openssh-key-v1`), their wire encoding and key type names. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { Fault, shellWord } from '../kernel/fault.js';
import { publicKeyOfKeyObject } from './key-object.js';
import { readPrivateFile } from './private-file.js';

const MAGIC = 'openssh-key-v1\0';
const ARMOUR = /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END OPENSSH PRIVATE KEY-----/;
/** DER of everything before the 32-byte seed of an Ed25519 private key in PKCS#8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

type Refuse = (why: string, hint?: string) => Fault;

/** Loads a key file such as `~/.ssh/id_ed25519`. Another user may own the file, but only its owner may have access. */
export const importOpensshKey = (path: string): KeyObject =>
  parseOpensshKey(readPrivateFile(path, { anyOwner: true }), path);

/**
 * Parses an Ed25519 private key. Throws `key_invalid` for other key types, damaged keys and keys with a passphrase:
 * Node lacks OpenSSH's key derivation, so the hint shows how to make a copy without a passphrase.
 * @param source origin of the text, for messages
 */
export function parseOpensshKey(text: string, source: string): KeyObject {
  const refuse: Refuse = (why, hint) => new Fault('key_invalid', `${source} ${why}`, hint ? { hint } : {});
  const base64 = ARMOUR.exec(text)?.[1];
  if (!base64) throw refuseOtherContent(text, refuse);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.subarray(0, MAGIC.length).toString('latin1') !== MAGIC) throw refuse('is a damaged OpenSSH key');
  const reader = new SshReader(bytes.subarray(MAGIC.length), refuse);
  const cipher = reader.text();
  reader.string(); // the name of the key derivation
  reader.string(); // its parameters
  const count = reader.uint32();
  if (count !== 1) throw refuse(`holds ${count} keys, not one`);
  requireEd25519(new SshReader(reader.string(), refuse).text(), refuse);
  if (cipher !== 'none') throw encrypted(source, refuse);
  return readPrivatePart(new SshReader(reader.string(), refuse), refuse);
}

function readPrivatePart(reader: SshReader, refuse: Refuse): KeyObject {
  const check = reader.uint32();
  if (reader.uint32() !== check) throw refuse('is a damaged OpenSSH key: its check numbers differ');
  requireEd25519(reader.text(), refuse);
  const publicHalf = reader.string();
  const seed = reader.string().subarray(0, 32);
  if (seed.length !== 32) throw refuse('is a damaged OpenSSH key: its private half is too short');
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  if (publicKeyOfKeyObject(key) !== publicHalf.toString('hex')) {
    throw refuse('is a damaged OpenSSH key: its halves do not belong together');
  }
  return key;
}

function requireEd25519(type: string, refuse: Refuse): void {
  if (type === SSH_ED25519) return;
  throw refuse(
    `is ${describeSshKeyType(type) ?? 'a key of an unknown type'}, not a plain Ed25519 key`,
    'make one with: ssh-keygen -t ed25519',
  );
}

function refuseOtherContent(text: string, refuse: Refuse): Fault {
  if (text.trim() === '') return refuse('is empty');
  if (/^(ssh-|ecdsa-|sk-)/.test(text)) return refuse('is a public key', 'name the file without .pub');
  if (/-----BEGIN OPENSSH PRIVATE KEY-----/.test(text)) return refuse('is a damaged OpenSSH key');
  return refuse('is not an OpenSSH private key');
}

function encrypted(source: string, refuse: Refuse): Fault {
  return refuse(
    'is protected by a passphrase, in a way that orch cannot open',
    `take it off a copy, import that and delete it: cp -p ${shellWord(source)} COPY && ssh-keygen -p -N '' -f COPY`,
  );
}

/** Reads the data types of the SSH protocol (RFC 4251, section 5). */
export class SshReader {
  private readonly bytes: Buffer;
  private readonly fail: (why: string) => Fault;
  private offset = 0;

  /** @param fail makes the fault for bytes that end too early */
  constructor(bytes: Buffer, fail: (why: string) => Fault) {
    this.bytes = bytes;
    this.fail = fail;
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  /** Reads a byte string with a length prefix. */
  string(): Buffer {
    return this.take(this.uint32());
  }

  /** Reads a string of ASCII characters. */
  text(): string {
    return this.string().toString('latin1');
  }

  /** Reads all remaining bytes. */
  rest(): Buffer {
    return this.take(this.bytes.length - this.offset);
  }

  private take(length: number): Buffer {
    if (length > this.bytes.length - this.offset) throw this.fail('is cut short');
    const from = this.offset;
    this.offset += length;
    return this.bytes.subarray(from, this.offset);
  }
}

/** Names of OpenSSH key types, for errors about unsupported keys. */

export const SSH_ED25519 = 'ssh-ed25519';

const NAMES: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/-cert-v01@openssh\.com$/, 'an OpenSSH certificate'],
  [/^sk-/, 'held by a security key, whose signatures differ'],
  [/^ssh-rsa$/, 'an RSA key'],
  [/^ssh-dss$/, 'a DSA key'],
  [/^ecdsa-sha2-/, 'an ECDSA key'],
];

/** Describes a key type for a sentence that begins with "is"; null for an unknown word. */
export function describeSshKeyType(type: string): string | null {
  if (type === SSH_ED25519) return 'an Ed25519 key';
  return NAMES.find(([pattern]) => pattern.test(type))?.[1] ?? null;
}
