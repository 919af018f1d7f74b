/** Migration 8: maintenance windows, and the state of each in the audit log. */
import type { Migration } from './migration.js';

export const maintenance: Migration = {
  version: 8,
  async up({ schema }) {
    await schema
      .createTable('maintenance_windows')
      .addColumn('window_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('reason', 'text', (column) => column.notNull())
      .addColumn('starts_at', 'integer', (column) => column.notNull())
      .addColumn('ends_at', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'integer', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addColumn('told', 'text', (column) => column.notNull())
      .execute();
  },
};
