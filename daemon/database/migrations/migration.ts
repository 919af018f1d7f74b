/** Type of a migration: one step from a schema to the next, never changed after its release. */
import { type Kysely, sql } from 'kysely';

export interface Migration {
  /** Schema version that it leads to; consecutive. */
  readonly version: number;
  /** Runs in a transaction without foreign key enforcement; the keys are checked before the commit. */
  up(db: Kysely<unknown>): Promise<void>;
}

/** Makes SQLite refuse updates of a table; inserts and deletes stay possible. */
export async function refuseUpdates<T>(db: Kysely<T>, table: string): Promise<void> {
  await sql`
    create trigger ${sql.ref(`${table}_no_update`)} before update on ${sql.table(table)}
    begin select raise(abort, ${sql.lit(`rows of ${table} cannot be changed`)}); end
  `.execute(db);
}
