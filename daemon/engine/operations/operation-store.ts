/** Stores applies, their dispatched content and their results. */
import { expressionBuilder, type Updateable } from 'kysely';
import { encodeTime } from 'ulid';
import type { DesiredResource, Removal } from '../../../src/resources/desired.js';
import type { ResourceResult, Summary } from '../../../src/resources/result.js';
import type { Party } from '../../core/domain-event.js';
import { chunks, upTo } from '../../database/batches.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import type { Database, NewRow, OperationTable, Queryable, Row } from '../../database/schema.js';
import type { SecretHashes } from '../agent-secrets.js';
import type { OperationContent } from './live-operations.js';
import type { OperationError } from './operation-state.js';

interface OperationValues {
  /** Names of modules and of assignments. */
  readonly modules: readonly string[];
  readonly assignments: readonly string[];
  readonly summary: Summary;
  readonly error: OperationError | null;
  /** Party that cancelled it; null for none. */
  readonly cancelled_by: Party | null;
}

const columns = jsonColumns<OperationValues>({
  modules: true,
  assignments: true,
  summary: true,
  error: true,
  cancelled_by: true,
});

/** An operation. Its content is large and stays text until `contentOf` decodes it. */
export type OperationRow = Decoded<Row<'operations'>, OperationValues>;
export type NewOperationRow = Decoded<NewRow<'operations'>, OperationValues>;
/** An operation without its dispatched content. */
export type OperationHead = Omit<OperationRow, keyof StoredContent>;

interface ResultValues {
  readonly result: ResourceResult;
}

const resultColumns = jsonColumns<ResultValues>({ result: true });

/** A result, which stays text until `resultOf` decodes it: an operation may have 10,000. */
export type OperationResultRow = Row<'operation_results'>;
type NewResultRow = Decoded<NewRow<'operation_results'>, ResultValues>;

const HEAD = [
  'operation_id',
  'node_id',
  'node_name',
  'state',
  'modules_json',
  'assignments_json',
  'requested_by',
  'request_id',
  'started_at',
  'finished_at',
  'epoch',
  'generation',
  'summary_json',
  'error_json',
  'accepted',
  'cancelled_by_json',
  'rollout_id',
] as const satisfies readonly (keyof OperationTable)[];

export async function insertOperation(db: Queryable, operation: NewOperationRow): Promise<void> {
  await db.insertInto('operations').values(columns.encode(operation)).execute();
}

