/** Which agents are connected, and since when others are away without anybody having been told. */
import type { NewRow, Queryable, Row } from '../database/schema.js';

export type AgentAbsenceRow = Row<'agent_absences'>;

export async function putAgentAbsence(db: Queryable, row: NewRow<'agent_absences'>): Promise<void> {
  const { node_id: _id, ...rest } = row;
  await db
    .insertInto('agent_absences')
    .values(row)
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(rest))
    .execute();
}

export async function findAgentAbsence(db: Queryable, nodeId: string): Promise<AgentAbsenceRow | null> {
  return (await db.selectFrom('agent_absences').selectAll().where('node_id', '=', nodeId).executeTakeFirst()) ?? null;
}

export async function deleteAgentAbsence(db: Queryable, nodeId: string): Promise<void> {
  await db.deleteFrom('agent_absences').where('node_id', '=', nodeId).execute();
}

/** Those that have gone in that span of time, or while the clock was ahead of `now`, the longest ago first. */
export async function agentsAwaySince(
  db: Queryable,
  { from, to, now }: { readonly from: number; readonly to: number; readonly now: number },
  limit: number,
): Promise<readonly AgentAbsenceRow[]> {
  const query = db
    .selectFrom('agent_absences')
    .selectAll()
    .where('away_since', '>=', from)
    .where((is) => is.or([is('away_since', '<=', to), is('away_since', '>', now)]));
  return query.orderBy('away_since').limit(limit).execute();
}

/** Those that count as connected since before that time, or since a time ahead of `now`. */
export async function agentsConnectedBefore(
  db: Queryable,
  { time, now }: { readonly time: number; readonly now: number },
  limit: number,
): Promise<readonly AgentAbsenceRow[]> {
  const query = db
    .selectFrom('agent_absences')
    .selectAll()
    .where((is) => is.or([is('connected_at', '<', time), is('connected_at', '>', now)]));
  return query.orderBy('node_id').limit(limit).execute();
}
