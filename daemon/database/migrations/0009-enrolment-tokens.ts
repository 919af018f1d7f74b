/** Migration 9: enrolment tokens, and the token with which each agent enrolled. */
import type { Migration } from './migration.js';

export const enrolmentTokens: Migration = {
  version: 9,
  async up({ schema }) {
    await schema
      .createTable('enrolment_tokens')
      .addColumn('token_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('secret_hash', 'text', (column) => column.notNull())
      .addColumn('created_at', 'integer', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'integer', (column) => column.notNull())
      .addColumn('uses', 'integer', (column) => column.notNull())
      .addColumn('uses_left', 'integer', (column) => column.notNull())
      .addColumn('tags_json', 'text', (column) => column.notNull())
      .addColumn('auto_approve', 'integer', (column) => column.notNull())
      .addColumn('last_used_at', 'integer')
      .addColumn('revoked_at', 'integer')
      .execute();
    await schema.createIndex('enrolment_tokens_expiry').on('enrolment_tokens').column('expires_at').execute();
    await schema.alterTable('agents').addColumn('enrolment_token_id', 'text').execute();
  },
};
