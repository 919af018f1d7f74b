/** The keys of the secrets while the orchestrator runs: seals, opens, and tells values apart. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { keepKeys, newSealingKey, replaceKeyFile, type SealingKey, type SecretKeys } from './key-file.js';

/** A sealed text as it is stored. */
export interface Sealed {
  readonly sealed: string;
  readonly key_id: string;
}

export type Belonging = Omit<Place, 'keyId'>;

interface KeyringOptions extends Pick<Core, 'randomBytes'> {
  readonly file: string;
  readonly keys: SecretKeys;
}

/** Characters of a keyed hash as it is stored. */
const HASH_DIGITS = 32;

export class Keyring {
  private readonly options: KeyringOptions;
  private keys: SecretKeys;

  constructor(options: KeyringOptions) {
    this.options = options;
    this.keys = options.keys;
  }

  /** Of the key that seals. */
  get currentId(): string {
    return this.current.id;
  }

  /** True while keys are there that only open. */
  get isRotating(): boolean {
    return this.keys.sealing.length > 1;
  }

  seal(text: string, belonging: Belonging): Sealed {
    const { id, key } = this.current;
    const { randomBytes } = this.options;
    return { sealed: seal(text, { key, place: { ...belonging, keyId: id }, randomBytes }), key_id: id };
  }

  /** Throws `secrets_locked`. */
  open({ sealed, key_id: keyId }: Sealed, belonging: Belonging): string {
    const found = this.keys.sealing.find(({ id }) => id === keyId);
    if (found !== undefined) return open(sealed, { key: found.key, place: { ...belonging, keyId } });
    const { file } = this.options;
    throw new Fault('secrets_locked', `"${belonging.name}" was sealed with the key ${keyId}, which is not in ${file}`, {
      hint: 'put the secrets.key back that belongs to this store',
    });
  }

  /** 32 hex digits that are the same for the same value of the same secret, and tell nothing else. */
  hash(name: string, value: string): string {
    return this.digest(`${name}\0${value}`).slice(0, HASH_DIGITS);
  }

  /** A keyed hash in 64 hex digits of whatever may hold a secret. */
  digest(text: string): string {
    return createHmac('sha256', this.keys.hashKey).update(text).digest('hex');
  }

  /** Adds a key that seals from now on, unless one was added and its rotation has not ended. */
  addKey(): void {
    if (this.isRotating) return;
    this.store([...this.keys.sealing, newSealingKey(this.options.randomBytes)]);
  }

  /** Drops all keys but the one that seals. Returns the file beside the key file that keeps them, null when there are none. */
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

/** Where a sealed text belongs. None of the texts holds a `|`. */
export interface Place {
  readonly keyId: string;
  readonly recordId: string;
  readonly name: string;
  readonly version: number;
}

interface SealOptions extends Pick<Core, 'randomBytes'> {
  /** 32 bytes. */
  readonly key: Buffer;
  readonly place: Place;
}

const VERSION = 1;
const SALT = 16;
const NONCE = 12;
const TAG = 16;

/** Base64 of the version, the salt, the nonce, the encrypted text and the tag. */
export function seal(text: string, { key, place, randomBytes }: SealOptions): string {
  const salt = randomBytes(SALT);
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', recordKey(key, salt), nonce, { authTagLength: TAG });
  cipher.setAAD(associated(place));
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), salt, nonce, encrypted, cipher.getAuthTag()]).toString('base64');
}

/** Throws `secrets_locked` when anything about it is not as it was sealed. */
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

const associated = ({ keyId, recordId, name, version }: Place): Buffer =>
  Buffer.from([VERSION, keyId, recordId, name, version].join('|'));

const notAsSealed = ({ name }: Place, cause?: unknown): Fault =>
  new Fault('secrets_locked', `"${name}" cannot be decrypted: it was altered in the store, or another key sealed it`, {
    cause,
  });
