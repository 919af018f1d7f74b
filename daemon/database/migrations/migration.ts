/** What a migration is: one step from a schema to the next, never changed once it was released. */
import { type Kysely, sql } from 'kysely';

export interface Migration {
  /** Of the schema it leads to; steps of 1. */
  readonly version: number;
  /** Runs in a transaction without foreign key enforcement; the keys are checked before it commits. */
  up(db: Kysely<unknown>): Promise<void>;
}

/** Makes SQLite itself refuse to change rows of a table; adding and deleting stay possible. */
export async function refuseUpdates<T>(db: Kysely<T>, table: string): Promise<void> {
  await sql`
    create trigger ${sql.ref(`${table}_no_update`)} before update on ${sql.table(table)}
    begin select raise(abort, ${sql.lit(`rows of ${table} cannot be changed`)}); end
  `.execute(db);
}
