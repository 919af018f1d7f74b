/** Rows of the audit log and its signed marks. */

import { type Expression, type ExpressionBuilder, expressionBuilder, type SqlBool, sql } from 'kysely';
import { canonicalJson, type JsonObject } from '../../src/kernel/json.js';
import { chunks } from '../database/batches.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Database, Queryable, Row } from '../database/schema.js';
import { jsonStrings } from '../database/sql-json.js';
import { storedJson } from '../database/stored-json.js';

/** An event as it is stored. Its metadata stay text, because a walk along the chain also reads damaged events. */
export type AuditRow = Row<'audit_events'>;

/** Returns the metadata of an event. Throws a SyntaxError for a damaged text. */
export const metadataOf = <T = JsonObject>({ metadata_json }: Pick<AuditRow, 'metadata_json'>): T =>
  storedJson(metadata_json);

/** Returns the metadata of an event as they are stored; canonical JSON if nothing has damaged them. */
export const metadataTextOf = ({ metadata_json }: Pick<AuditRow, 'metadata_json'>): string => metadata_json;

/** Returns the column of an event's metadata. */
export const metadataColumn = (metadata: JsonObject): Pick<AuditRow, 'metadata_json'> => ({
  metadata_json: canonicalJson(metadata),
});

export async function insertAuditRows(db: Queryable, rows: readonly AuditRow[]): Promise<void> {
  const [only] = rows;
  if (rows.length === 1 && only !== undefined) await insertAuditRow(db, ...COLUMNS.map((column) => only[column]));
  else for (const part of chunks(rows, 500)) await db.insertInto('audit_events').values(part).execute();
}

const COLUMNS = [
  'seq',
  'id',
  'event_type',
  'severity',
  'summary',
  'timestamp',
  'actor_id',
  'actor_name',
  'actor_type',
  'target_id',
  'target_name',
  'target_type',
  'metadata_json',
  'hash',
] as const satisfies readonly (keyof AuditRow)[];

const insertAuditRow = preparedQuery((db, ...values: readonly (string | number)[]) =>
  db
    .insertInto('audit_events')
    .values(Object.fromEntries(COLUMNS.map((column, index) => [column, values[index]])) as unknown as AuditRow),
);

export async function lastAuditRow(db: Queryable): Promise<AuditRow | null> {
  return (await newestRow(db))[0] ?? null;
}

const newestRow = preparedQuery((db) => db.selectFrom('audit_events').selectAll().orderBy('seq', 'desc').limit(1));

/** Returns up to `limit` events with `seq > afterSeq`, ascending. */
export async function readAuditChain(db: Queryable, afterSeq: number, limit: number): Promise<readonly AuditRow[]> {
  return db.selectFrom('audit_events').selectAll().where('seq', '>', afterSeq).orderBy('seq').limit(limit).execute();
}

/** Returns the event with this `seq`, or null. */
export async function findAuditRow(db: Queryable, seq: number): Promise<AuditRow | null> {
  return (await db.selectFrom('audit_events').selectAll().where('seq', '=', seq).executeTakeFirst()) ?? null;
}

/** Returns the lowest `seq`, or null when the log is empty. */
export async function firstAuditSeq(db: Queryable): Promise<number | null> {
  return edge(db, 'asc');
}

/** Returns the lowest ID, or null when the log is empty. */
export async function firstAuditId(db: Queryable): Promise<string | null> {
  const row = await db.selectFrom('audit_events').select('id').orderBy('seq').limit(1).executeTakeFirst();
  return row?.id ?? null;
}

/** Returns the newest changes of an agent's tags, newest first, with the tags before each; null for a removal of the agent. */
export async function tagChangesOf(
  db: Queryable,
  nodeId: string,
  limit: number,
): Promise<readonly { readonly id: string; readonly before: Readonly<Record<string, string>> | null }[]> {
  const rows = await db
    .selectFrom('audit_events')
    .select(['id', 'event_type', 'metadata_json'])
    .where('target_type', '=', 'agent')
    .where('target_id', '=', nodeId)
    .where('event_type', 'in', ['agent.tags_changed', 'agent.removed'])
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    before: row.event_type === 'agent.removed' ? null : metadataOf<{ before: Record<string, string> }>(row).before,
  }));
}

/** Returns the highest `seq`, or null when the log is empty. */
export async function lastAuditSeq(db: Queryable): Promise<number | null> {
  return edge(db, 'desc');
}

async function edge(db: Queryable, order: 'asc' | 'desc'): Promise<number | null> {
  const row = await db.selectFrom('audit_events').select('seq').orderBy('seq', order).limit(1).executeTakeFirst();
  return row?.seq ?? null;
}

