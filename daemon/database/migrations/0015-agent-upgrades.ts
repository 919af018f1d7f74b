/** Migration 15: the last upgrade of each agent. */
import type { Migration } from './migration.js';

export const agentUpgrades: Migration = {
  version: 15,
  async up({ schema }) {
    await schema
      .createTable('agent_upgrades')
      .addColumn('node_id', 'text', (column) =>
        column.primaryKey().notNull().references('agents.node_id').onDelete('cascade'),
      )
      .addColumn('upgrade_id', 'text', (column) => column.notNull())
      .addColumn('version', 'text', (column) => column.notNull())
      .addColumn('from_version', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('wait_secs', 'integer', (column) => column.notNull())
      .addColumn('waits_for', 'text')
      .addColumn('error_json', 'text')
      .addColumn('requested_by', 'text', (column) => column.notNull())
      .addColumn('requested_at', 'integer', (column) => column.notNull())
      .addColumn('updated_at', 'integer', (column) => column.notNull())
      .execute();
  },
};
