/** Maintenance windows, and what the audit log has been told of each. */
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