/** Returns the latest time in the log in Unix milliseconds, 0 when it is empty. */
export async function newestAuditTime(db: Queryable): Promise<number> {
  const ends = [...(await auditTurns(db)).map((seq) => seq - 1), Number.MAX_SAFE_INTEGER];
  const times = await Promise.all(ends.map(async (end) => (await eventUpTo(db, end))[0]?.timestamp ?? 0));
  return Math.max(...times);
}

/** The last event up to a `seq`. */
const eventUpTo = preparedQuery((db, seq: number) =>
  db.selectFrom('audit_events').select(['seq', 'timestamp']).where('seq', '<=', seq).orderBy('seq', 'desc').limit(1),
);

/** Key in `meta`: JSON array of each `seq` whose time is earlier than its predecessor's, ascending. */
const TURNS = 'audit.turns';

/** Notes that the time of event `seq` is earlier than its predecessor's. */
export async function noteAuditTurn(tx: Queryable, seq: number): Promise<void> {
  await setMetaJson(tx, TURNS, [...(await auditTurns(tx)), seq]);
}

async function auditTurns(db: Queryable): Promise<readonly number[]> {
  return (await getMetaJson<readonly number[]>(db, TURNS)) ?? [];
}

/** Returns the lowest `seq` of an event at or after `time` (Unix milliseconds), or null. */
export async function firstAuditSeqFrom(db: Queryable, time: number): Promise<number | null> {
  const turns = await auditTurns(db);
  const [first, last] = [await firstAuditSeq(db), await lastAuditSeq(db)];
  if (first === null || last === null) return null;
  const starts = [first, ...turns.filter((seq) => seq > first)];
  for (const [index, start] of starts.entries()) {
    const found = await firstLaterIn(db, time, { start, end: starts[index + 1] ?? last + 1 });
    if (found !== null) return found;
  }
  return null;
}

