/** Stores drift records, converts them for the API, and derives the events of a check. */

import { sql } from 'kysely';
import { encodeTime } from 'ulid';
import { DRIFT_STATUSES, type DriftDetail, type DriftRecord } from '../../../src/contract/runs.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { isFault, messageOf } from '../../../src/kernel/fault.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { type Summary, summarize } from '../../../src/resources/result.js';
import { countResults, isUnchanged, itemsOf, shortened, type Unchanged } from '../../../src/resources/run-results.js';
import type { EventType } from '../../core/domain-event.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { DriftTable, Queryable, Row } from '../../database/schema.js';
import { jsonStrings } from '../../database/sql-json.js';
import { isReadable, type Readable } from '../../fleet/machines.js';
import type { OperationError } from '../operations/operation-error.js';
import type { Observed } from '../runs/observations.js';
import { deleteUnusedContents } from '../runs/run-contents.js';
import { type DriftResult, isDrifted, resultView } from './drift-results.js';

interface DriftValues {
  readonly summary: Summary;
  /** Results in the order of the resources; with a `content_id`, those of unchanged resources in short. */
  readonly resources: readonly (DriftResult | Unchanged)[];
  readonly error: OperationError | null;
}

const columns = jsonColumns<DriftValues>({ summary: true, resources: true, error: true });

export type DriftRow = Decoded<Row<'drift_records'>, DriftValues>;
/** A record without its resources. */
type DriftHead = Omit<DriftRow, 'resources'>;

const HEAD = [
  'drift_id',
  'node_id',
  'status',
  'trigger',
  'requested_by',
  'operation_id',
  'started_at',
  'finished_at',
  'has_changes',
  'summary_json',
  'error_json',
  'content_id',
  'snoozed',
  'accepted',
] as const satisfies readonly (keyof DriftTable)[];

/** Stored in the place of a summary that follows from the resources, because all of them are unchanged ones in short. */
const IMPLIED = '{}';

export async function insertDrift(db: Queryable, record: DriftRow): Promise<void> {
  const row = columns.encode(record);
  const summary_json = record.resources.every(isUnchanged) && record.error === null ? IMPLIED : row.summary_json;
  const stored = { ...row, summary_json };
  await insertRow(db, ...STORED.map((column) => stored[column]));
}

const STORED = [...HEAD, 'resources_json'] as const satisfies readonly (keyof DriftTable)[];

const insertRow = preparedQuery((db, ...values: readonly (string | number | null)[]) =>
  db
    .insertInto('drift_records')
    .values(
      Object.fromEntries(STORED.map((column, index) => [column, values[index]])) as unknown as Row<'drift_records'>,
    ),
);

function decoded(row: Row<'drift_records'>): DriftRow {
  const record = columns.decode(row);
  return row.summary_json === IMPLIED ? { ...record, summary: impliedSummary(record.resources) } : record;
}

/** Decodes a record that has its resources only if its summary follows from them. */
function decodedHead({ resources_json, ...row }: StoredHead): DriftHead {
  if (resources_json !== null) return decoded({ ...row, resources_json });
  const { resources: _, ...head } = columns.decode({ ...row, resources_json: '[]' });
  return head;
}

type StoredHead = Omit<Row<'drift_records'>, 'resources_json'> & { readonly resources_json: string | null };

function impliedSummary(resources: DriftValues['resources']): Summary {
  const total = countResults(resources.filter(isUnchanged));
  return { ...summarize([]), total, unchanged: total };
}

export async function findDrift(db: Queryable, driftId: string): Promise<DriftRow | null> {
  const row = await db.selectFrom('drift_records').selectAll().where('drift_id', '=', driftId).executeTakeFirst();
  return row === undefined ? null : decoded(row);
}

interface DriftFilter {
  readonly nodeId?: string | undefined;
  /** Only records of these agents. */
  readonly nodeIds?: readonly string[] | undefined;
  /** Leaves out records with lower IDs, which belong to a removed agent with the same node ID. */
  readonly since?: string | undefined;
  readonly status?: string | null | undefined;
  /** Cursor: only records older than this ID. */
  readonly before?: string | null | undefined;
  /** Only records that may be read; null for all. */
  readonly readable?: Readable | null | undefined;
}

