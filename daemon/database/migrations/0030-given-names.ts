/** Migration 30: the names that agents had, so that a name is not given again in silence. Audit events tell earlier ones. */
import { sql } from 'kysely';
import type { Migration } from './migration.js';

export const givenNames: Migration = {
  version: 30,
  async up(db) {
    await db.schema
      .createTable('agent_names')
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('node_id', 'text', (column) => column.notNull())
      .addColumn('lost_at', 'integer')
      .addPrimaryKeyConstraint('agent_names_key', ['name', 'node_id'])
      .execute();
    await db.schema.createIndex('agent_names_node').on('agent_names').column('node_id').execute();
    await sql`
      insert into agent_names (name, node_id)
      select name, node_id from agents where name is not null
      union
      select target_name, target_id from audit_events
      where event_type in ('agent.approved', 'agent.renamed') and target_name != target_id
    `.execute(db);
  },
};