/** Searches by bisection: between two turns, times never decrease. */
async function firstLaterIn(
  db: Queryable,
  time: number,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<number | null> {
  let [low, high] = [start, end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // A damaged log may lack the event in the middle.
    const [event] = await eventUpTo(db, middle);
    if (event !== undefined && event.seq >= start && event.timestamp >= time) high = event.seq;
    else low = middle + 1;
  }
  return low < end ? low : null;
}

/** Returns the `seq` of the first event after this ID, or null. The event with this ID may be pruned. */
export async function firstAuditSeqAfterId(db: Queryable, id: string): Promise<number | null> {
  return firstSeqById(db, expressionBuilder<Database, 'audit_events'>()('id', '>', id));
}

/** Deletes the oldest events up to `seq`, at most `limit`. Returns the number deleted. */
export async function deleteAuditRowsUpTo(db: Queryable, seq: number, limit: number): Promise<number> {
  const first = await firstAuditSeq(db);
  if (first === null || first > seq) return 0;
  const last = Math.min(seq, first + limit - 1);
  const { numDeletedRows } = await db.deleteFrom('audit_events').where('seq', '<=', last).executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

/** Returns true when the log holds the removal of this agent by an operator. */
export async function wasRemovedByOperator(db: Queryable, nodeId: string): Promise<boolean> {
  const row = await db
    .selectFrom('audit_events')
    .select('seq')
    .where('target_type', '=', 'agent')
    .where('target_id', '=', nodeId)
    .where('event_type', '=', 'agent.removed')
    .where('actor_type', '=', 'operator')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the node IDs of the agents approved under a name, including removed ones. */
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

/** Filter of audit events; all conditions must hold, and an absent one matches everything. */
interface AuditQuery {
  /** Accepted event types. */
  readonly eventTypes?: readonly string[] | undefined;
  /** Prefix of the event type. */
  readonly category?: string | undefined;
  /** IDs of agents, one of which must be the actor or the target. */
  readonly agents?: readonly string[] | undefined;
  /** IDs of operators, one of which must be the actor or the target. */
  readonly operators?: readonly string[] | undefined;
  /** Only events that this reader may read [default: all]. */
  readonly reader?: LimitedReader | undefined;
  /** Unix milliseconds, inclusive. */
  readonly from?: number | undefined;
  /** Unix milliseconds, exclusive. */
  readonly until?: number | undefined;
  /** Exclusive upper bound by event ID; that event may be pruned. */
  readonly beforeId?: string | undefined;
  readonly limit: number;
}

/** An operator who may read what was recorded about some machines, and of the rest what they did themselves. */
export interface LimitedReader {
  readonly operatorId: string;
  readonly nodeIds: readonly string[];
  /** Machines whose earlier events are hidden: those with IDs up to `until`. */
  readonly hidden: readonly { readonly nodeIds: readonly string[]; readonly until: string }[];
}

type Condition = Expression<SqlBool>;
type Is = ExpressionBuilder<Database, 'audit_events'>;

/**
 * Returns up to `limit` matching events, newest first. Each alternative ("this actor and that type") is a query of
 * its own, which one index answers in order. So a page costs the same however long the log is.
 */
export async function listAuditRows(db: Queryable, query: AuditQuery): Promise<readonly AuditRow[]> {
  const range = await rangeOf(db, query);
  if (range === null) return [];
  const is = expressionBuilder<Database, 'audit_events'>();
  const found = new Set<number>();
  for (const branch of branchesOf(is, query, await typesOf(db, query))) {
    const rows = await db
      .selectFrom('audit_events')
      .select('seq')
      .where(is.and([...branch, ...range, ...readableBy(db, query.reader)]))
      .orderBy('seq', 'desc')
      .limit(query.limit)
      .execute();
    for (const { seq } of rows) found.add(seq);
  }
  return readRows(db, [...found].sort((a, b) => b - a).slice(0, query.limit));
}

/** Conditions of a search in a window of the log. */
export type AuditWindowQuery = Pick<AuditQuery, 'eventTypes' | 'category' | 'agents' | 'operators' | 'reader'>;

/** Returns the matching events with `after < seq <= to`, ascending. */
export async function listAuditWindow(
  db: Queryable,
  query: AuditWindowQuery,
  { after, to }: { readonly after: number; readonly to: number },
): Promise<readonly AuditRow[]> {
  const is = expressionBuilder<Database, 'audit_events'>();
  const conditions: Condition[] = [is('seq', '>', after), is('seq', '<=', to), ...readableBy(db, query.reader)];
  if (query.eventTypes) conditions.push(is('event_type', 'in', query.eventTypes));
  if (query.agents) conditions.push(is.or(partyOf(is, 'agent', query.agents)));
  if (query.operators) conditions.push(is.or(partyOf(is, 'operator', query.operators)));
  const rows = await db.selectFrom('audit_events').selectAll().where(is.and(conditions)).orderBy('seq').execute();
  const { category = '' } = query;
  return category === '' ? rows : rows.filter((row) => row.event_type.startsWith(category));
}

async function readRows(db: Queryable, seqs: readonly number[]): Promise<readonly AuditRow[]> {
  const rows: AuditRow[] = [];
  for (const part of chunks(seqs, 500)) {
    const query = db.selectFrom('audit_events').selectAll().where('seq', 'in', part);
    rows.push(...(await query.orderBy('seq', 'desc').execute()));
  }
  return rows;
}

/** Returns the event types to query, or null when there is neither a type nor a party to filter by. */
async function typesOf(db: Queryable, query: AuditQuery): Promise<readonly string[] | null> {
  const { eventTypes, category = '', agents, operators } = query;
  if (!eventTypes && category === '' && !agents && !operators) return null;
  return (eventTypes ?? (await distinctTypes(db))).filter((type) => type.startsWith(category));
}

/** Returns every event type in the log by skipping through the index from one type to the next. */
async function distinctTypes(db: Queryable): Promise<readonly string[]> {
  const types: string[] = [];
  for (;;) {
    const next = await db
      .selectFrom('audit_events')
      .select('event_type')
      .where('event_type', '>', types.at(-1) ?? '')
      .orderBy('event_type')
      .limit(1)
      .executeTakeFirst();
    if (!next) return types;
    types.push(next.event_type);
  }
}

/** Returns the alternatives to query. With both agents and operators given, the operators are checked row by row. */
function branchesOf(is: Is, { agents, operators }: AuditQuery, types: readonly string[] | null) {
  if (types === null) return [[]];
  const parties: (readonly Condition[])[] = [];
  if (agents) parties.push(partyOf(is, 'agent', agents));
  if (operators) parties.push(partyOf(is, 'operator', operators));
  const [party = [], ...others] = parties;
  const rest = others.map((one) => is.or(one));
  return types.flatMap((type): readonly (readonly Condition[])[] => {
    const isType = is('event_type', '=', type);
    return parties.length === 0 ? [[isType]] : party.map((one) => [one, isType, ...rest]);
  });
}

/** Returns the condition of the events that a reader may read. */
function readableBy(db: Queryable, reader: LimitedReader | undefined): readonly Condition[] {
  if (reader === undefined) return [];
  const { operatorId, nodeIds, hidden } = reader;
  const nodes = jsonStrings(db, JSON.stringify(nodeIds));
  const isShown = hidden.map(
    (one) => sql`and not ("target_id" in ${jsonStrings(db, JSON.stringify(one.nodeIds))} and "id" <= ${one.until})`,
  );
  return [
    sql<boolean>`(("actor_type" = 'operator' and "actor_id" = ${operatorId} and "target_type" != 'agent')
      or ("target_type" = 'agent' and "target_id" in ${nodes} ${sql.join(isShown, sql` `)}))`,
  ];
}

function partyOf(is: Is, type: string, ids: readonly string[]): readonly Condition[] {
  return ids.flatMap((id) => [
    // The condition of the index of actors. The other half finds the events that it leaves out.
    is.and([
      is('actor_type', '=', type),
      is('actor_id', '=', id),
      sql<boolean>`("actor_type" != "target_type" or "actor_id" != "target_id")`,
    ]),
    is.and([is('target_type', '=', type), is('target_id', '=', id)]),
  ]);
}

/**
 * Returns bounds on `seq`, or null when no event can match: times and IDs grow with `seq`. After a clock was
 * corrected backwards, times give only a lower bound, and each row is compared as well.
 */
async function rangeOf(db: Queryable, { from, until, beforeId }: AuditQuery): Promise<readonly Condition[] | null> {
  const is = expressionBuilder<Database, 'audit_events'>();
  const hasTurns = (await auditTurns(db)).length > 0;
  const bounds: Condition[] = [];
  if (from !== undefined) {
    const first = await firstAuditSeqFrom(db, from);
    if (first === null) return null;
    bounds.push(is('seq', '>=', first));
    if (hasTurns) bounds.push(is('timestamp', '>=', from));
  }
  if (until !== undefined && hasTurns) bounds.push(is('timestamp', '<', until));
  const ends = [
    ...(until === undefined || hasTurns ? [] : [await firstAuditSeqFrom(db, until)]),
    ...(beforeId === undefined ? [] : [await firstSeqById(db, is('id', '>=', beforeId))]),
  ];
  for (const end of ends) if (end !== null) bounds.push(is('seq', '<', end));
  return bounds;
}

async function firstSeqById(db: Queryable, condition: Condition): Promise<number | null> {
  const query = db.selectFrom('audit_events').select('seq').where(condition).orderBy('id').limit(1);
  return (await query.executeTakeFirst())?.seq ?? null;
}

/** Signed marks in the audit log, which `daemon/audit` signs and verifies. */
export type AuditMarkRow = Row<'audit_marks'>;

export async function insertAuditMark(db: Queryable, row: AuditMarkRow): Promise<void> {
  await db.insertInto('audit_marks').values(row).execute();
}

/** Returns up to `limit` checkpoints, newest first. */
export async function newestCheckpoints(db: Queryable, limit: number): Promise<readonly AuditMarkRow[]> {
  return newestMarks(db, limit);
}

const newestMarks = preparedQuery((db, limit: number) =>
  db.selectFrom('audit_marks').selectAll().where('kind', '=', 'checkpoint').orderBy('seq', 'desc').limit(limit),
);

/** Returns the checkpoints with `after < seq <= to`, ascending. */
export async function checkpointsBetween(db: Queryable, after: number, to: number): Promise<readonly AuditMarkRow[]> {
  return db
    .selectFrom('audit_marks')
    .selectAll()
    .where('kind', '=', 'checkpoint')
    .where('seq', '>', after)
    .where('seq', '<=', to)
    .orderBy('seq')
    .execute();
}

/** Returns the mark up to which the log was pruned, or null when it never was. */
export async function findAuditCut(db: Queryable): Promise<AuditMarkRow | null> {
  const cut = await db
    .selectFrom('audit_marks')
    .selectAll()
    .where('kind', '=', 'cut')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  return cut ?? null;
}

/** Returns the marks signed by any other key, newest first. */
export async function auditMarksOfOtherKeys(db: Queryable, publicKey: string): Promise<readonly AuditMarkRow[]> {
  return db.selectFrom('audit_marks').selectAll().where('public_key', '!=', publicKey).orderBy('seq', 'desc').execute();
}

/** Replaces the previous cut, and deletes the checkpoints up to the new one. */
export async function replaceAuditCut(db: Queryable, row: AuditMarkRow): Promise<void> {
  await db.deleteFrom('audit_marks').where('kind', '=', 'cut').execute();
  await db.deleteFrom('audit_marks').where('seq', '<=', row.seq).execute();
  await insertAuditMark(db, row);
}

export async function deleteCheckpoint(db: Queryable, seq: number): Promise<void> {
  await db.deleteFrom('audit_marks').where('kind', '=', 'checkpoint').where('seq', '=', seq).execute();
}
