/** Migration 2: secrets, and the secret values with which each resource was applied. */
import type { Migration } from './migration.js';

export const secrets: Migration = {
  version: 2,
  async up({ schema }) {
    await schema
      .createTable('secrets')
      .addColumn('secret_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('name', 'text', (column) => column.notNull().unique())
      .addColumn('sealed', 'text', (column) => column.notNull())
      .addColumn('key_id', 'text', (column) => column.notNull())
      .addColumn('row_version', 'integer', (column) => column.notNull())
      .addColumn('description', 'text')
      .addColumn('expires_at', 'integer')
      .addColumn('expiry_told', 'integer', (column) => column.notNull())
      .addColumn('restriction_json', 'text')
      .addColumn('created_at', 'integer', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addColumn('updated_at', 'integer', (column) => column.notNull())
      .addColumn('updated_by', 'text', (column) => column.notNull())
      .execute();
    await schema.createIndex('secrets_key').on('secrets').column('key_id').execute();
    await schema.createIndex('secrets_expiry').on('secrets').columns(['expiry_told', 'expires_at']).execute();
    await schema.alterTable('applied_resources').addColumn('secrets_json', 'text').execute();
  },
};
