/** The keys of the secrets while the orchestrator runs: seals, opens, and tells values apart. */
import { createHmac } from 'node:crypto';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { keepKeys, newSealingKey, replaceKeyFile, type SealingKey, type SecretKeys } from './key-file.js';
import { open, type Place, seal } from './seal.js';

/** A sealed text as it is stored. */
export interface Sealed {
  readonly sealed: string;
  readonly key_id: string;
}

export type Belonging = Omit<Place, 'keyId'>;

export interface KeyringOptions extends Pick<Core, 'randomBytes'> {
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
