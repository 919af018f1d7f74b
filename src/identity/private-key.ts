/** Private keys as PEM text: made, read and written. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { Fault, type FaultOptions, isFault } from '../kernel/fault.js';
import { encryptedPem } from './encrypted-key.js';

/** `ed25519` identifies agents, operators and orchestrators; `p256` is for the API's TLS. */
export type KeyType = 'ed25519' | 'p256';

/** Node's own limit, in bytes. */
const MAX_PASSPHRASE = 1024;

export function generateKey(type: KeyType = 'ed25519'): KeyObject {
  return type === 'ed25519'
    ? generateKeyPairSync('ed25519').privateKey
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

/** True when a passphrase is needed to read this PEM. */
export const isEncrypted = (pem: string): boolean =>
  /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem);

/** True for the fault of a key that is encrypted and was read without a passphrase: ask for it and try again. */
export const wantsPassphrase = (error: unknown): boolean =>
  isFault(error, 'key_invalid') && error.data?.reason === 'passphrase_required';

export interface ParseKeyOptions {
  readonly passphrase?: string | undefined;
  /** Where the text came from, for messages: a path, or the name of a variable. */
  readonly source: string;
  readonly type?: KeyType | undefined;
}

/**
 * Reads a private key from PEM. Throws `key_invalid`, with `data.reason` `passphrase_required` or `passphrase_wrong`
 * when that is all that is amiss.
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

/** PEM of a private key; encrypted unless the passphrase is missing or empty. Throws `usage` for one that is too long. */
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
