/** Checks a data directory at startup, so that a lost disk or key is not mistaken for a first start. */
import type { KeyObject } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { renameDurably } from '../../src/disk/durable.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { loadKey, loadOrCreateKey } from '../../src/identity/private-key.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { hasNoOperators } from '../auth/operator-store.js';
import type { OpenDatabaseOptions } from '../database/database.js';
import { getMeta, setMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import type { StoreLocation } from '../database/store-location.js';
import { STORE_FILE } from '../database/store-location.js';
import { IDENTITY_KEY } from './backup-note.js';

/** Risks that the person who starts the orchestrator explicitly accepts. */
export interface StartChoices {
  /** True to begin with an empty store beside existing keys. */
  readonly newStore: boolean;
  /** True to continue with an identity other than the store's. */
  readonly newIdentity: boolean;
}

interface StartingDirectory {
  /** True without keys and without a store. */
  readonly isFirst: boolean;
  /** True when a store without tables may be initialized. */
  readonly mayBeEmpty: boolean;
}

/**
 * Checks the files before the store is opened: SQLite would create a missing store and delete an orphaned log.
 * Renames an orphaned log when a new store is wanted.
 * @throws Fault `data_dir_invalid` for keys or a log without a store, `usage` for a new store where one exists
 */
export function examineDirectory(
  dataDir: string,
  { newStore }: StartChoices,
  { server }: StoreLocation,
): StartingDirectory {
  const keys = keysIn(dataDir);
  // The contents of a server show when it is opened.
  if (server !== null) return { isFirst: keys.length === 0, mayBeEmpty: newStore || keys.length === 0 };
  const log = join(dataDir, `${STORE_FILE}-wal`);
  const isThere = sizeOf(join(dataDir, STORE_FILE)) > 0;
  const hasLog = sizeOf(log) > 0;
  if (newStore && isThere) {
    throw new Fault('usage', `--new-store: there is a store in ${dataDir}`, {
      hint: 'start without --new-store; to begin with another store, move orch.db and orch.db-wal away first',
    });
  }
  if (!newStore && !isThere && (keys.length > 0 || hasLog)) throw lostStore(dataDir);
  if (newStore && hasLog) renameDurably(log, `${log}.lost`);
  return { isFirst: !isThere && keys.length === 0, mayBeEmpty: newStore || keys.length === 0 };
}

/** Returns the fault `data_dir_invalid` for keys whose store on a server is empty. */
const emptyServer = (dataDir: string, place: string): Fault =>
  new Fault('data_dir_invalid', `${dataDir} holds keys of an orchestrator, but ${place} holds no store`, {
    hint: 'name the right database, put a backup in its place with "orch serve restore FILE", or copy the store of a file with "orch store copy"; only to begin with an empty store: orch serve --new-store',
  });

/** Returns the fault `usage` for a new store on a server that holds one. */
const storeOnServer = (place: string): Fault =>
  new Fault('usage', `--new-store: there is a store in ${place}`, {
    hint: 'start without --new-store; to begin with another store, name an empty database',
  });

/** Returns the fault `data_dir_invalid` for keys or a log whose store is missing or empty. */
function lostStore(dataDir: string): Fault {
  const keys = keysIn(dataDir).map((path) => basename(path));
  const beside = keys.length === 0 ? 'a log' : keys.join(', ');
  return new Fault(
    'data_dir_invalid',
    `${dataDir} holds ${beside} of an orchestrator, but its store orch.db is missing or empty`,
    {
      hint: 'mount the file system that it is on, or put a backup in its place with "orch serve restore FILE"; only to begin with an empty store, in which no agent, operator or module is known: orch serve --new-store',
    },
  );
}

interface StoreIdentity {
  readonly privateKey: KeyObject;
  /**
   * Former public key (`unknown` if not recorded) that the agents still trust; null when the key is unchanged or the
   * first one.
   */
  readonly replaced: string | null;
}

/**
 * Returns the store's key of the agent link; creates it for a store that never had one.
 * @throws Fault `key_unreadable` when the key is missing, `wrong_orchestrator` when it is another store's, `usage` for a
 * new identity although the old one is valid
 */
export async function identityOf(
  db: Queryable,
  dataDir: string,
  { newIdentity }: StartChoices,
): Promise<StoreIdentity> {
  const path = join(dataDir, 'identity.key');
  const known = await getMeta(db, IDENTITY_KEY);
  const isThere = existsSync(path);
  const present = isThere ? publicKeyOfKeyObject(loadKey(path)) : null;
  // A restore with another identity leaves an empty note. A store without a note has operators if it was ever in use.
  const isOpen = known === '';
  const isUsed = !isOpen && (known !== null || !(await hasNoOperators(db)));
  const isLost = isUsed && !isThere;
  const isOther = isUsed && known !== null && present !== null && known !== present;
  if (isLost && !newIdentity) throw missingIdentity(path, known);
  if (isOther && !newIdentity) throw otherIdentity(path, known, present);
  if (newIdentity && isUsed && !isLost && !isOther) {
    throw new Fault('usage', `--new-identity: ${path} is the key that the store and the agents know`, {
      hint: 'start without --new-identity; it is for a key that is lost',
    });
  }
  const privateKey = loadOrCreateKey(path);
  const here = publicKeyOfKeyObject(privateKey);
  if (known !== here) await note(db, here);
  return { privateKey, replaced: isLost || isOther || isOpen ? known || 'unknown' : null };
}

/** Records the identity that the store belongs to. */
async function note(db: Queryable, publicKey: string): Promise<void> {
  try {
    await setMeta(db, IDENTITY_KEY, publicKey);
  } catch (error) {
    // On a full disk the store is still readable; the next start records the identity.
    if (!isFault(error, 'store_unavailable')) throw error;
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const MENDS =
  'put identity.key back from where you keep it; if it is lost: orch serve --new-identity, and then "orch agent repin" on each machine';

const missingIdentity = (path: string, known: string | null): Fault =>
  new Fault(
    'key_unreadable',
    `${path} is missing, the key${known === null ? '' : ` (${known})`} that the agents trust`,
    {
      hint: MENDS,
    },
  );

const otherIdentity = (path: string, known: string, present: string): Fault =>
  new Fault('wrong_orchestrator', `the store is of the orchestrator ${known}, and ${path} is the key of ${present}`, {
    hint: MENDS,
  });

/** Throws `data_dir_invalid` for a path that is not a directory, `permission_denied` for another user's or an unreadable one. */
export function requireOwnDirectory(path: string): void {
  const stats = look(path);
  const user = process.geteuid?.();
  if (!stats.isDirectory()) throw new Fault('data_dir_invalid', `${path} is not a directory`);
  if (user === undefined || stats.uid === user) return;
  throw new Fault('permission_denied', `${path} belongs to user ${stats.uid}, and this is user ${user}`, {
    hint: `run this as ${user === 0 ? '' : 'root or as '}the user who runs orch serve: sudo -u '#${stats.uid}' orch …`,
  });
}

/** Throws `data_dir_invalid` when the directory holds no store. */
export function requireStore(path: string): void {
  requireOwnDirectory(path);
  if (existsSync(join(path, STORE_FILE))) return;
  throw new Fault('data_dir_invalid', `there is no store in ${path}`, {
    hint: 'name the data directory of orch serve with --data-dir, or its configuration file with --config',
  });
}

function look(path: string): ReturnType<typeof statSync> & object {
  try {
    return statSync(path);
  } catch (cause) {
    if (systemCodeOf(cause) === 'EACCES') {
      throw new Fault('permission_denied', `this user may not look into ${path}`, {
        hint: 'run this as root or as the user who runs orch serve, for example with sudo',
        cause,
      });
    }
    const why = systemCodeOf(cause) === 'ENOENT' ? 'does not exist' : `cannot be used: ${messageOf(cause)}`;
    throw new Fault('data_dir_invalid', `the data directory ${path} ${why}`, {
      hint: 'name that of orch serve with --data-dir, or its configuration file with --config',
      cause,
    });
  }
}

/** Key files of a data directory, which no backup contains. */
const KEY_FILES = ['identity.key', 'audit.key', 'secrets.key', 'api.key'] as const;

/** Returns the paths of the key files that exist. */
export const keysIn = (dataDir: string): readonly string[] =>
  KEY_FILES.map((name) => join(dataDir, name)).filter((path) => existsSync(path));

interface ExpectedStore {
  readonly dataDir: string;
  readonly newStore: boolean;
  readonly mayBeEmpty: boolean;
  readonly location: Pick<StoreLocation, 'server'>;
}

/** Returns what to throw instead of beginning with an empty store, or with the store of another time. */
export function faultsOfStore({
  dataDir,
  newStore,
  mayBeEmpty,
  location,
}: ExpectedStore): Pick<OpenDatabaseOptions, 'faultIfEmpty' | 'faultIfThere'> {
  if (location.server === null) return { faultIfEmpty: mayBeEmpty ? undefined : () => lostStore(dataDir) };
  return {
    faultIfEmpty: mayBeEmpty ? undefined : (place) => emptyServer(dataDir, place),
    faultIfThere: newStore ? storeOnServer : undefined,
  };
}