/** Returns the records newest first, without their resources. */
export async function listDrift(
  db: Queryable,
  page: DriftFilter & { readonly limit: number },
): Promise<readonly DriftHead[]> {
  const implied = sql<string | null>`case when "summary_json" = ${sql.lit(IMPLIED)} then "resources_json" end`;
  const query = newest(db, page).select(HEAD).select(implied.as('resources_json'));
  return (await query.limit(page.limit).execute()).map(decodedHead);
}

/** Returns the newest record of an agent, or null. */
export async function latestDrift(
  db: Queryable,
  filter: DriftFilter & { readonly nodeId: string },
): Promise<DriftRow | null> {
  const row = await newest(db, filter).selectAll().limit(1).executeTakeFirst();
  return row === undefined ? null : decoded(row);
}

/** Returns the status of the newest record of an agent, or null. */
export async function latestDriftStatus(
  db: Queryable,
  { nodeId, since }: { readonly nodeId: string; readonly since: string },
): Promise<string | null> {
  return (await latestStatus(db, nodeId, since))[0]?.status ?? null;
}

const latestStatus = preparedQuery((db, nodeId: string, since: string) =>
  newest(db, { nodeId, since }).select('status').limit(1),
);

/** Returns the newest check of an agent with a result, or null. */
export async function latestDriftResult(
  db: Queryable,
  filter: { readonly nodeId: string; readonly since: string },
): Promise<Pick<DriftRow, 'drift_id' | 'status'> | null> {
  return (await latestResult(db, filter.nodeId, filter.since))[0] ?? null;
}

const latestResult = preparedQuery((db, nodeId: string, since: string) =>
  newest(db, { nodeId, since }).select(['drift_id', 'status']).where('status', 'in', ['drifted', 'in_sync']).limit(1),
);

/**
 * Returns `drifted` if the newest check with a result found drift and no apply has succeeded since, else `in_sync`. Returns null
 * when no check has a result.
 */
export async function latestDriftState(
  db: Queryable,
  filter: { readonly nodeId: string; readonly since: string },
): Promise<'drifted' | 'in_sync' | null> {
  const latest = await latestDriftResult(db, filter);
  if (latest === null) return null;
  if (latest.status !== 'drifted') return 'in_sync';
  const repaired = await db
    .selectFrom('operations')
    .select('operation_id')
    .where('node_id', '=', filter.nodeId)
    .where('operation_id', '>', latest.drift_id)
    .where('state', '=', 'succeeded')
    .limit(1)
    .executeTakeFirst();
  return repaired === undefined ? 'drifted' : 'in_sync';
}

/**
 * Deletes at most `limit` records made before `time` (Unix milliseconds), oldest first; returns their number. Keeps the newest
 * record with a result of every existing agent and the records after it, because they are its last known state.
 */
export async function deleteDriftBefore(db: Queryable, time: number, limit: number): Promise<number> {
  const old = db
    .selectFrom('drift_records as old')
    .select('old.drift_id')
    // Drift IDs are ULIDs, so they sort by time.
    .where('old.drift_id', '<', encodeTime(time))
    .where(({ or, not, exists, selectFrom }) =>
      or([
        not(exists(selectFrom('agents').select('agents.node_id').whereRef('agents.node_id', '=', 'old.node_id'))),
        exists(
          selectFrom('drift_records as newer')
            .select('newer.drift_id')
            .whereRef('newer.node_id', '=', 'old.node_id')
            .whereRef('newer.drift_id', '>', 'old.drift_id')
            .where('newer.status', 'in', ['drifted', 'in_sync']),
        ),
      ]),
    )
    .orderBy('old.drift_id')
    .limit(limit);
  const deleted = await db.deleteFrom('drift_records').where('drift_id', 'in', old).returning('content_id').execute();
  await deleteUnusedContents(db, deleted);
  return deleted.length;
}

