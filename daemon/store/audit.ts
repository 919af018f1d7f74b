/** The audit log as rows; `daemon/events` gives them their meaning. `metadata_json` is for the caller to parse. */
import { type Expression, type ExpressionBuilder, expressionBuilder, type SqlBool } from 'kysely';
import { chunks } from './chunks.js';
import type { Queryable } from './queryable.js';
import type { Database, Row } from './schema.js';

export type AuditRow = Row<'audit_events'>;

export async function insertAuditRows(db: Queryable, rows: readonly AuditRow[]): Promise<void> {
  for (const part of chunks(rows, 500)) await db.insertInto('audit_events').values(part).execute();
}

export async function lastAuditRow(db: Queryable): Promise<AuditRow | null> {
  return (await db.selectFrom('audit_events').selectAll().orderBy('seq', 'desc').limit(1).executeTakeFirst()) ?? null;
}

/** In the order they were written, those after a `seq`. */
export async function readAuditChain(db: Queryable, afterSeq: number, limit: number): Promise<readonly AuditRow[]> {
  return db.selectFrom('audit_events').selectAll().where('seq', '>', afterSeq).orderBy('seq').limit(limit).execute();
}

/** Node IDs of the agents, removed ones too, that were approved under a name. */
export async function nodeIdsOfName(db: Queryable, name: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('audit_events')
    .select('target_id')
    .distinct()
    .where('event_type', '=', 'agent.approved')
    .where('target_name', '=', name)
    .execute();
  return rows.map((row) => row.target_id);
}

/** What has to hold for an event; what is absent does not matter. */
export interface AuditQuery {
  /** Any of these; none at all matches nothing. */
  readonly eventTypes?: readonly string[] | undefined;
  /** IDs of agents: one of them acted or was acted upon. */
  readonly agents?: readonly string[] | undefined;
  /** IDs of operators, likewise. */
  readonly operators?: readonly string[] | undefined;
  /** Unix milliseconds, inclusive. */
  readonly from?: number | undefined;
  /** Unix milliseconds, exclusive. */
  readonly until?: number | undefined;
  /** Only what was written before this event; it need not be there any more. */
  readonly beforeId?: string | undefined;
  readonly limit: number;
}

type Condition = Expression<SqlBool>;
type Is = ExpressionBuilder<Database, 'audit_events'>;

/**
 * The newest events first. An alternative ("this actor or that target") is asked for by a query of its own, which an index
 * answers in order, so that a page costs the same however long the log is.
 */
export async function listAuditRows(db: Queryable, query: AuditQuery): Promise<readonly AuditRow[]> {
  const range = await rangeOf(db, query);
  if (range === null) return [];
  const is = expressionBuilder<Database, 'audit_events'>();
  const { branches, rest } = plan(is, query);
  const found = new Map<number, AuditRow>();
  for (const branch of branches) {
    const rows = await db
      .selectFrom('audit_events')
      .selectAll()
      .where(is.and([...range, ...branch, ...rest]))
      .orderBy('seq', 'desc')
      .limit(query.limit)
      .execute();
    for (const row of rows) found.set(row.seq, row);
  }
  return [...found.values()].sort((a, b) => b.seq - a.seq).slice(0, query.limit);
}

/** The alternatives that each have an index, and what is then checked event by event. */
function plan(is: Is, query: AuditQuery): { branches: readonly (readonly Condition[])[]; rest: readonly Condition[] } {
  const { eventTypes, agents, operators } = query;
  const parties = [
    ...(agents ? [partyOf(is, 'agent', agents)] : []),
    ...(operators ? [partyOf(is, 'operator', operators)] : []),
  ];
  const [party, ...others] = parties;
  if (party) {
    const types = eventTypes ? [is('event_type', 'in', eventTypes)] : [];
    return { branches: party.map((one) => [one]), rest: [...others.map((one) => is.or(one)), ...types] };
  }
  if (eventTypes) return { branches: eventTypes.map((type) => [is('event_type', '=', type)]), rest: [] };
  return { branches: [[]], rest: [] };
}

function partyOf(is: Is, type: string, ids: readonly string[]): readonly Condition[] {
  return ids.flatMap((id) => [
    is.and([is('actor_type', '=', type), is('actor_id', '=', id)]),
    is.and([is('target_type', '=', type), is('target_id', '=', id)]),
  ]);
}

/** Times and IDs grow with `seq`, so they become bounds of it; null when nothing can lie between them. */
async function rangeOf(db: Queryable, { from, until, beforeId }: AuditQuery): Promise<readonly Condition[] | null> {
  const is = expressionBuilder<Database, 'audit_events'>();
  const bounds: Condition[] = [];
  if (from !== undefined) {
    const first = await firstSeq(db, is('timestamp', '>=', from), 'timestamp');
    if (first === null) return null;
    bounds.push(is('seq', '>=', first));
  }
  const ends = [
    ...(until === undefined ? [] : [await firstSeq(db, is('timestamp', '>=', until), 'timestamp')]),
    ...(beforeId === undefined ? [] : [await firstSeq(db, is('id', '>=', beforeId), 'id')]),
  ];
  for (const end of ends) if (end !== null) bounds.push(is('seq', '<', end));
  return bounds;
}

async function firstSeq(db: Queryable, condition: Condition, order: 'timestamp' | 'id'): Promise<number | null> {
  const query = db.selectFrom('audit_events').select('seq').where(condition).orderBy(order).orderBy('seq').limit(1);
  return (await query.executeTakeFirst())?.seq ?? null;
}
