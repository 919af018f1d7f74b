/** Migration 19: applies that are undone unless they are confirmed. */
import type { Migration } from './migration.js';

export const confirmedApplies: Migration = {
  version: 19,
  async up({ schema }) {
    await schema.alterTable('operations').addColumn('confirm_secs', 'integer').execute();
    await schema.alterTable('operations').addColumn('confirmed_at', 'integer').execute();
    await schema
      .alterTable('operations')
      .addColumn('keeps_snapshot', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await schema.alterTable('operations').addColumn('puts_back', 'text').execute();
    await schema.alterTable('operations').addColumn('restored_json', 'text').execute();
  },
};
