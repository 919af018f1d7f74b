/** Makes SQLite itself refuse to change rows of a table; adding and deleting stay possible. */
import { type Kysely, sql } from 'kysely';

export async function refuseUpdates<T>(db: Kysely<T>, table: string): Promise<void> {
  await sql`
    create trigger ${sql.ref(`${table}_no_update`)} before update on ${sql.table(table)}
    begin select raise(abort, ${sql.lit(`rows of ${table} cannot be changed`)}); end
  `.execute(db);
}
