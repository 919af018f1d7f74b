/** Migration 29: whether an apply may begin outside the maintenance windows, which has to outlast a restart. */
import { sql } from 'kysely';
import type { Migration } from './migration.js';

export const outsideWindow: Migration = {
  version: 29,
  async up(db) {
    await db.schema
      .alterTable('operations')
      .addColumn('outside_window', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    // Until now a restart took it from the rollout of an apply, and every revert had it.
    await sql`
      update operations set outside_window = 1 where finished_at is null and (
        puts_back is not null or
        rollout_id in (select rollout_id from rollouts where order_json like '%"outsideWindow":true%')
      )
    `.execute(db);
  },
};
