/** Migration 16: rollouts and their agents. Rollouts of earlier releases are known only by their operations. */
import type { Migration } from './migration.js';

export const rollouts: Migration = {
  version: 16,
  async up({ schema }) {
    await schema
      .createTable('rollouts')
      .addColumn('rollout_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('reason', 'text')
      .addColumn('assignment', 'text')
      .addColumn('selector', 'text')
      .addColumn('order_json', 'text', (column) => column.notNull())
      .addColumn('pace_json', 'text', (column) => column.notNull())
      .addColumn('counts_json', 'text', (column) => column.notNull())
      .addColumn('actor_json', 'text', (column) => column.notNull())
      .addColumn('requested_by', 'text', (column) => column.notNull())
      .addColumn('request_id', 'text', (column) => column.notNull())
      .addColumn('started_at', 'integer', (column) => column.notNull())
      .addColumn('finished_at', 'integer')
      .addColumn('passed', 'integer', (column) => column.notNull())
      .addColumn('soaking_until', 'integer')
      .addColumn('expires_at', 'integer')
      .execute();
    await schema.createIndex('rollouts_state').on('rollouts').columns(['state', 'rollout_id']).execute();
    await schema.createIndex('rollouts_assignment').on('rollouts').columns(['assignment', 'rollout_id']).execute();
    await schema
      .createTable('rollout_agents')
      .addColumn('rollout_id', 'text', (column) =>
        column.notNull().references('rollouts.rollout_id').onDelete('cascade'),
      )
      .addColumn('position', 'integer', (column) => column.notNull())
      .addColumn('node_id', 'text', (column) => column.notNull())
      .addColumn('name', 'text')
      .addColumn('wave', 'integer', (column) => column.notNull())
      .addColumn('expect', 'text')
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('forgiven', 'integer', (column) => column.notNull())
      .addColumn('operation_id', 'text')
      .addColumn('summary_json', 'text')
      .addColumn('error_json', 'text')
      .addPrimaryKeyConstraint('rollout_agents_key', ['rollout_id', 'position'])
      .execute();
  },
};
