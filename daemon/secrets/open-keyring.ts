/** Loads the keys of the secrets at startup and refuses keys that do not match the store. */
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import { createKeyFile, keptKeyFiles, newSecretKeys, nextKeptFile, readKeyFile, type SecretKeys } from './key-file.js';
import { Keyring, type Sealed } from './keyring.js';
import { isWithoutSecrets } from './sealed-tables.js';

interface OpenKeyringOptions extends Pick<Core, 'db' | 'logger' | 'randomBytes'> {
  readonly file: string;
}

/** Key in `meta` of a sealed text that every store holds. Decrypting it proves that the keys match. */
const CANARY = 'secrets_canary';
const CANARY_PLACE = { recordId: 'canary', name: 'canary', version: 1 };

/**
 * Returns the keyring of a store, and creates the key file of a store without secrets.
 * Throws `secrets_locked` when the store holds secrets and their keys are missing or different.
 */
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

/** Keys that open a store from before a rotation, and the kept key file that they are from. */
interface FormerKeys {
  readonly file: string;
  readonly keys: SecretKeys;
}

/**
 * Returns the keys of a store that is about to be restored; null when the key file has them or none are needed.
 * Changes nothing. Throws `secrets_locked` when neither the key file nor a kept key file opens the store.
 */
export async function findFormerKeys(options: Omit<OpenKeyringOptions, 'logger'>): Promise<FormerKeys | null> {
  const { file, db, randomBytes } = options;
  if (await isWithoutSecrets(db)) return null;
  const present = readKeyFile(file);
  const canary = await readCanary(db);
  const fits = (keys: SecretKeys) => canary !== null && opens(new Keyring({ file, keys, randomBytes }), canary);
  if (present !== null && fits(present)) return null;
  for (const kept of keptKeyFiles(file)) {
    const former = readKeyFile(kept);
    if (former === null || !fits(former)) continue;
    if (present === null) return { file: kept, keys: former };
    // With a different hash key every value of the store would look changed.
    if (!present.hashKey.equals(former.hashKey)) continue;
    // The last key seals, so the next start completes this as an interrupted rotation.
    return { file: kept, keys: { ...present, sealing: [...former.sealing, ...present.sealing] } };
  }
  throw noFormerKeys(file, canary?.key_id ?? null, present === null);
}

/** Seals the canary with the current key. */
export async function writeCanary(db: Queryable, keyring: Keyring): Promise<void> {
  await setMetaJson<Sealed>(db, CANARY, keyring.seal('canary', CANARY_PLACE));
}

/** Returns the sealed canary; null in a store that has none yet. */
export async function readCanary(db: Queryable): Promise<Sealed | null> {
  return (await getMetaJson<Sealed>(db, CANARY)) ?? null;
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
    hint: 'put secrets.key back from where you keep it; without it no secret can be decrypted',
  });

function noFormerKeys(file: string, keyId: string | null, isMissing: boolean): Fault {
  if (keyId === null) return isMissing ? missingKeys(file) : wrongKeys(file);
  const what = isMissing
    ? `the store holds secrets, and ${file} with their keys is missing`
    : `the keys in ${file} are not those that the secrets in the store were sealed with`;
  const next = isMissing ? file : nextKeptFile(file);
  return new Fault('secrets_locked', `${what}, nor does a ${file}.N hold the key ${keyId}`, {
    hint: `put the secrets.key of then, which has a line "key ${keyId} …", there as ${next} (mode 0600)`,
  });
}

const wrongKeys = (file: string): Fault =>
  new Fault('secrets_locked', `the keys in ${file} are not those that the secrets in the store were sealed with`, {
    hint: 'put the secrets.key back that belongs to this store, or the store that belongs to this secrets.key',
  });
