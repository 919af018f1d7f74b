/** Migration 21: value sets, and values of assignments. */
import type { Migration } from './migration.js';

export const valueSets: Migration = {
  version: 21,
  async up({ schema }) {
    await schema
      .createTable('value_sets')
      .addColumn('name', 'text', (column) => column.primaryKey().notNull())
      .addColumn('revision', 'integer', (column) => column.notNull())
      .addColumn('sha256', 'text', (column) => column.notNull())
      .addColumn('content', 'text', (column) => column.notNull())
      .addColumn('set_json', 'text', (column) => column.notNull())
      .addColumn('uploaded_at', 'integer', (column) => column.notNull())
      .addColumn('uploaded_by', 'text', (column) => column.notNull())
      .execute();
    await schema.alterTable('assignments').addColumn('values_json', 'text').execute();
  },
};
