/** Seals, opens and hashes secret values with the keys of the running orchestrator. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { keepKeys, newSealingKey, replaceKeyFile, type SealingKey, type SecretKeys } from './key-file.js';

/** A sealed text in its stored form. */
export interface Sealed {
  readonly sealed: string;
  readonly key_id: string;
}

export type SealedRecord = Omit<AssociatedData, 'keyId'>;

interface KeyringOptions extends Pick<Core, 'randomBytes'> {
  readonly file: string;
  readonly keys: SecretKeys;
}

/** Hex digits of a stored keyed hash. */
const HASH_DIGITS = 32;

export class Keyring {
  private readonly options: KeyringOptions;
  private keys: SecretKeys;

  constructor(options: KeyringOptions) {
    this.options = options;
    this.keys = options.keys;
  }

  /** Returns the ID of the sealing key. */
  get currentId(): string {
    return this.current.id;
  }

  /** Returns true while the keyring holds former keys, which only open. */
  get isRotating(): boolean {
    return this.keys.sealing.length > 1;
  }

  /** Returns the text sealed with the current key. */
  seal(text: string, record: SealedRecord): Sealed {
    const { id, key } = this.current;
    const { randomBytes } = this.options;
    return { sealed: seal(text, { key, place: { ...record, keyId: id }, randomBytes }), key_id: id };
  }

  /** Returns the decrypted text. Throws `secrets_locked` when its key is missing or it was altered. */
  open({ sealed, key_id: keyId }: Sealed, record: SealedRecord): string {
    const found = this.keys.sealing.find(({ id }) => id === keyId);
    if (found !== undefined) return open(sealed, { key: found.key, place: { ...record, keyId } });
    const { file } = this.options;
    throw new Fault('secrets_locked', `"${record.name}" was sealed with the key ${keyId}, which is not in ${file}`, {
      hint: 'put the secrets.key back that belongs to this store',
    });
  }

  /** Returns 32 hex digits that are equal for equal values of the same secret and reveal nothing else. */
  hash(name: string, value: string): string {
    return this.digest(`${name}\0${value}`).slice(0, HASH_DIGITS);
  }

  /** Returns the keyed hash, in 64 hex digits, of a text that may hold a secret. */
  digest(text: string): string {
    return createHmac('sha256', this.keys.hashKey).update(text).digest('hex');
  }

  /** Adds a key and seals with it from now on. Does nothing while a rotation is in progress. */
  addKey(): void {
    if (this.isRotating) return;
    this.store([...this.keys.sealing, newSealingKey(this.options.randomBytes)]);
  }

  /** Drops all keys except the sealing key. Returns the path of the kept key file; null when there were no other keys. */
  dropOldKeys(): string | null {
    if (!this.isRotating) return null;
    const kept = keepKeys(this.options.file, { ...this.keys, sealing: this.keys.sealing.slice(0, -1) });
    this.store([this.current]);
    return kept;
  }

  private store(sealing: readonly SealingKey[]): void {
    const keys = { ...this.keys, sealing };
    replaceKeyFile(this.options.file, keys);
    this.keys = keys;
  }

  private get current(): SealingKey {
    const last = this.keys.sealing.at(-1);
    if (last === undefined) throw new Error('there is no key for the secrets');
    return last;
  }
}

/** Record that a sealed text is bound to as associated data. None of the strings contains `|`, its separator. */
export interface AssociatedData {
  readonly keyId: string;
  readonly recordId: string;
  readonly name: string;
  readonly version: number;
}

interface SealOptions extends Pick<Core, 'randomBytes'> {
  /** 32 bytes. */
  readonly key: Buffer;
  readonly place: AssociatedData;
}

const VERSION = 1;
const SALT = 16;
const NONCE = 12;
const TAG = 16;

/** Returns the base64 of format version, salt, nonce, ciphertext and tag. */
export function seal(text: string, { key, place, randomBytes }: SealOptions): string {
  const salt = randomBytes(SALT);
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', recordKey(key, salt), nonce, { authTagLength: TAG });
  cipher.setAAD(associated(place));
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), salt, nonce, encrypted, cipher.getAuthTag()]).toString('base64');
}

/** Returns the decrypted text. Throws `secrets_locked` when the text or its place differs from what was sealed. */
export function open(sealed: string, { key, place }: Omit<SealOptions, 'randomBytes'>): string {
  const bytes = Buffer.from(sealed, 'base64');
  if (bytes.length < 1 + SALT + NONCE + TAG || bytes[0] !== VERSION) throw notAsSealed(place);
  const salt = bytes.subarray(1, 1 + SALT);
  const nonce = bytes.subarray(1 + SALT, 1 + SALT + NONCE);
  const encrypted = bytes.subarray(1 + SALT + NONCE, -TAG);
  const decipher = createDecipheriv('aes-256-gcm', recordKey(key, salt), nonce, { authTagLength: TAG });
  decipher.setAAD(associated(place));
  decipher.setAuthTag(bytes.subarray(-TAG));
  try {
    return Buffer.concat([decipher.update(encrypted), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw notAsSealed(place, cause);
  }
}

const recordKey = (key: Buffer, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, 'orch-secret-v1', 32));

const associated = ({ keyId, recordId, name, version }: AssociatedData): Buffer =>
  Buffer.from([VERSION, keyId, recordId, name, version].join('|'));

const notAsSealed = ({ name }: AssociatedData, cause?: unknown): Fault =>
  new Fault('secrets_locked', `"${name}" cannot be decrypted: it was altered in the store, or another key sealed it`, {
    cause,
  });
