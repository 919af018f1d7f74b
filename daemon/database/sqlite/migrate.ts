/** Migrates the schema of a database to this program's version. */

import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database as Connection } from 'better-sqlite3';
import { type Dialect, Kysely, sql } from 'kysely';
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { MIGRATIONS } from '../migrations/index.js';
import type { Migration } from '../migrations/migration.js';
import { schemaTooNew } from '../schema-backups.js';
import { backUpSchema, UNCHANGED } from './back-up-schema.js';
import { isFatalSqliteError } from './sqlite-error.js';

interface MigrateOptions {
  readonly file: string;
  readonly connection: Connection;
  readonly dialect: Dialect;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now'>;
  /** True for a copy of another file, which needs no backup [default: false]. */
  readonly isCopy?: boolean;
  /** Migrations to run [default: those of this program]. */
  readonly migrations?: readonly Migration[];
}

/** Returns the schema version of a database; 0 for a new one. */
export const schemaVersionOf = (connection: Connection): number =>
  Number(connection.pragma('user_version', { simple: true }));

/**
 * Backs up a store of an older schema, then runs all missing migrations in one transaction: the store has the old schema
 * or the new one, never one in between, which neither release could read.
 * Throws `schema_too_new` for the schema of a later program, `migration_failed`, and as `backUpSchema` does.
 */
export async function migrate(options: MigrateOptions): Promise<void> {
  const { file, connection, logger, isCopy = false, migrations = MIGRATIONS } = options;
  const from = schemaVersionOf(connection);
  const to = migrations.at(-1)?.version ?? 0;
  if (from > to) throw schemaTooNew({ place: file, file, found: from, known: to });
  const missing = migrations.filter(({ version }) => version > from);
  if (missing.length === 0) return;
  const backup = from === 0 || isCopy ? null : await backUpSchema({ ...options, schema: from });
  if (backup !== null) logger.info('the store was backed up, and is migrated now', { from, to, backup });
  try {
    await runMigrations(connection, options.dialect, missing);
  } catch (thrown) {
    const error = isFault(thrown, 'store_unavailable') ? thrown.cause : thrown;
    if (from === 0 || isFatalSqliteError(error) || schemaVersionOf(connection) !== from) throw thrown;
    // Services are started again and again: a backup of each attempt would replace those of earlier migrations.
    if (backup !== null) rmSync(backup, { force: true });
    throw failed(file, { from, to, cause: error });
  }
  if (backup === null) logger.debug('store migrated', { from, to });
  else logger.info('the store was migrated', { from, to });
}

/**
 * Runs the migrations with foreign keys off, since recreating a table would otherwise delete the rows that refer to
 * it. They can only be turned off outside a transaction.
 */
export async function runMigrations(
  connection: Connection,
  dialect: Dialect,
  missing: readonly Migration[],
): Promise<void> {
  const db = new Kysely<unknown>({ dialect });
  connection.pragma('foreign_keys = OFF');
  try {
    await db.transaction().execute(async (tx) => {
      for (const migration of missing) {
        await migration.up(tx);
        await refuseDanglingKeys(tx, migration.version);
        await sql`pragma user_version = ${sql.lit(migration.version)}`.execute(tx);
      }
    });
  } finally {
    if (connection.open) connection.pragma('foreign_keys = ON');
  }
}

async function refuseDanglingKeys(tx: Kysely<unknown>, version: number): Promise<void> {
  const { rows } = await sql`pragma foreign_key_check`.execute(tx);
  if (rows.length > 0) throw new Error(`migration ${version} leaves ${rows.length} rows that refer to nothing`);
}

interface Failure {
  readonly from: number;
  readonly to: number;
  readonly cause: unknown;
}

function failed(file: string, { from, to, cause }: Failure): Fault {
  const isFull = systemCodeOf(cause) === 'SQLITE_FULL';
  return new Fault('migration_failed', `${file} cannot be migrated from schema ${from} to ${to}: ${messageOf(cause)}`, {
    hint: isFull
      ? `free some space in ${dirname(file)}, then start again; ${UNCHANGED}`
      : `go back to the orch that ran before: ${UNCHANGED}`,
    cause,
  });
}
