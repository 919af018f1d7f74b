/** Migration 20: modes of assignments, the standing of each agent, and maintenance windows of agents and assignments. */
import type { Migration } from './migration.js';

export const catchup: Migration = {
  version: 20,
  async up({ schema }) {
    await schema
      .alterTable('assignments')
      .addColumn('mode', 'text', (column) => column.notNull().defaultTo('manual'))
      .execute();
    await schema
      .alterTable('assignments')
      .addColumn('counted_from', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
    await schema.alterTable('assignments').addColumn('stopped_id', 'text').execute();
    await schema.alterTable('assignments').addColumn('stopped_reason', 'text').execute();
    await schema
      .alterTable('maintenance_windows')
      .addColumn('kind', 'text', (column) => column.notNull().defaultTo('pause'))
      .execute();
    await schema.alterTable('maintenance_windows').addColumn('selector', 'text').execute();
    await schema
      .alterTable('maintenance_windows')
      .addColumn('assignments_json', 'text', (column) => column.notNull().defaultTo('[]'))
      .execute();
    await schema
      .createTable('agent_standings')
      .addColumn('node_id', 'text', (column) =>
        column.primaryKey().notNull().references('agents.node_id').onDelete('cascade'),
      )
      .addColumn('standing', 'text', (column) => column.notNull())
      .addColumn('since', 'integer', (column) => column.notNull())
      .addColumn('reason', 'text')
      .addColumn('wanted_sha256', 'text')
      .addColumn('counted_from', 'text', (column) => column.notNull())
      .addColumn('stopped_id', 'text')
      .addColumn('stopped_at', 'integer')
      .addColumn('stopped_code', 'text')
      .addColumn('stopped_reason', 'text')
      .execute();
  },
};
