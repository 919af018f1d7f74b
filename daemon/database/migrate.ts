/** Migrates the schema of a database to this program's version, and copies databases. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database as Connection } from 'better-sqlite3';
import { type Dialect, Kysely, sql } from 'kysely';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import { MIGRATIONS } from './migrations/index.js';
import type { Migration } from './migrations/migration.js';

interface MigrateOptions {
  readonly file: string;
  readonly connection: Connection;
  readonly dialect: Dialect;
  readonly logger: Logger;
  /** Migrations to run [default: those of this program]. */
  readonly migrations?: readonly Migration[];
}

/** Returns the schema version of a database; 0 for a new one. */
export const schemaVersionOf = (connection: Connection): number =>
  Number(connection.pragma('user_version', { simple: true }));

/**
 * Runs the missing migrations, each in its own transaction. A non-empty database is copied to
 * `<file>.before-<version>` first. Throws `schema_too_new` for the schema of a later program.
 */
export async function migrate(options: MigrateOptions): Promise<void> {
  const { file, connection, logger, migrations = MIGRATIONS } = options;
  const from = schemaVersionOf(connection);
  const to = migrations.at(-1)?.version ?? 0;
  if (from > to) throw tooNew(file, from, to);
  const missing = migrations.filter(({ version }) => version > from);
  if (missing.length === 0) return;
  if (from > 0) {
    const copy = `${file}.before-${to}`;
    await backupTo(connection, copy);
    logger.info('store copied before its migration', { copy });
  }
  await run(options, missing);
  logger.debug('store migrated', { from, to });
}

/**
 * Runs the migrations with foreign keys off, since recreating a table would otherwise delete the rows that refer to
 * it. They can only be turned off outside a transaction.
 */
async function run({ connection, dialect }: MigrateOptions, missing: readonly Migration[]): Promise<void> {
  const db = new Kysely<unknown>({ dialect });
  connection.pragma('foreign_keys = OFF');
  try {
    for (const migration of missing) {
      await db.transaction().execute(async (tx) => {
        await migration.up(tx);
        await refuseDanglingKeys(tx, migration.version);
        await sql`pragma user_version = ${sql.lit(migration.version)}`.execute(tx);
      });
    }
  } finally {
    if (connection.open) connection.pragma('foreign_keys = ON');
  }
}

async function refuseDanglingKeys(tx: Kysely<unknown>, version: number): Promise<void> {
  const { rows } = await sql`pragma foreign_key_check`.execute(tx);
  if (rows.length > 0) throw new Error(`migration ${version} leaves ${rows.length} rows that refer to nothing`);
}

const tooNew = (file: string, found: number, known: number): Fault =>
  new Fault('schema_too_new', `${file} has schema ${found}, this program knows schemas up to ${known}`, {
    hint: `install the orch that made it, or go back to before: orch serve restore ${file}.before-${found}`,
  });

/**
 * Copies the database to a file durably, replacing an existing one. Work that continues meanwhile is included in the
 * copy. Throws `store_unavailable`.
 */
export async function backupTo(connection: Connection, file: string): Promise<void> {
  const partial = `${file}.partial`;
  try {
    rmSync(partial, { force: true });
    closeSync(openSync(partial, 'wx', 0o600));
    await connection.backup(partial);
    sync(partial);
    renameSync(partial, file);
    sync(dirname(file));
  } catch (cause) {
    rmSync(partial, { force: true });
    throw new Fault('store_unavailable', `the store cannot be copied to ${file}: ${messageOf(cause)}`, {
      hint: 'choose a place that is writable and has room for the copy',
      cause,
    });
  }
}

/** Pages copied per step, between which other work continues. */
const STEP = 100;

/** Copies the database to a new file. The copy is incomplete until the promise resolves, and is not synced to disk. */
export async function copyTo(connection: Connection, file: string, signal: AbortSignal): Promise<void> {
  closeSync(openSync(file, 'wx', 0o600));
  await connection.backup(file, {
    progress: () => {
      signal.throwIfAborted();
      return STEP;
    },
  });
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