export async function findOperation(db: Queryable, operationId: string): Promise<OperationRow | null> {
  const query = db.selectFrom('operations').selectAll().where('operation_id', '=', operationId);
  const row = await query.executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function findOperationHead(db: Queryable, operationId: string): Promise<OperationHead | null> {
  const query = db.selectFrom('operations').select(HEAD).where('operation_id', '=', operationId);
  const row = await query.executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Updates an operation; with `from`, only while it is in one of those states. Returns false when no row matches. */
export async function updateOperation(
  db: Queryable,
  operationId: string,
  change: Decoded<Omit<Updateable<OperationTable>, 'operation_id'>, OperationValues>,
  from?: readonly string[],
): Promise<boolean> {
  let query = db.updateTable('operations').set(columns.encode(change)).where('operation_id', '=', operationId);
  if (from) query = query.where('state', 'in', from);
  return (await query.executeTakeFirst()).numUpdatedRows > 0n;
}

interface OperationFilter {
  readonly nodeId?: string | undefined;
  /** Leaves out operations with lower IDs, which belong to a removed agent with the same node ID. */
  readonly since?: string | undefined;
  readonly states?: readonly string[] | undefined;
  readonly rolloutId?: string | undefined;
}

interface OperationPage extends OperationFilter {
  readonly limit: number;
  readonly offset?: number | undefined;
}

/** Returns a page of operations, most recent first. */
export async function listOperations(db: Queryable, page: OperationPage): Promise<readonly OperationHead[]> {
  const rows = await db
    .selectFrom('operations')
    .select(HEAD)
    .where(matches(page))
    .orderBy('operation_id', 'desc')
    .limit(page.limit)
    .offset(page.offset ?? 0)
    .execute();
  return rows.map((row) => columns.decode(row));
}

export async function countOperations(db: Queryable, filter: OperationFilter = {}): Promise<number> {
  const { count } = await db
    .selectFrom('operations')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where(matches(filter))
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns all operations in these states with their dispatched content, oldest first; of one agent or all agents. */
export async function listOperationsInStates(
  db: Queryable,
  states: readonly string[],
  nodeId?: string,
): Promise<readonly OperationRow[]> {
  const query = db.selectFrom('operations').selectAll().where(matches({ states, nodeId }));
  return (await query.orderBy('operation_id').execute()).map((row) => columns.decode(row));
}

function matches({ nodeId, since, states, rolloutId }: OperationFilter) {
  const is = expressionBuilder<Database, 'operations'>();
  return is.and([
    ...(nodeId === undefined ? [] : [is('node_id', '=', nodeId)]),
    ...(since === undefined ? [] : [is('operation_id', '>=', since)]),
    ...(states === undefined ? [] : [is('state', 'in', states)]),
    ...(rolloutId === undefined ? [] : [is('rollout_id', '=', rolloutId)]),
  ]);
}

/** Columns of the dispatched content of an operation, with secrets masked. */
type StoredContent = Pick<Row<'operations'>, 'desired_json' | 'removals_json'>;

/** Value of `desired_json`. */
interface Desired {
  readonly resources: readonly DesiredResource[];
  readonly ad_hoc: readonly string[];
  readonly expect: string | null;
  /** Absent in rows stored before secrets existed. */
  readonly secrets?: SecretHashes;
  readonly failures?: OperationContent['failures'];
}

/** Returns the columns of a content. Takes long for a large one, so call it before the transaction that stores them. */
export function contentColumns(content: OperationContent): StoredContent {
  const { resources, removals, failures, adHoc, expect, secrets } = content;
  const desired: Desired = { resources, ad_hoc: [...adHoc], expect, secrets, failures };
  return { desired_json: JSON.stringify(desired), removals_json: JSON.stringify(removals) };
}

/** Returns the dispatched content of an operation. */
export function contentOf({ desired_json, removals_json }: StoredContent): OperationContent {
  const desired: Desired = JSON.parse(desired_json);
  const removals: readonly Removal[] = JSON.parse(removals_json);
  const { resources, failures = [], ad_hoc: adHoc, expect, secrets = {} } = desired;
  return { resources, removals, failures, adHoc: new Set(adHoc), expect, secrets };
}

export async function insertOperationResults(db: Queryable, results: readonly NewResultRow[]): Promise<void> {
  for (const part of chunks(results, 200)) {
    await db
      .insertInto('operation_results')
      .values(part.map((row) => resultColumns.encode(row)))
      .execute();
  }
}

/** Returns the result of a row. */
export const resultOf = ({ result_json }: OperationResultRow): ResourceResult => JSON.parse(result_json);

/** Returns the results in the order they arrived, optionally from a position on. */
export async function listOperationResults(
  db: Queryable,
  operationId: string,
  from = 0,
): Promise<readonly OperationResultRow[]> {
  return db
    .selectFrom('operation_results')
    .selectAll()
    .where('operation_id', '=', operationId)
    .where('position', '>=', from)
    .orderBy('position')
    .execute();
}

/** Returns at most `limit` results from a position on, in the order they arrived. */
export async function pageOperationResults(
  db: Queryable,
  operationId: string,
  page: { readonly from: number; readonly limit: number },
): Promise<readonly OperationResultRow[]> {
  return db
    .selectFrom('operation_results')
    .selectAll()
    .where('operation_id', '=', operationId)
    .where('position', '>=', page.from)
    .orderBy('position')
    .limit(page.limit)
    .execute();
}

/** Returns the number of stored results, which is the position of the next one. */
export async function countOperationResults(db: Queryable, operationId: string): Promise<number> {
  const { count } = await db
    .selectFrom('operation_results')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('operation_id', '=', operationId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the newest operation of an agent, or null. */
export async function lastOperationOf(
  db: Queryable,
  nodeId: string,
): Promise<Pick<OperationRow, 'operation_id' | 'finished_at'> | null> {
  const newest = await db
    .selectFrom('operations')
    .select(['operation_id', 'finished_at'])
    .where('node_id', '=', nodeId)
    .orderBy('operation_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return newest ?? null;
}

/** Maximum number of operations deleted in one transaction. */
const OPERATIONS_AT_ONCE = 1000;

/**
 * Deletes ended operations that began before `time` (Unix milliseconds), with their results and outputs, oldest first. Stops once
 * they have about `results` results in total, and keeps operations that the believed state refers to. Returns the number of
 * deleted operations.
 */
export async function deleteOperationsBefore(db: Queryable, time: number, results: number): Promise<number> {
  const old = await db
    .selectFrom('operations')
    .select(['operation_id', 'summary_json'])
    // Operation IDs are ULIDs, so they sort by time.
    .where('operation_id', '<', encodeTime(time))
    .where('finished_at', 'is not', null)
    .where('operation_id', 'not in', (not) =>
      not.selectFrom('agents').select('state_operation_id').where('state_operation_id', 'is not', null),
    )
    .where('operation_id', 'not in', (not) => not.selectFrom('applied_resources').select('operation_id'))
    .orderBy('operation_id')
    .limit(OPERATIONS_AT_ONCE)
    .execute();
  const doomed = upTo(old, results, (row) => 1 + columns.decode(row).summary.total);
  for (const { operation_id } of doomed) {
    await db.deleteFrom('operations').where('operation_id', '=', operation_id).execute();
  }
  return doomed.length;
}

/** Returns the number of operations in each state. */
export async function countOperationsByState(db: Queryable): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('operations')
    .select(['state', (count) => count.fn.countAll<number>().as('count')])
    .groupBy('state')
    .execute();
  return new Map(rows.map(({ state, count }) => [state, count]));
}
