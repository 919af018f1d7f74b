/** Fills a locked database with the rows of an SQLite store, in one transaction: the database holds its former store or the new one. */
import type { Database as Connection } from 'better-sqlite3';
import { sql, type Transaction } from 'kysely';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { copySqliteRows, countPostgresRows, countSqliteRows, requireSameCounts } from '../copy-rows.js';
import { MIGRATIONS } from '../migrations/index.js';
import type { Database } from '../schema.js';
import { createSchema, runMigrations } from './migrate-postgres.js';
import type { HeldPostgres } from './open-postgres.js';
import { type RunStatement, runCompiled } from './postgres-dialect.js';

interface FillOptions {
  /** Name that the present schema gets; null when the database holds no store. */
  readonly keepAs: string | null;
  /** Called before the rows of each table. */
  readonly onTable?: (name: string) => void;
  /** Checks the new store before it is committed; what it throws undoes everything. */
  readonly check: (tx: Transaction<Database>) => Promise<void>;
}

/** Returns true when the schema of the store holds anything, be it a store or not. */
export async function isSchemaUsed(run: RunStatement): Promise<boolean> {
  const { rows } = await run(
    `select exists (select 1 from pg_class where relnamespace = to_regnamespace('orch'))
       or exists (select 1 from pg_proc where pronamespace = to_regnamespace('orch')) as used`,
    [],
  );
  return rows[0]?.used === true;
}

/**
 * Creates the schema of this program with the rows of the SQLite store, which has the same one. Throws `invalid_config` without the
 * rights for it, `store_unavailable`, and what `check` throws: then nothing is changed.
 */
export async function fillPostgres(
  { store, place }: HeldPostgres,
  connection: Connection,
  { keepAs, onTable, check }: FillOptions,
): Promise<void> {
  const original = countSqliteRows(connection);
  const fill = async (tx: Transaction<Database>): Promise<void> => {
    if (keepAs !== null) await renameSchema(tx, keepAs, place);
    await createSchema(tx, place);
    await runMigrations(tx, MIGRATIONS);
    const run = async (text: string, values: readonly unknown[]) => ({
      rows: await runCompiled<Record<string, unknown>>(tx, text, values),
    });
    await copySqliteRows(connection, run, onTable);
    requireSameCounts(original, await countPostgresRows(run, original.keys()));
    await check(tx);
  };
  try {
    await store.exclusively(fill);
  } catch (cause) {
    if (isFault(cause)) throw cause;
    throw new Fault('store_unavailable', `the store cannot be put into ${place}: ${messageOf(cause)}`, {
      hint: 'nothing was changed; look at the log of the database',
      cause,
    });
  }
}

async function renameSchema(tx: Transaction<Database>, name: string, place: string): Promise<void> {
  try {
    await sql`alter schema orch rename to ${sql.id(name)}`.execute(tx);
  } catch (cause) {
    if (isFault(cause, 'store_unavailable')) throw cause;
    throw new Fault('invalid_config', `the schema orch cannot be renamed in ${place}: ${messageOf(cause)}`, {
      hint: 'as the owner of the database: grant create on database DATABASE to USER; alter schema orch owner to USER',
      cause,
    });
  }
}
