/** Type of a migration: one step from a schema to the next, never changed after its release. */
import { type Kysely, sql } from 'kysely';
import { storeKindOf } from '../store-driver.js';

export interface Migration {
  /** Schema version that it leads to; consecutive. */
  readonly version: number;
  /** Runs in a transaction without foreign key enforcement; the keys are checked before the commit. */
  up(db: Kysely<unknown>): Promise<void>;
}

/** Makes the database refuse updates of a table; inserts and deletes stay possible. */
export async function refuseUpdates<T>(db: Kysely<T>, table: string): Promise<void> {
  if (storeKindOf(db) === 'postgres') {
    await refuseUpdatesOnPostgres(db, table);
    return;
  }
  await sql`
    create trigger ${sql.ref(`${table}_no_update`)} before update on ${sql.table(table)}
    begin select raise(abort, ${sql.lit(`rows of ${table} cannot be changed`)}); end
  `.execute(db);
}

async function refuseUpdatesOnPostgres<T>(db: Kysely<T>, table: string): Promise<void> {
  const name = sql.id(`${table}_no_update`);
  await sql`
    create function ${name}() returns trigger language plpgsql as ${sql.lit(
      `begin raise exception 'rows of ${table} cannot be changed'; end`,
    )}
  `.execute(db);
  await sql`
    create trigger ${name} before update on ${sql.table(table)} for each row execute function ${name}()
  `.execute(db);
}
