/** Opens a store in an SQLite file: one connection, every commit durable. */
import { closeSync, openSync } from 'node:fs';
import type { Database as Connection } from 'better-sqlite3';
import type { Kysely } from 'kysely';
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { setMeta } from '../meta.js';
import type { Migration } from '../migrations/migration.js';
import type { OpenDatabase } from '../open-database.js';
import type { Database } from '../schema.js';
import { backupTo, copyTo } from './copy.js';
import { loadSqlite, type Sqlite } from './load-sqlite.js';
import { migrate, schemaVersionOf } from './migrate.js';
import { SqliteDialect, sqliteDatabase } from './sqlite-dialect.js';
import { fatalFault, isBusyError, isFatalSqliteError, storeFault } from './sqlite-error.js';

export interface OpenSqliteOptions {
  readonly file: string;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now'>;
  /**
   * Called once when the file or its disk fails at runtime. A refused commit may have been written nevertheless, so
   * the process must end and examine the file again. Until then the store refuses every statement.
   */
  readonly onFatal: (error: unknown) => void;
  /** True for a copy of another file, which is migrated without a backup [default: false]. */
  readonly isCopy?: boolean;
  /** Migrations to run [default: those of this program]. */
  readonly migrations?: readonly Migration[];
  /** Returns the fault to throw instead of creating a store without any table. */
  readonly faultIfEmpty?: ((place: string) => Fault) | undefined;
}

/** Milliseconds to wait for another process's lock before the file counts as locked. */
const BUSY_MS = 500;
const WAL_LIMIT_BYTES = 64 * 1024 * 1024;
/** Key in `meta`: `1` from a clean stop to the next start. */
export const CLEAN_KEY = 'stopped_cleanly';

/**
 * Creates the file when it is missing. Backs up a store of an older schema, and migrates it.
 * Throws `native_module_missing`, `data_dir_locked` while another process has it open, `data_dir_invalid` when it is
 * damaged or unreadable, `store_unavailable` when the disk is full, and as `migrate` does.
 */
export async function openSqlite(options: OpenSqliteOptions): Promise<OpenDatabase> {
  const sqlite = await loadSqlite();
  const connection = connect(sqlite, options.file);
  try {
    configure(connection);
    if (options.faultIfEmpty && schemaVersionOf(connection) === 0) throw options.faultIfEmpty(options.file);
    checkAfterCrash(connection, options);
    let isOpen = false;
    const dialect = new SqliteDialect({ connection, onFatal: (error) => isOpen && options.onFatal(error) });
    await migrate({ ...options, connection, dialect });
    // Savepoints would write every page that they change to a temporary file: the benchmark row of an applied agent misses its
    // goal. Not before, because a migration may sort whole tables.
    connection.pragma('temp_store = MEMORY');
    const db = sqliteDatabase(dialect);
    await markRunning(db, options);
    isOpen = true;
    return opened(db, connection, options.file);
  } catch (error) {
    connection.close();
    throw openFault(options.file, error);
  }
}

/** Marks the store as running. On a full disk it opens read-only, and accepts writes once there is room. */
async function markRunning(db: Kysely<Database>, { file, logger }: OpenSqliteOptions): Promise<void> {
  try {
    await setMeta(db, CLEAN_KEY, '0');
  } catch (error) {
    if (!isFault(error, 'store_unavailable') || isBusyError(error.cause) || isFatalSqliteError(error.cause))
      throw error;
    logger.error('the store can only be read', { file, reason: error.message });
  }
}

function opened(db: Kysely<Database>, connection: Connection, place: string): OpenDatabase {
  let closing: Promise<void> | undefined;
  return {
    kind: 'sqlite',
    place,
    db,
    latencyMs: () => 0,
    backup: (file) => backupTo(connection, file),
    copy: (file, signal) => copyTo(connection, file, signal),
    close: () => {
      closing ??= close(db, connection);
      return closing;
    },
  };
}

async function close(db: Kysely<Database>, connection: Connection): Promise<void> {
  try {
    await setMeta(db, CLEAN_KEY, '1');
  } catch (error) {
    if (!isFault(error, 'store_unavailable')) throw error;
  } finally {
    await db.destroy();
    // Kysely closes nothing if no query passed it.
    connection.close();
  }
}

function connect(sqlite: Sqlite, file: string): Connection {
  try {
    // SQLite creates the files beside it with this file's mode.
    closeSync(openSync(file, 'a', 0o600));
    return new sqlite(file, { timeout: BUSY_MS });
  } catch (error) {
    throw openFault(file, error);
  }
}

/**
 * Takes the exclusive lock first: it keeps other processes out, and the store opens even on a full disk. Sets
 * `synchronous` because better-sqlite3 is built to use NORMAL for an existing WAL file, which loses commits at a
 * power cut.
 */
function configure(connection: Connection): void {
  connection.pragma('locking_mode = EXCLUSIVE');
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('foreign_keys = ON');
  connection.pragma('trusted_schema = OFF');
  connection.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
  const settings = ['locking_mode', 'journal_mode', 'synchronous', 'foreign_keys', 'trusted_schema'];
  const read = settings.map((name) => String(connection.pragma(name, { simple: true }))).join(' ');
  if (read !== 'exclusive wal 2 1 0') throw new Error(`SQLite took other settings than it was given: ${read}`);
}

function checkAfterCrash(connection: Connection, { file, logger }: OpenSqliteOptions): void {
  if (schemaVersionOf(connection) === 0) return;
  const clean = connection.prepare('select value from meta where key = ?').pluck().get(CLEAN_KEY);
  if (clean === '1') return;
  logger.warn('the store was not closed in order, checking it', { file });
  const found = String(connection.pragma('quick_check(1)', { simple: true }));
  if (found !== 'ok') throw fatalFault(file, new Error(found));
}

/** Translates a failure to open into a fault for the person who starts the orchestrator. */
function openFault(file: string, thrown: unknown): unknown {
  const error = isFault(thrown, 'store_unavailable') ? thrown.cause : thrown;
  if (isBusyError(error)) {
    return new Fault('data_dir_locked', `${file} is open in another process`, {
      hint: 'stop the other orchestrator, or whatever else reads the file',
      cause: error,
    });
  }
  const beside = unusableBeside(file);
  if (beside !== null) return beside;
  if (isFatalSqliteError(error)) return fatalFault(file, error);
  if (isFault(thrown) || systemCodeOf(error) === 'SQLITE_FULL') return storeFault(thrown);
  if (!systemCodeOf(error)?.match(/^(E[A-Z]+$|SQLITE_(CANTOPEN|READONLY|PERM))/)) return error;
  return notOpened(file, error);
}

const notOpened = (file: string, cause: unknown): Fault =>
  new Fault('data_dir_invalid', `${file} cannot be opened: ${messageOf(cause)}`, {
    hint: 'make it and its directory readable and writable for this user',
    cause,
  });

/** Returns the fault of a log of the store that cannot be opened, because SQLite names the store itself; else null. */
function unusableBeside(file: string): Fault | null {
  for (const end of ['-wal', '-journal', '-shm']) {
    try {
      closeSync(openSync(`${file}${end}`, 'r+'));
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') return notOpened(`${file}${end}`, error);
    }
  }
  return null;
}
