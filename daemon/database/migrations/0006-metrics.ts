/** Migration 6: metrics of agents' machines. */
import type { Migration } from './migration.js';

export const metrics: Migration = {
  version: 6,
  async up({ schema }) {
    await schema
      .createTable('metrics_samples')
      .addColumn('node_id', 'text', (column) => column.notNull())
      .addColumn('received_at', 'integer', (column) => column.notNull())
      .addColumn('collected_at', 'integer', (column) => column.notNull())
      .addColumn('cpu_usage', 'real')
      .addColumn('memory_used', 'integer')
      .addColumn('memory_total', 'integer')
      .addColumn('disk_used', 'integer')
      .addColumn('disk_total', 'integer')
      .addColumn('uptime', 'integer')
      .addPrimaryKeyConstraint('metrics_samples_key', ['node_id', 'received_at'])
      .execute();
    await schema.createIndex('metrics_samples_age').on('metrics_samples').column('received_at').execute();
  },
};
