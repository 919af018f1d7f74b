/** Stores what is known of the standing of each approved agent. */
import { STANDINGS, type Standing } from '../../../src/contract/standing-names.js';
import { chunks } from '../../database/batches.js';
import type { NewRow, Queryable, Row } from '../../database/schema.js';

export type StandingRow = Row<'agent_standings'>;

export const listStandings = (db: Queryable): Promise<readonly StandingRow[]> =>
  db.selectFrom('agent_standings').selectAll().execute();

/** Returns the node IDs of all approved agents. */
export async function listApprovedIds(db: Queryable): Promise<readonly string[]> {
  const rows = await db.selectFrom('agents').select('node_id').where('status', '=', 'approved').execute();
  return rows.map(({ node_id }) => node_id);
}

/** Adds rows or replaces those of the same agents. Leaves out agents that no longer exist. */
export async function putStandings(db: Queryable, rows: readonly StandingRow[]): Promise<void> {
  for (const part of chunks(rows, 100)) {
    const ids = part.map(({ node_id }) => node_id);
    const known = await db.selectFrom('agents').select('node_id').where('node_id', 'in', ids).execute();
    const present = new Set(known.map(({ node_id }) => node_id));
    const values = part.filter(({ node_id }) => present.has(node_id));
    if (values.length > 0) await insert(db, values);
  }
}

const insert = (db: Queryable, values: readonly NewRow<'agent_standings'>[]) =>
  db
    .insertInto('agent_standings')
    .values(values)
    .onConflict((conflict) =>
      conflict.column('node_id').doUpdateSet((from) => ({
        standing: from.ref('excluded.standing'),
        since: from.ref('excluded.since'),
        reason: from.ref('excluded.reason'),
        wanted_sha256: from.ref('excluded.wanted_sha256'),
        counted_from: from.ref('excluded.counted_from'),
        stopped_id: from.ref('excluded.stopped_id'),
        stopped_at: from.ref('excluded.stopped_at'),
        stopped_code: from.ref('excluded.stopped_code'),
        stopped_reason: from.ref('excluded.stopped_reason'),
      })),
    )
    .execute();

export async function deleteStandings(db: Queryable, nodeIds: readonly string[]): Promise<void> {
  for (const part of chunks(nodeIds, 500)) {
    await db.deleteFrom('agent_standings').where('node_id', 'in', part).execute();
  }
}

/** Counts of agents by standing, zero for those without an agent. */
export function countStandings(rows: Iterable<{ readonly standing: Standing }>): Record<Standing, number> {
  const counts = Object.fromEntries(STANDINGS.map((standing) => [standing, 0])) as Record<Standing, number>;
  for (const { standing } of rows) counts[standing] += 1;
  return counts;
}
