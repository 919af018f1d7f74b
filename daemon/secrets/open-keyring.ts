/** Loads the keys of the secrets at the start, and refuses keys that do not fit the store. */
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import { countChannels } from '../store/channels.js';
import { getMeta, setMeta } from '../store/meta.js';
import type { Queryable } from '../store/queryable.js';
import { countSecrets } from '../store/secrets.js';
import { createKeyFile, newSecretKeys, readKeyFile, type SecretKeys } from './key-file.js';
import { Keyring, type Sealed } from './keyring.js';

export interface OpenKeyringOptions {
  readonly file: string;
  readonly db: Queryable;
  readonly randomBytes: (count: number) => Buffer;
  readonly logger: Logger;
}

/** A sealed text that is always there: whether it opens tells whether the keys are the right ones. */
const CANARY = 'secrets_canary';
const CANARY_PLACE = { recordId: 'canary', name: 'canary', version: 1 };

/** Makes the key file of a new store. Throws `secrets_locked` for a store with secrets whose keys are gone or others. */
export async function openKeyring(options: OpenKeyringOptions): Promise<Keyring> {
  const { file, db, randomBytes, logger } = options;
  const isEmpty = await isWithoutSecrets(db);
  const keyring = new Keyring({ file, keys: readKeyFile(file) ?? newKeys(options, isEmpty), randomBytes });
  const canary = await readCanary(db);
  if (canary !== null && opens(keyring, canary)) return keyring;
  if (!isEmpty) throw wrongKeys(file);
  if (canary !== null) logger.warn('the keys of the secrets are new, and there are no secrets', { file });
  await writeCanary(db, keyring);
  return keyring;
}

/** Throws `secrets_locked` where `openKeyring` would, and makes nothing. */
export async function checkKeyring({ file, db, randomBytes }: Omit<OpenKeyringOptions, 'logger'>): Promise<void> {
  if (await isWithoutSecrets(db)) return;
  const keys = readKeyFile(file);
  if (keys === null) throw missingKeys(file);
  const canary = await readCanary(db);
  if (canary === null || !opens(new Keyring({ file, keys, randomBytes }), canary)) throw wrongKeys(file);
}

const isWithoutSecrets = async (db: Queryable): Promise<boolean> =>
  (await countSecrets(db)) === 0 && (await countChannels(db)) === 0;

/** Seals the canary with the current key. */
export async function writeCanary(db: Queryable, keyring: Keyring): Promise<void> {
  await setMeta(db, CANARY, JSON.stringify(keyring.seal('canary', CANARY_PLACE)));
}

export async function readCanary(db: Queryable): Promise<Sealed | null> {
  const text = await getMeta(db, CANARY);
  return text === null ? null : JSON.parse(text);
}

function newKeys({ file, randomBytes, logger }: OpenKeyringOptions, isEmpty: boolean): SecretKeys {
  if (!isEmpty) throw missingKeys(file);
  const keys = newSecretKeys(randomBytes);
  createKeyFile(file, keys);
  logger.info('the key of the secrets was made; a backup of the store is of no use without it', { file });
  return keys;
}

function opens(keyring: Keyring, canary: Sealed): boolean {
  try {
    return keyring.open(canary, CANARY_PLACE) === 'canary';
  } catch (error) {
    if (isFault(error, 'secrets_locked')) return false;
    throw error;
  }
}

const missingKeys = (file: string): Fault =>
  new Fault('secrets_locked', `the store holds secrets, and ${file} with their keys is missing`, {
    hint: 'put secrets.key back from where you keep it; without it the secrets cannot be read by anybody',
  });

const wrongKeys = (file: string): Fault =>
  new Fault('secrets_locked', `the keys in ${file} are not those that the secrets in the store were sealed with`, {
    hint: 'put the secrets.key back that belongs to this store, or the store that belongs to this secrets.key',
  });
