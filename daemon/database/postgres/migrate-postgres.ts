/** Creates and migrates the schema of a store on PostgreSQL. */
import { rmSync } from 'node:fs';
import { type Kysely, sql, type Transaction } from 'kysely';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { setMeta } from '../meta.js';
import type { Migration } from '../migrations/migration.js';
import type { Database } from '../schema.js';
import { schemaTooNew } from '../schema-backups.js';
import type { RunStatement } from './postgres-dialect.js';
import type { PostgresStore } from './postgres-store.js';

/** Key in `meta`: version of the schema, as SQLite keeps it in `user_version`. */
const SCHEMA_KEY = 'schema_version';

/** Returns the schema version of the store in the schema of the session; 0 without one. */
export async function postgresSchemaVersion(run: RunStatement): Promise<number> {
  const { rows } = await run("select to_regclass('orch.meta') is not null as there", []);
  if (rows[0]?.there !== true) return 0;
  const { rows: versions } = await run('select value from orch.meta where key = $1', [SCHEMA_KEY]);
  return Number(versions[0]?.value ?? 0);
}

interface MigrateOptions {
  readonly place: string;
  /** Default path of a store's file in the data directory; backups before migrations go beside it. */
  readonly file: string;
  readonly logger: Logger;
  readonly migrations: readonly Migration[];
  /** Copies the store to a file beside the keys before a migration, and returns its path. */
  readonly backUp: (schema: number) => Promise<string>;
}

/**
 * Runs all missing migrations in one transaction. Throws `schema_too_new` for the schema of a later program, `migration_failed`, and
 * as `backUp` does.
 */
export async function migratePostgres(store: PostgresStore, from: number, options: MigrateOptions): Promise<void> {
  const { place, file, logger, migrations, backUp } = options;
  const to = migrations.at(-1)?.version ?? 0;
  if (from > to) throw schemaTooNew({ place, file, found: from, known: to });
  const missing = migrations.filter(({ version }) => version > from);
  if (missing.length === 0) return;
  const backup = from === 0 ? null : await backUp(from);
  if (backup !== null) logger.info('the store was backed up, and is migrated now', { from, to, backup });
  try {
    await store.exclusively(async (tx) => {
      if (from === 0) await createSchema(tx, place);
      await runMigrations(tx, missing);
    });
  } catch (error) {
    if (from === 0 || isFault(error, 'store_unavailable')) throw error;
    // Services are started again and again: a copy of each attempt would fill the disk.
    if (backup !== null) rmSync(backup, { force: true });
    throw new Fault(
      'migration_failed',
      `${place} cannot be migrated from schema ${from} to ${to}: ${messageOf(error)}`,
      {
        hint: 'go back to the orch that ran before: the store is as it was',
        cause: error,
      },
    );
  }
  logger.info('the store was migrated', { from, to });
}

/** Runs the migrations in the schema of the session, and notes the version that they lead to. */
export async function runMigrations(tx: Transaction<Database>, missing: readonly Migration[]): Promise<void> {
  for (const migration of missing) await migration.up(tx as unknown as Kysely<unknown>);
  const { version } = missing.at(-1) ?? { version: 0 };
  if (version > 0) await setMeta(tx, SCHEMA_KEY, String(version));
}

/** Keys in `meta` that describe the database and not the orchestrator. */
export const OWN_META = [SCHEMA_KEY, 'writer', 'last_batch'] as const;

/**
 * Checks that the schema of the store, if there is one, belongs to the role of this orchestrator: the owner of a schema
 * can drop and replace the tables in it. Throws `invalid_config`.
 */
export async function requireOwnSchema(run: RunStatement, place: string): Promise<void> {
  const { rows } = await run(
    `select pg_get_userbyid(nspowner)::text as owner, current_user::text as role from pg_namespace where nspname = 'orch'`,
    [],
  );
  const [row] = rows;
  if (row === undefined || row.owner === row.role) return;
  throw new Fault(
    'invalid_config',
    `the schema orch in ${place} belongs to the role ${row.owner}, and orch serve connects as ${row.role}`,
    { hint: `the owner could drop its tables; as an administrator: alter schema orch owner to ${row.role}` },
  );
}

/** Creates the schema of the store, unless the database's owner has done so. Throws `invalid_config`. */
export async function createSchema(tx: Transaction<Database>, place: string): Promise<void> {
  const { rows } = await sql<{ there: boolean }>`select to_regnamespace('orch') is not null as there`.execute(tx);
  if (rows[0]?.there === true) return;
  try {
    await sql`create schema orch`.execute(tx);
  } catch (cause) {
    throw new Fault('invalid_config', `the schema orch cannot be created in ${place}: ${messageOf(cause)}`, {
      hint: 'as the owner of the database: create schema orch authorization USER',
      cause,
    });
  }
}
