/** Migration 3: assignments, and the rollouts of operations. */
import type { Migration } from './migration.js';

export const assignments: Migration = {
  version: 3,
  async up({ schema }) {
    await schema
      .createTable('assignments')
      .addColumn('name', 'text', (column) => column.primaryKey().notNull())
      .addColumn('modules_json', 'text', (column) => column.notNull())
      .addColumn('selector', 'text', (column) => column.notNull())
      .addColumn('description', 'text')
      .addColumn('created_at', 'integer', (column) => column.notNull())
      .addColumn('created_by', 'text', (column) => column.notNull())
      .execute();
    await schema.alterTable('operations').addColumn('rollout_id', 'text').execute();
    await schema
      .createIndex('operations_rollout')
      .on('operations')
      .columns(['rollout_id', 'operation_id'])
      .where('rollout_id', 'is not', null)
      .execute();
  },
};
