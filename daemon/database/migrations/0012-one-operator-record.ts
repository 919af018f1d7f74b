/**
 * Migration 12: one record per operator ID, and every name that an ID ever had. Operators who were added again had
 * one record per addition. Enrolment tokens that were no longer accepted are revoked, because from now on a token
 * ends when its creator is removed.
 */
import { type Kysely, sql } from 'kysely';
import type { Migration } from './migration.js';

export const oneOperatorRecord: Migration = {
  version: 12,
  async up(db) {
    await db.schema
      .createTable('operator_names')
      .addColumn('operator_id', 'text', (column) => column.notNull())
      .addColumn('username', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('operator_names_key', ['username', 'operator_id'])
      .execute();
    await sql`insert into operator_names (operator_id, username) select distinct operator_id, username from operators`.execute(
      db,
    );
    await revokeFormerTokens(db);
    await sql`delete from operators where row_id not in (select max(row_id) from operators group by operator_id)`.execute(
      db,
    );
    for (const index of ['operators_active_operator_id', 'operators_operator_id', 'operators_username']) {
      await db.schema.dropIndex(index).execute();
    }
    await db.schema.createIndex('operators_operator_id').unique().on('operators').column('operator_id').execute();
  },
};

/** Revokes the tokens that were no longer accepted: their creator is no admin, or was removed and added again since. */
async function revokeFormerTokens(db: Kysely<unknown>): Promise<void> {
  await sql`
    update enrolment_tokens set revoked_at = created_at
    where revoked_at is null and not exists (
      select 1 from operators
      where operators.operator_id = enrolment_tokens.created_by and operators.removed_at is null
        and operators.role = 'admin' and operators.added_at <= enrolment_tokens.created_at
    )`.execute(db);
}
