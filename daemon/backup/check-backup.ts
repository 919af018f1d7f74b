/** Checks that a file is a store that can be restored, before anything is changed. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { syncFile } from '../../src/disk/durable.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { loadKey } from '../../src/identity/private-key.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { MIGRATIONS } from '../database/migrations/index.js';
import { damageOf, isDamage, readFacts, type StoreFacts, withRawStore } from './raw-store.js';

/**
 * Copies the file to `to`, which must not exist, and returns its SHA-256 in hex. Throws `disk_full`, and `usage` for a
 * file that is not regular, not readable or incomplete without its write-ahead log.
 * @param asCaller runs the opening of the file with the rights of the caller
 */
export async function copyIn(
  file: string,
  to: string,
  asCaller: <T>(work: () => T) => Promise<T> = async (work) => work(),
): Promise<string> {
  const fd = await asCaller(() => {
    requireWholeFile(file);
    return openSync(file, 'r');
  }).catch((cause) => {
    throw isFault(cause) ? cause : new Fault('usage', `${file} cannot be read: ${messageOf(cause)}`, { cause });
  });
  const hash = createHash('sha256');
  const hashing = new Transform({
    transform: (part: Buffer, _encoding, done) => {
      hash.update(part);
      done(null, part);
    },
  });
  try {
    await pipeline(createReadStream(file, { fd }), hashing, createWriteStream(to, { flags: 'wx', mode: 0o600 }));
    syncFile(to);
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOSPC') {
      throw new Fault('disk_full', `there is no room for a copy of ${file} at ${to}`, {
        hint: 'free some space there; nothing was changed',
        cause,
      });
    }
    throw new Fault('usage', `${file} cannot be copied to ${to}: ${messageOf(cause)}`, { cause });
  }
  return hash.digest('hex');
}

function requireWholeFile(file: string): void {
  const stats = statOf(file);
  if (!stats.isFile()) throw noBackup(file, 'is no regular file');
  const log = `${file}-wal`;
  if (!existsSync(log) || statSync(log).size === 0) return;
  throw new Fault('usage', `${file} is not whole without ${log}: it is a store in use, or was copied from one`, {
    hint: 'make a backup of it: orch serve backup FILE --data-dir DIR',
  });
}

function statOf(file: string): ReturnType<typeof statSync> & object {
  try {
    return statSync(file);
  } catch (cause) {
    const reasons: Readonly<Record<string, string>> = {
      ENOENT: 'does not exist',
      EACCES: 'may not be read by this user',
    };
    throw noBackup(file, reasons[systemCodeOf(cause) ?? ''] ?? messageOf(cause), cause);
  }
}

/**
 * Returns the facts of a copied backup. Throws `schema_too_new`, and `data_dir_invalid` when the copy is not an
 * orchestrator's store or is damaged.
 * @param file path of the original, for messages
 */
export async function checkStore(copy: string, file: string): Promise<StoreFacts> {
  try {
    return await withRawStore(copy, (connection) => {
      const facts = readFacts(connection);
      if (facts === null) throw unusable(file, 'is no store of an orchestrator');
      const newest = MIGRATIONS.at(-1)?.version ?? 0;
      if (facts.schema > newest) throw tooNew(file, facts, newest);
      const damage = damageOf(connection, 'integrity_check');
      if (damage !== null) throw unusable(file, `is damaged: ${damage}`);
      return facts;
    });
  } catch (error) {
    if (isFault(error)) throw error;
    throw unusable(file, isDamage(error) ? 'is damaged or no backup' : `cannot be read: ${messageOf(error)}`, error);
  }
}

/**
 * Throws `key_unreadable` when the orchestrator's key is missing from the data directory, `wrong_orchestrator` when it
 * is not the key of the backup. `identity` is null for a manual copy of a store from an older program.
 */
export function checkIdentity(dataDir: string, identity: string | null): void {
  const path = join(dataDir, 'identity.key');
  const keys =
    'put identity.key, audit.key, secrets.key and api.key there from where you keep them; if it is lost: --new-identity';
  if (!existsSync(path)) {
    const who = identity === null ? '' : ` (${identity})`;
    throw new Fault('key_unreadable', `${path} is missing, the key${who} that the agents trust`, { hint: keys });
  }
  const here = publicKeyOfKeyObject(loadKey(path));
  if (identity === null || identity === here) return;
  throw new Fault('wrong_orchestrator', `the backup is of the orchestrator ${identity}, ${path} is of ${here}`, {
    hint: keys,
  });
}

const noBackup = (file: string, why: string, cause?: unknown): Fault =>
  new Fault('usage', `${file} ${why}`, { hint: 'name a file that orch serve backup has made', cause });

const unusable = (file: string, why: string, cause?: unknown): Fault =>
  new Fault('data_dir_invalid', `${file} ${why}`, { hint: 'nothing was changed; take another backup', cause });

const tooNew = (file: string, { schema, note }: StoreFacts, newest: number): Fault => {
  const by = note === null ? '' : ` of orch ${note.version}`;
  return new Fault('schema_too_new', `${file} has schema ${schema}${by}, this program knows schemas up to ${newest}`, {
    hint: 'install the orch that made it, or a newer one; nothing was changed',
  });
};
