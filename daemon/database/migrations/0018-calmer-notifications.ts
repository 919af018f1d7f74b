/** Migration 18: pauses and filters of channels, and absences of agents whose end is still to be reported. */
import { sql } from 'kysely';
import type { Migration } from './migration.js';

export const calmerNotifications: Migration = {
  version: 18,
  async up({ schema }) {
    await schema.alterTable('channels').addColumn('paused_until', 'integer').execute();
    await schema
      .alterTable('channels')
      .addColumn('events', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
    await schema
      .alterTable('channels')
      .addColumn('min_severity', 'text', (column) => column.notNull().defaultTo('info'))
      .execute();
    await schema.alterTable('agent_absences').addColumn('told_at', 'integer').execute();
    await schema
      .createIndex('agent_absences_told')
      .on('agent_absences')
      .column('told_at')
      .where(sql.ref('told_at'), 'is not', null)
      .execute();
  },
};
