/**
 * Migration 11: the position of an agent's record among all IDs, so that its operations are found without relying on
 * a clock.
 */
import type { Kysely } from 'kysely';
import { encodeTime } from 'ulid';
import type { Migration } from './migration.js';

/** Random part of the lowest ULID of a millisecond. */
const LOWEST = '0'.repeat(16);

export const agentIncarnation: Migration = {
  version: 11,
  async up(untyped) {
    const db = untyped as Kysely<AgentsBefore>;
    await db.schema
      .alterTable('agents')
      .addColumn('created_id', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
    const agents = await db.selectFrom('agents').select(['node_id', 'created_at']).execute();
    for (const { node_id, created_at } of agents) {
      const created_id = encodeTime(created_at) + LOWEST;
      await db.updateTable('agents').set({ created_id }).where('node_id', '=', node_id).execute();
    }
  },
};

interface AgentsBefore {
  agents: { node_id: string; created_at: number; created_id: string };
}