function newest(db: Queryable, { nodeId, nodeIds, since, status, before, readable }: DriftFilter) {
  let query = db.selectFrom('drift_records').orderBy('drift_id', 'desc');
  if (nodeId !== undefined) query = query.where('node_id', '=', nodeId);
  if (nodeIds !== undefined) {
    // One parameter, whatever the number of agents.
    query = query.where('node_id', 'in', jsonStrings(db, JSON.stringify(nodeIds)));
  }
  if (since !== undefined) query = query.where('drift_id', '>=', since);
  if (status) query = query.where('status', '=', status);
  // Lets SQLite use the index of statuses, which leaves out the others.
  if (status && status !== 'in_sync') query = query.where(sql<boolean>`"status" != 'in_sync'`);
  if (before != null) query = query.where('drift_id', '<', before);
  if (readable != null) query = query.where(isReadable(db, readable, 'drift_id'));
  return query;
}

/** Status of a drift record in the API. */
export type DriftStatus = DriftRecord['status'];

const statusOf = (status: string): DriftStatus => DRIFT_STATUSES.find((known) => known === status) ?? 'failed';

export function driftView(row: DriftHead): DriftRecord {
  return {
    drift_id: row.drift_id,
    node_id: row.node_id,
    status: statusOf(row.status),
    trigger: row.trigger === 'scheduled' ? 'scheduled' : 'manual',
    requested_by: row.requested_by,
    operation_id: row.operation_id,
    started_at: toSeconds(row.started_at),
    finished_at: toSeconds(row.finished_at),
    has_changes: row.has_changes === 1,
    summary: row.summary,
    snoozed: row.snoozed,
    accepted: row.accepted,
    error: row.error,
  };
}

/** @param sent the resources of the record's content */
export const driftDetail = (row: DriftRow, sent: readonly DesiredResource[]): DriftDetail => ({
  ...driftView(row),
  resources: resultsOf(row, sent).map(resultView),
});

/** Returns all results of a record. @param sent the resources of its content */
export const resultsOf = (row: DriftRow, sent: readonly DesiredResource[]): readonly DriftResult[] =>
  row.resources.flatMap((one): readonly DriftResult[] =>
    isUnchanged(one) ? itemsOf(one, sent).map(({ result }) => result) : [one],
  );

/** Returns the results with those of unchanged resources in short. `results` has one for each resource, in their order. */
export const shortResults = (
  results: readonly DriftResult[],
  resources: readonly DesiredResource[],
): DriftValues['resources'] =>
  shortened(
    results.map((result, index) => ({ index, existed: true, result })),
    resources,
  ).map((one) => (isUnchanged(one) ? one : one.result));

/** Types of the events that a drift check emits. */
type DriftEventType = Extract<EventType, 'drift.checked' | 'drift.detected' | 'drift.resolved' | 'drift.failed'>;

export interface DriftOutcome {
  readonly status: DriftStatus;
  readonly results: readonly DriftResult[];
  readonly error: OperationError | null;
}

/**
 * Derives the outcome of a finished check. Any difference without an excuse counts as drift, even if other resources could not be
 * observed.
 */
export function outcomeOf({ results, end, error }: Observed): DriftOutcome {
  if (results.some(isDrifted)) return { status: 'drifted', results, error };
  if (end === 'succeeded' && results.every(({ status }) => status === 'unchanged' || status === 'pending')) {
    return { status: 'in_sync', results, error };
  }
  const failed = results.filter(({ status }) => status === 'failed').length;
  const unobserved = { code: 'observe_failed', message: `${failed} resources could not be observed` };
  return { status: end === 'cancelled' ? 'cancelled' : 'failed', results, error: error ?? unobserved };
}

/** Derives the outcome of a check that threw. */
export function outcomeOfFailure(error: unknown): DriftOutcome {
  const known = isFault(error) ? { code: error.code, message: error.message } : null;
  return {
    status: isFault(error, 'cancelled', 'shutting_down') ? 'cancelled' : 'failed',
    results: [],
    error: known ?? { code: 'internal', message: messageOf(error) },
  };
}

/**
 * Returns the events of a check. `before` is the last known state, or null. `drift.detected` and `drift.resolved` are emitted once when drift begins and ends,
 * however often it is checked.
 */
export function driftEvents(status: DriftStatus, before: 'drifted' | 'in_sync' | null): readonly DriftEventType[] {
  if (status === 'failed') return ['drift.failed'];
  if (status === 'drifted' && before !== 'drifted') return ['drift.checked', 'drift.detected'];
  if (status === 'in_sync' && before === 'drifted') return ['drift.checked', 'drift.resolved'];
  return ['drift.checked'];
}
