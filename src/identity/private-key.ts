/** Private keys: generation, PEM text, encryption with a passphrase, and key files. */
import {
  createCipheriv,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  scryptSync,
} from 'node:crypto';
import { Fault, type FaultOptions, isFault, systemCodeOf } from '../kernel/fault.js';
import { integer, objectId, octetString, sequence } from './der.js';
import { createPrivateFile, readPrivateFile } from './private-file.js';

/** `ed25519` identifies agents, operators and orchestrators; `p256` is for the API's TLS. */
type KeyType = 'ed25519' | 'p256';

/** Node's limit in bytes. */
const MAX_PASSPHRASE = 1024;

export function generateKey(type: KeyType = 'ed25519'): KeyObject {
  return type === 'ed25519'
    ? generateKeyPairSync('ed25519').privateKey
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

/** Returns true when reading this PEM needs a passphrase. */
export const isEncrypted = (pem: string): boolean =>
  /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem);

/** Returns true for the fault of an encrypted key that was read without a passphrase. The caller asks and tries again. */
export const wantsPassphrase = (error: unknown): boolean =>
  isFault(error, 'key_invalid') && error.data?.reason === 'passphrase_required';

interface ParseKeyOptions {
  readonly passphrase?: string | undefined;
  /** Origin of the text, for messages: a path or the name of a variable. */
  readonly source: string;
  readonly type?: KeyType | undefined;
}

/**
 * Parses a private key from PEM. Throws `key_invalid`, with `data.reason` `passphrase_required` or `passphrase_wrong`
 * when the passphrase is the only problem.
 */
export function parsePrivateKey(pem: string, options: ParseKeyOptions): KeyObject {
  const { passphrase, source, type = 'ed25519' } = options;
  refuseOtherContent(pem, source);
  const encrypted = isEncrypted(pem);
  if (encrypted && !passphrase) {
    throw invalid(source, 'is encrypted with a passphrase', { data: { reason: 'passphrase_required' } });
  }
  const key = open(pem, encrypted ? passphrase : undefined, source);
  if (typeOf(key) !== type) throw invalid(source, `holds ${describe(key)}, not ${NAMES[type]}`);
  return key;
}

/** Returns the PEM of a private key, encrypted unless the passphrase is empty. Throws `usage` for a long passphrase. */
export function privateKeyPem(key: KeyObject, passphrase = ''): string {
  if (passphrase === '') return key.export({ type: 'pkcs8', format: 'pem' }).toString();
  if (Buffer.byteLength(passphrase) > MAX_PASSPHRASE) {
    throw new Fault('usage', `the passphrase is longer than ${MAX_PASSPHRASE} bytes`);
  }
  return encryptedPem(key, passphrase);
}

const NAMES: Readonly<Record<KeyType, string>> = { ed25519: 'an Ed25519 key', p256: 'an ECDSA P-256 key' };

function refuseOtherContent(pem: string, source: string): void {
  if (pem.trim() === '') throw invalid(source, 'is empty');
  if (/-----BEGIN OPENSSH PRIVATE KEY-----/.test(pem)) {
    throw invalid(source, 'is an OpenSSH key', { hint: 'import it with: orch operator init --from-ssh FILE' });
  }
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) throw invalid(source, 'holds no private key in PEM form');
}

function open(pem: string, passphrase: string | undefined, source: string): KeyObject {
  try {
    return createPrivateKey({ key: pem, format: 'pem', ...(passphrase ? { passphrase } : {}) });
  } catch (cause) {
    if (passphrase)
      throw invalid(source, 'does not open with this passphrase', { data: { reason: 'passphrase_wrong' } });
    throw invalid(source, 'cannot be read as a private key', { cause });
  }
}

function typeOf(key: KeyObject): KeyType | null {
  if (key.asymmetricKeyType === 'ed25519') return 'ed25519';
  return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? 'p256' : null;
}

function describe(key: KeyObject): string {
  const type = typeOf(key);
  return type ? NAMES[type] : `a key of type ${key.asymmetricKeyType ?? key.type}`;
}

const invalid = (source: string, why: string, options: FaultOptions = {}): Fault =>
  new Fault('key_invalid', `${source} ${why}`, options);

interface LoadKeyOptions {
  readonly passphrase?: string | undefined;
  readonly type?: KeyType | undefined;
}

/**
 * Loads a key file. Throws `key_unreadable`, `key_permissions` or `key_invalid`; `wantsPassphrase` recognises the fault
 * of an encrypted key.
 */
export function loadKey(path: string, options: LoadKeyOptions = {}): KeyObject {
  return parsePrivateKey(readPrivateFile(path), { ...options, source: path });
}

/** Writes a new key file. Throws `key_exists` for an existing one. */
export function writeNewKey(path: string, key: KeyObject, { passphrase }: LoadKeyOptions = {}): void {
  createPrivateFile(path, privateKeyPem(key, passphrase));
}

/**
 * Loads a key file, or creates it at the first call. Two processes at the same time get the same key. A damaged file or
 * one that other users may read is refused, never replaced.
 */
export function loadOrCreateKey(path: string, type: KeyType = 'ed25519'): KeyObject {
  try {
    return loadKey(path, { type });
  } catch (error) {
    if (!isFault(error, 'key_unreadable') || systemCodeOf(error.cause) !== 'ENOENT') throw error;
  }
  try {
    writeNewKey(path, generateKey(type));
  } catch (error) {
    if (!isFault(error, 'key_exists')) throw error;
  }
  return loadKey(path, { type });
}

/** Costs 16 MiB and about 0.2 s a guess; OpenSSL allows 32 MiB when it reads. */
const SCRYPT = { N: 2 ** 14, r: 8, p: 5 } as const;

/**
 * Encrypts a key as PKCS#8 with PBES2, scrypt and AES-256-CBC, which every OpenSSL since 1.1 reads. Node's own export uses
 * only 2,048 rounds of PBKDF2, a thousandth of the work.
 */
function encryptedPem(key: KeyObject, passphrase: string): string {
  const salt = randomBytes(16);
  const iv = randomBytes(16);
  const secret = scryptSync(Buffer.from(passphrase, 'utf8'), salt, 32, SCRYPT);
  const cipher = createCipheriv('aes-256-cbc', secret, iv);
  const content = Buffer.concat([cipher.update(key.export({ type: 'pkcs8', format: 'der' })), cipher.final()]);
  const der = sequence(algorithm(salt, iv), octetString(content));
  const base64 = der.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${base64}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
}

function algorithm(salt: Buffer, iv: Buffer): Buffer {
  const scrypt = sequence(octetString(salt), integer(SCRYPT.N), integer(SCRYPT.r), integer(SCRYPT.p));
  const stretch = sequence(objectId('1.3.6.1.4.1.11591.4.11'), scrypt);
  const cipher = sequence(objectId('2.16.840.1.101.3.4.1.42'), octetString(iv));
  return sequence(objectId('1.2.840.113549.1.5.13'), sequence(stretch, cipher));
}
