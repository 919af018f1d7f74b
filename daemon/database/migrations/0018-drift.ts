/** Migration 18: applies of earlier desired states, and snoozed and accepted drift. */
import type { Migration } from './migration.js';

export const drift: Migration = {
  version: 18,
  async up({ schema }) {
    await schema.alterTable('operations').addColumn('restores', 'text').execute();
    for (const column of ['snoozed', 'accepted']) {
      await schema
        .alterTable('drift_records')
        .addColumn(column, 'integer', (made) => made.notNull().defaultTo(0))
        .execute();
    }
    await schema
      .createTable('drift_snoozes')
      .addColumn('snooze_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
      .addColumn('resources_json', 'text')
      .addColumn('reason', 'text', (column) => column.notNull())
      .addColumn('created_at', 'integer', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .addColumn('ends_at', 'integer', (column) => column.notNull())
      .execute();
    await schema.createIndex('drift_snoozes_of_node').on('drift_snoozes').columns(['node_id', 'ends_at']).execute();
    await schema
      .createTable('drift_accepts')
      .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
      .addColumn('family', 'text', (column) => column.notNull())
      .addColumn('identity_key', 'text', (column) => column.notNull())
      .addColumn('module', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('identity', 'text', (column) => column.notNull())
      .addColumn('operation_id', 'text', (column) => column.notNull())
      .addColumn('observed', 'text', (column) => column.notNull())
      .addColumn('drift_id', 'text', (column) => column.notNull())
      .addColumn('reason', 'text')
      .addColumn('accepted_at', 'integer', (column) => column.notNull())
      .addColumn('accepted_by', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('drift_accepts_key', ['node_id', 'family', 'identity_key'])
      .execute();
  },
};
