import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { preparedQuery } from '../../daemon/database/prepared-query.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { agentRow, node, openStore } from '../support/database.js';

describe('a prepared query', () => {
  const named = preparedQuery((db, id: string, name: string) =>
    db
      .selectFrom('agents')
      .select(['node_id', 'name', sql<string>`'name'`.as('literal')])
      .where('name', '=', name)
      .where('status', '=', 'approved')
      .where('node_id', '=', id),
  );

  it('puts each argument in its place, beside the constants, at every call', async () => {
    const { db } = await openStore();
    await insertAgent(db, agentRow({ node_id: node('1'), name: 'web' }));
    await insertAgent(db, agentRow({ node_id: node('2'), name: 'db' }));
    expect(await named(db, node('1'), 'web')).toEqual([{ node_id: node('1'), name: 'web', literal: 'name' }]);
    expect(await named(db, node('2'), 'db')).toMatchObject([{ name: 'db' }]);
    expect(await named(db, 'web', node('1'))).toEqual([]);
    const { db: other } = await openStore();
    expect(await named(other, node('1'), 'web')).toEqual([]);
  });

  it('sees the changes of the transaction in which it runs, and no others', async () => {
    const { db } = await openStore();
    const undone = db.transaction().execute(async (tx) => {
      await insertAgent(tx, agentRow({ node_id: node('1'), name: 'web' }));
      expect(await named(tx, node('1'), 'web')).toHaveLength(1);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await named(db, node('1'), 'web')).toEqual([]);
  });
});
