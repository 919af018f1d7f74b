/** Opens the store of a stopped orchestrator for a single command on its host. */
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { holdDataDirectory } from '../../src/identity/data-directory.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { loadKey } from '../../src/identity/private-key.js';
import { Fault } from '../../src/kernel/fault.js';
import type { RecoveredAdmin } from '../../src/programs/store.js';
import { AdminRecovery, type WantedAdmin } from '../auth/admin-recovery.js';
import type { Core } from '../core/core.js';
import { TransactionalWriter, type UnitOfWork } from '../core/unit-of-work.js';
import { type OpenDatabase, type OpenDatabaseOptions, openDatabase } from '../database/database.js';
import { MIGRATIONS } from '../database/migrations/index.js';
import { postgresSchemaVersion } from '../database/postgres/migrate-postgres.js';
import { withServerSession } from '../database/postgres/open-postgres.js';
import { parsePostgresUrl } from '../database/postgres/postgres-url.js';
import { risingIds } from '../database/rising-ids.js';
import type { Database } from '../database/schema.js';
import { STORE_FILE, type StoreLocation } from '../database/store-location.js';
import { listWindows, pausesAll } from '../maintenance/window-store.js';
import { createNotificationQueue } from '../notify/notify.js';
import type { BackupReport, BackupTarget } from './backup-target.js';
import { Backups, type Deliver } from './backups.js';
import { readFacts, withRawStore } from './raw-store.js';
import { sealCopy } from './seal-copy.js';
import { requireOwnDirectory, requireStore } from './starting-directory.js';

export interface StoppedOptions extends Pick<Core, 'clock' | 'logger' | 'newId'> {
  readonly dataDir: string;
  readonly location: StoreLocation;
}

/** Commands that lock the data directory for a single piece of work, as named in the lock. */
const STOPPED_COMMANDS = [
  'orch serve backup',
  'orch serve restore',
  'orch serve recover-admin',
  'orch store copy',
] as const;
export type StoppedCommand = (typeof STOPPED_COMMANDS)[number];

/** Returns true when the lock is held by such a command, and so is released when its work is done. */
export const isStoppedCommand = (program: unknown): program is StoppedCommand =>
  STOPPED_COMMANDS.some((command) => command === program);

export interface StoppedStore {
  readonly db: Kysely<Database>;
  /** Unit of work that records audit events and raises notifications like the running orchestrator's. */
  readonly uow: UnitOfWork;
  readonly store: OpenDatabase;
}

/**
 * Locks the data directory, opens its store, runs `work` and releases both. Returns the result of `work`.
 * @throws Fault `data_dir_locked` while another process holds the directory, `permission_denied`, `data_dir_invalid`,
 * and the faults of `openDatabase`
 */
async function withStoppedStore<T>(
  { command, ...options }: StoppedOptions & { readonly command: StoppedCommand },
  work: (stopped: StoppedStore) => Promise<T>,
): Promise<T> {
  const { dataDir, location } = options;
  if (location.server === null) requireStore(dataDir);
  else requireOwnDirectory(dataDir);
  const directory = holdDataDirectory(dataDir, command);
  try {
    return await withStore({ ...options, faultIfEmpty: noStore }, work);
  } finally {
    directory.release();
  }
}

const noStore = (place: string): Fault =>
  new Fault('data_dir_invalid', `there is no store in ${place}`, {
    hint: 'name the store of orch serve with --store, or its configuration file with --config',
  });

/** Opens a store whose directory the caller has locked, runs `work`, and closes the store. */
export async function withStore<T>(
  options: Omit<StoppedOptions, 'dataDir'> & Pick<OpenDatabaseOptions, 'isCopy' | 'faultIfEmpty'>,
  work: (stopped: StoppedStore) => Promise<T>,
): Promise<T> {
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const { clock, location } = options;
  const store = await openDatabase({ ...options, ...location, onFatal });
  try {
    const { db } = store;
    const newId = await risingIds(db, options.newId);
    const windows = await listWindows(db);
    const isMaintenance = () => windows.some((row) => pausesAll(row, clock.now()));
    const { writer } = createNotificationQueue({ newId, isMaintenance });
    const onRecorded = (...recorded: Parameters<typeof writer.record>) => writer.record(...recorded);
    return await work({ db, store, uow: new TransactionalWriter({ db, clock, newId, publish: () => {}, onRecorded }) });
  } finally {
    await store.close();
  }
}

interface RecoverOptions extends StoppedOptions {
  readonly wanted: WantedAdmin;
  /** Asks for confirmation before anything is changed; an error that it throws ends the recovery. */
  readonly confirm: (found: RecoveredAdmin) => Promise<void>;
}

/**
 * `orch serve recover-admin`: lets the owner of the data directory appoint an admin when no admin can log in.
 * Returns the outcome. Throws as `withStoppedStore` and `AdminRecovery` do.
 */
export function recoverAdmin(options: RecoverOptions): Promise<RecoveredAdmin> {
  const { wanted, confirm, clock, newId } = options;
  return withStoppedStore({ ...options, command: 'orch serve recover-admin' }, async ({ db, uow }) => {
    const recovery = new AdminRecovery({ db, uow, clock });
    const found = await recovery.preview(wanted);
    if (found.change === 'none') return found;
    await confirm(found);
    return recovery.recover(wanted, newId());
  });
}

/**
 * `orch serve backup` of a stopped orchestrator: makes a backup and returns its report.
 * Throws as `withStoppedStore` and `Backups` do, and `usage` for a store with an older schema.
 * @param deliver stores the copy at the target [default: this process writes it there]
 */
export async function stoppedBackup(
  options: StoppedOptions,
  target: BackupTarget,
  deliver?: Deliver,
): Promise<BackupReport> {
  const { dataDir, clock, location } = options;
  if (location.server === null) requireStore(dataDir);
  else requireOwnDirectory(dataDir);
  await requireSameSchema(options);
  const publicKey = publicKeyOfKeyObject(loadKey(join(dataDir, 'identity.key')));
  return withStoppedStore({ ...options, command: 'orch serve backup' }, ({ store, uow }) => {
    const backups = new Backups({ dataDir, store, uow, clock, publicKey, seal: sealCopy });
    return deliver === undefined ? backups.make(target) : backups.deliver(target.file, deliver);
  });
}

/** Throws `usage` for an older schema: opening the store would migrate it, an unexpected effect of a backup. */
async function requireSameSchema({ dataDir, location }: StoppedOptions): Promise<void> {
  const file = join(dataDir, STORE_FILE);
  const [place, schema] =
    location.server === null
      ? [file, await withRawStore(file, (connection) => readFacts(connection)?.schema ?? 0).catch(() => 0)]
      : [shownUrl(location.server.url), await withServerSession(location.server, postgresSchemaVersion)];
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  if (schema === 0 || schema >= newest) return;
  throw new Fault(
    'usage',
    `${place} was made by an older orch: it has schema ${schema}, and this one makes ${newest}`,
    {
      hint: 'take the backup with that orch; this one copies the store by itself before it changes it, at its first start',
    },
  );
}

const shownUrl = (url: string): string => parsePostgresUrl(url).shown;
