/** Migration 19: machines that have the key of an agent beside another machine, and what operators decided about them. */
import type { Migration } from './migration.js';

export const copiedAgents: Migration = {
  version: 19,
  async up({ schema }) {
    await schema
      .createTable('agent_machines')
      .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
      .addColumn('hostname', 'text', (column) => column.notNull())
      .addColumn('address', 'text', (column) => column.notNull())
      .addColumn('first_at', 'integer', (column) => column.notNull())
      .addColumn('last_at', 'integer', (column) => column.notNull())
      .addColumn('told_at', 'integer')
      .addColumn('decision', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('agent_machines_key', ['node_id', 'hostname', 'address'])
      .execute();
  },
};
