/** Migration 27: operators with an end, and robots. */
import type { Migration } from './migration.js';

export const operatorExpiry: Migration = {
  version: 27,
  async up({ schema }) {
    const table = () => schema.alterTable('operators');
    await table()
      .addColumn('robot', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await table().addColumn('expires_at', 'integer').execute();
    await table()
      .addColumn('expiry_told', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await table().addColumn('last_used_at', 'integer').execute();
  },
};
