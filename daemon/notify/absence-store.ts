/** Queries of agents' connections and absences, from which notifications about outages are made. */
import { type SqlBool, sql } from 'kysely';
import type { RecordedEvent } from '../core/audit-log.js';
import { jsonColumns } from '../database/json-columns.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable } from '../database/schema.js';

interface AbsenceValues {
  /** Event of the disconnect; null while the agent is connected. */
  readonly event: RecordedEvent | null;
}

const columns = jsonColumns<AbsenceValues>({ event: true });

/**
 * Notes that an agent has connected. The start of an absence that was reported stays, until its end is reported too.
 * @param time Unix milliseconds
 */
export async function noteConnected(db: Queryable, nodeId: string, time: number): Promise<void> {
  await putConnected(db, nodeId, time);
}

const putConnected = preparedQuery((db, node_id: string, connected_at: number) =>
  db
    .insertInto('agent_absences')
    .values({ node_id, connected_at })
    .onConflict((conflict) =>
      conflict.column('node_id').doUpdateSet((row) => ({
        connected_at: row.ref('excluded.connected_at'),
        away_since: sql<
          number | null
        >`case when agent_absences.told_at is null then null else agent_absences.away_since end`,
        event_json: null,
      })),
    ),
);

/** Notes that an agent has disconnected. An absence whose end was not reported yet goes on, and is not reported again. */
export async function noteDisconnected(db: Queryable, event: RecordedEvent): Promise<void> {
  const { event_json } = columns.encode({ event });
  await putDisconnected(db, event.target.id, event.timestamp, event_json);
}

const putDisconnected = preparedQuery((db, node_id: string, away_since: number, event_json: string | null) =>
  db
    .insertInto('agent_absences')
    .values({ node_id, away_since, event_json })
    .onConflict((conflict) =>
      conflict.column('node_id').doUpdateSet((row) => ({
        connected_at: null,
        away_since: sql<number>`case when agent_absences.told_at is null then excluded.away_since else agent_absences.away_since end`,
        event_json: row.ref('excluded.event_json'),
      })),
    ),
);

export async function deleteAgentAbsence(db: Queryable, nodeId: string): Promise<void> {
  await db.deleteFrom('agent_absences').where('node_id', '=', nodeId).execute();
}

/** Times of one agent, in Unix milliseconds. */
export interface Times {
  readonly node_id: string;
  readonly at: number;
}

/**
 * Returns agents whose absence was not reported yet and began at `from` or later, longest absence first.
 * @param from Unix milliseconds
 */
export const untoldAbsences: (db: Queryable, from: number) => Promise<readonly Times[]> = preparedQuery(
  (db, from: number) =>
    db
      .selectFrom('agent_absences')
      .select(['node_id', sql<number>`away_since`.as('at')])
      .where('away_since', '>=', from)
      .where('told_at', 'is', null)
      .orderBy('away_since')
      .orderBy('node_id'),
);

export interface Absence {
  readonly node_id: string;
  readonly name: string | null;
  /** Unix milliseconds of its start. */
  readonly away_since: number;
  readonly event: RecordedEvent | null;
}

/**
 * Marks the absences as reported that began in this time and still last. Returns those of approved agents, longest first.
 * Times are Unix milliseconds.
 */
export async function reportAbsences(
  tx: Queryable,
  { from, to, now }: { readonly from: number; readonly to: number; readonly now: number },
): Promise<readonly Absence[]> {
  const rows = await tx
    .selectFrom('agent_absences')
    .innerJoin('agents', 'agents.node_id', 'agent_absences.node_id')
    .select(['agent_absences.node_id', 'agents.name', sql<number>`away_since`.as('away_since'), 'event_json'])
    .where('away_since', '>=', from)
    .where('away_since', '<=', to)
    .where('told_at', 'is', null)
    .where('agents.status', '=', 'approved')
    .orderBy('away_since')
    .orderBy('agents.name')
    .execute();
  await tx
    .updateTable('agent_absences')
    .set({ told_at: now })
    .where('away_since', '>=', from)
    .where('away_since', '<=', to)
    .where('told_at', 'is', null)
    .execute();
  return rows.map((row) => columns.decode(row));
}

/** State of the absences that were reported. Times are Unix milliseconds; null when no agent has returned. */
export interface Returns {
  readonly first: number | null;
  readonly last: number | null;
  /** Number of agents that are still away. */
  readonly away: number;
}

export async function readReturns(db: Queryable): Promise<Returns> {
  const [row] = await returns(db);
  return { first: row?.first ?? null, last: row?.last ?? null, away: row?.away ?? 0 };
}

const returns = preparedQuery((db) =>
  db
    .selectFrom('agent_absences')
    .select(({ fn }) => [
      fn.min('connected_at').as('first'),
      fn.max('connected_at').as('last'),
      sql<number>`count(*) - count(connected_at)`.as('away'),
    ])
    .where(sql<SqlBool>`told_at is not null`),
);

export interface Return extends Omit<Absence, 'event'> {
  /** Unix milliseconds of its return. */
  readonly connected_at: number;
}

/** Forgets the reported absences of agents that are connected again, and returns those of approved agents by name. */
export async function takeReturns(tx: Queryable): Promise<readonly Return[]> {
  const rows = await tx
    .selectFrom('agent_absences')
    .innerJoin('agents', 'agents.node_id', 'agent_absences.node_id')
    .select([
      'agent_absences.node_id',
      'agents.name',
      sql<number>`away_since`.as('away_since'),
      sql<number>`agent_absences.connected_at`.as('connected_at'),
    ])
    .where('told_at', 'is not', null)
    .where('agent_absences.connected_at', 'is not', null)
    .where('agents.status', '=', 'approved')
    .orderBy('agents.name')
    .execute();
  await tx
    .updateTable('agent_absences')
    .set({ told_at: null, away_since: null })
    .where('told_at', 'is not', null)
    .where('connected_at', 'is not', null)
    .execute();
  return rows;
}

/**
 * Returns agents recorded as connected before `time`, or at a time ahead of `now` because the clock was wrong. Times are
 * Unix milliseconds.
 */
export const connectedBefore: (db: Queryable, time: number, now: number, limit: number) => Promise<readonly Times[]> =
  preparedQuery((db, time: number, now: number, limit: number) =>
    db
      .selectFrom('agent_absences')
      .select(['node_id', sql<number>`connected_at`.as('at')])
      .where((is) => is.or([is('connected_at', '<', time), is('connected_at', '>', now)]))
      .orderBy('node_id')
      .limit(limit),
  );

/** Returns true if the agent is still recorded as connected since `time`, in Unix milliseconds. */
export async function isConnectedSince(tx: Queryable, { node_id, at }: Times): Promise<boolean> {
  const query = tx.selectFrom('agent_absences').select('node_id').where('node_id', '=', node_id);
  return (await query.where('connected_at', '=', at).executeTakeFirst()) !== undefined;
}
