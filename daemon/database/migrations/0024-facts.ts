/** Migration 24: facts of agents beside their attributes, and those that an apply has read. */
import type { Migration } from './migration.js';

export const facts: Migration = {
  version: 24,
  async up({ schema }) {
    await schema
      .createTable('agent_facts')
      .addColumn('node_id', 'text', (column) =>
        column.primaryKey().notNull().references('agents.node_id').onDelete('cascade'),
      )
      .addColumn('facts_json', 'text', (column) => column.notNull())
      .addColumn('reported_at', 'integer', (column) => column.notNull())
      .execute();
    await schema.alterTable('operations').addColumn('facts_json', 'text').execute();
  },
};
