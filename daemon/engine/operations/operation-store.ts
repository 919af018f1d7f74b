/** Stores applies, their dispatched content and their results. */

import { expressionBuilder, sql, type Updateable } from 'kysely';
import { encodeTime } from 'ulid';
import { Fault } from '../../../src/kernel/fault.js';
import type { ReadFacts } from '../../../src/language/facts-read.js';
import type { CheckResult } from '../../../src/resources/checks/check.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { Restored } from '../../../src/resources/restored.js';
import type { Summary } from '../../../src/resources/result.js';
import { type ItemResult, isUnchanged, itemsOf, type Unchanged } from '../../../src/resources/run-results.js';
import type { Party } from '../../core/domain-event.js';
import { chunks, upTo } from '../../database/batches.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { Database, NewRow, OperationTable, Queryable, Row } from '../../database/schema.js';
import { jsonMember, jsonStrings } from '../../database/sql-json.js';
import { storedJson } from '../../database/stored-json.js';
import { isReadable, type Readable } from '../../fleet/machines.js';
import { deleteUnusedTexts } from '../modules/source-store.js';
import { deleteUnusedContents } from '../runs/run-contents.js';
import { deleteUnusedOneOffValues } from '../values/one-off-store.js';
import type { OperationError } from './operation-error.js';

interface OperationValues {
  /** Names of modules and of assignments. */
  readonly modules: readonly string[];
  readonly assignments: readonly string[];
  readonly summary: Summary;
  readonly error: OperationError | null;
  /** Party that cancelled it; null for none. */
  readonly cancelled_by: Party | null;
  readonly checks: readonly CheckResult[] | null;
  /** The agent's report of a restore; null without one. */
  readonly restored: Restored | null;
  /** Inputs that its one-off values set; null for none. */
  readonly value_inputs: readonly string[] | null;
  readonly facts: ReadFacts | null;
}

const columns = jsonColumns<OperationValues>({
  modules: true,
  assignments: true,
  summary: true,
  error: true,
  cancelled_by: true,
  checks: true,
  restored: true,
  value_inputs: true,
  facts: true,
});

export type OperationRow = Decoded<Row<'operations'>, OperationValues>;
export type NewOperationRow = Decoded<NewRow<'operations'>, OperationValues>;

/** Results of an operation as they are stored: a row for each, and one row for consecutive unchanged resources. */
export type OperationResultRow = Row<'operation_results'>;

export async function insertOperation(db: Queryable, operation: NewOperationRow): Promise<void> {
  await insertRow(db, ...storedValues(operation));
}

/**
 * Stores an operation of an approved agent, with the content of that hash. Returns the ID of the content, null if it is not
 * stored, or undefined, without a change, if there is no such agent or it is not approved.
 */
export async function beginOperation(
  db: Queryable,
  operation: Omit<NewOperationRow, 'content_id'>,
  sha256: string,
): Promise<number | null | undefined> {
  const values = storedValues({ ...operation, content_id: null });
  const [begun] = await insertForApproved(db, sha256, operation.node_id, ...values);
  return begun?.content_id;
}

function storedValues(operation: NewOperationRow): readonly (string | number | null)[] {
  const row = columns.encode(operation);
  return STORED.map((column) => row[column] ?? DEFAULTS[column] ?? null);
}

const STORED = [
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
  'content_id',
  'expect',
  'checks_json',
  'confirm_secs',
  'keeps_snapshot',
  'restores',
  'puts_back',
  'value_inputs_json',
  'values_sha256',
  'facts_json',
  'may_purge',
  'outside_window',
] as const satisfies readonly (keyof OperationTable)[];

const DEFAULTS: Readonly<Record<string, number>> = { accepted: 0, keeps_snapshot: 0, outside_window: 0 };

const insertRow = preparedQuery((db, ...values: readonly (string | number | null)[]) =>
  db
    .insertInto('operations')
    .values(Object.fromEntries(STORED.map((column, index) => [column, values[index]])) as unknown as Row<'operations'>),
);

const insertForApproved = preparedQuery(
  (db, sha256: string, nodeId: string, ...values: readonly (string | number | null)[]) =>
    db
      .insertInto('operations')
      .columns([...STORED])
      .expression((of) =>
        of
          .selectFrom('agents')
          .select(
            STORED.map((column, index) =>
              column === 'content_id'
                ? of.selectFrom('run_contents').select('content_id').where('sha256', '=', sha256).as(column)
                : sql`${values[index]}`.as(column),
            ),
          )
          .where('agents.node_id', '=', nodeId)
          .where('agents.status', '=', 'approved'),
      )
      .returning('content_id'),
);

export async function findOperation(db: Queryable, operationId: string): Promise<OperationRow | null> {
  const [row] = await operationById(db, operationId);
  return row === undefined ? null : columns.decode(row);
}

/** Returns the fault of an operation that does not exist; its hint says so when the ID is that of a rollout. */
export async function operationNotFound(
  db: Queryable,
  operationId: string,
  otherwise = 'see what there is: orch ops list',
): Promise<Fault> {
  const rollout = await db
    .selectFrom('rollouts')
    .select('rollout_id')
    .where('rollout_id', '=', operationId)
    .executeTakeFirst();
  const hint = rollout === undefined ? otherwise : `that is a rollout: orch rollouts show ${operationId}`;
  return new Fault('operation_not_found', `there is no operation "${operationId}"`, {
    hint,
    data: { operation_id: operationId },
  });
}

const operationById = preparedQuery((db, operationId: string) =>
  db.selectFrom('operations').selectAll().where('operation_id', '=', operationId),
);

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

/** The columns that the end of an operation changes. */
export interface OperationEnd extends Pick<OperationRow, 'state' | 'error' | 'summary' | 'checks' | 'restored'> {
  /** Unix milliseconds. */
  readonly finished_at: number;
}

/** Stores the end of an operation. */
export async function endOperation(db: Queryable, operationId: string, end: OperationEnd): Promise<void> {
  const error = end.error === null ? null : JSON.stringify(end.error);
  const checks = end.checks === null ? null : JSON.stringify(end.checks);
  const restored = end.restored === null ? null : JSON.stringify(end.restored);
  const summary = JSON.stringify(end.summary);
  await storeEnd(db, operationId, end.state, error, summary, end.finished_at, checks, restored);
}

const storeEnd = preparedQuery(
  (
    db,
    operationId: string,
    ...[state, error_json, summary_json, finished_at, checks_json, restored_json]: readonly [
      state: string,
      error_json: string | null,
      summary_json: string,
      finished_at: number,
      checks_json: string | null,
      restored_json: string | null,
    ]
  ) =>
    db
      .updateTable('operations')
      .set({ state, error_json, summary_json, finished_at, checks_json, restored_json })
      .where('operation_id', '=', operationId),
);

/**
 * Returns the newest apply after which all of its modules were applied: one that succeeded, or that only failed its health checks.
 * Null without one. Leaves out operations with IDs below `since`, as `OperationFilter` does.
 */
export async function newestApplied(db: Queryable, nodeId: string, since: string): Promise<OperationRow | null> {
  const row = await db
    .selectFrom('operations')
    .selectAll()
    .where('node_id', '=', nodeId)
    .where('operation_id', '>=', since)
    .where('content_id', 'is not', null)
    .where((on) =>
      on.or([
        on('state', '=', 'succeeded'),
        on.and([on('state', '=', 'failed'), on(jsonMember(db, 'error_json', 'code'), '=', 'verify_failed')]),
      ]),
    )
    .orderBy('operation_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Returns the ID of the last apply that an agent had succeeded with before an operation; null for none. */
export async function appliedBefore(
  db: Queryable,
  { nodeId, operationId }: { readonly nodeId: string; readonly operationId: string },
): Promise<string | null> {
  const row = await db
    .selectFrom('operations')
    .innerJoin('agents', 'agents.node_id', 'operations.node_id')
    .select('operation_id')
    .where('operations.node_id', '=', nodeId)
    .where('operation_id', '<', operationId)
    .whereRef('operation_id', '>=', 'agents.created_id')
    .where('content_id', 'is not', null)
    .where('state', '=', SUCCEEDED)
    .orderBy('operation_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.operation_id ?? null;
}

/** Returns the ID of the apply of a rollout to an agent that came after `applied`, which reverts that one; null for none. */
export async function findRevert(
  db: Queryable,
  { rolloutId, nodeId, applied }: { readonly rolloutId: string; readonly nodeId: string; readonly applied: string },
): Promise<string | null> {
  const row = await db
    .selectFrom('operations')
    .select('operation_id')
    .where('rollout_id', '=', rolloutId)
    .where('operation_id', '>', applied)
    .where('node_id', '=', nodeId)
    .orderBy('operation_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.operation_id ?? null;
}

interface OperationFilter {
  readonly nodeId?: string | undefined;
  /** Only operations of these agents. */
  readonly nodeIds?: readonly string[] | undefined;
  /** Leaves out operations with lower IDs, which belong to a removed agent with the same node ID. */
  readonly since?: string | undefined;
  readonly states?: readonly string[] | undefined;
  readonly rolloutId?: string | undefined;
  readonly readable?: Readable | null | undefined;
}

interface OperationPage extends OperationFilter {
  readonly limit: number;
  readonly offset?: number | undefined;
}

/** Returns a page of operations, most recent first. */
export async function listOperations(db: Queryable, page: OperationPage): Promise<readonly OperationRow[]> {
  const query = db.selectFrom('operations').selectAll().where(matches(db, page)).orderBy('operation_id', 'desc');
  const rows = await query
    .limit(page.limit)
    .offset(page.offset ?? 0)
    .execute();
  return rows.map((row) => columns.decode(row));
}

export async function countOperations(db: Queryable, { states, ...filter }: OperationFilter = {}): Promise<number> {
  if (!states?.includes(SUCCEEDED)) return countMatching(db, { ...filter, states });
  // No index holds the succeeded ones: they are all except the others.
  const all = await countMatching(db, filter);
  const others = (await countUnsuccessful(db, filter)).entries();
  return [...others].reduce((count, [state, number]) => (states.includes(state) ? count : count - number), all);
}

async function countMatching(db: Queryable, filter: OperationFilter): Promise<number> {
  const { count } = await db
    .selectFrom('operations')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where(matches(db, filter))
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns all operations in these states, oldest first; of one agent or all agents. */
export async function listOperationsInStates(
  db: Queryable,
  states: readonly string[],
  nodeId?: string,
): Promise<readonly OperationRow[]> {
  const query = db.selectFrom('operations').selectAll().where(matches(db, { states, nodeId }));
  return (await query.orderBy('operation_id').execute()).map((row) => columns.decode(row));
}

function matches(db: Queryable, { nodeId, nodeIds, since, states, rolloutId, readable }: OperationFilter) {
  const is = expressionBuilder<Database, 'operations'>();
  return is.and([
    ...(nodeId === undefined ? [] : [is('node_id', '=', nodeId)]),
    ...(nodeIds === undefined ? [] : [is('node_id', 'in', jsonStrings(db, JSON.stringify(nodeIds)))]),
    ...(since === undefined ? [] : [is('operation_id', '>=', since)]),
    ...(states === undefined ? [] : [is('state', 'in', states)]),
    // Lets SQLite use the index of states.
    ...(states === undefined || states.includes(SUCCEEDED) ? [] : [isUnsuccessful]),
    ...(rolloutId === undefined ? [] : [is('rollout_id', '=', rolloutId)]),
    ...(readable == null ? [] : [isReadable(db, readable, 'operation_id')]),
  ]);
}

/** The only state that the index of states leaves out. */
const SUCCEEDED = 'succeeded';
/** Condition of the index of states. SQLite uses the index only for a query with the same text. */
const isUnsuccessful = sql<boolean>`"state" != 'succeeded'`;

/** Stores results at consecutive positions; `first` is the position of the first one. Returns the rows. */
export async function insertOperationResults(
  db: Queryable,
  operationId: string,
  first: number,
  entries: readonly (ItemResult | Unchanged)[],
): Promise<readonly OperationResultRow[]> {
  let position = first;
  const rows = entries.map((entry) => {
    const row = rowOf(operationId, position, entry);
    position += row.unchanged ?? 1;
    return row;
  });
  const [only] = rows;
  if (rows.length === 1 && only !== undefined) {
    const { position, item_index, result_json, existed, unchanged } = only;
    await insertResult(db, operationId, position, item_index, result_json, existed, unchanged);
  } else {
    for (const part of chunks(rows, 200)) await db.insertInto('operation_results').values(part).execute();
  }
  return rows;
}

const insertResult = preparedQuery(
  (
    db,
    operation_id: string,
    position: number,
    item_index: number,
    result_json: string,
    existed: number | null,
    unchanged: number | null,
  ) =>
    db.insertInto('operation_results').values({ operation_id, position, item_index, result_json, existed, unchanged }),
);

function rowOf(operation_id: string, position: number, entry: ItemResult | Unchanged): OperationResultRow {
  const place = { operation_id, position, item_index: entry.index };
  if (isUnchanged(entry)) {
    const { count, duration_ms } = entry;
    return { ...place, result_json: JSON.stringify({ duration_ms }), existed: 1, unchanged: count };
  }
  const existed = entry.existed === null ? null : Number(entry.existed);
  return { ...place, result_json: JSON.stringify(entry.result), existed, unchanged: null };
}

/** Returns the results of a row. @param resources the resources of the operation's content */
export function resultsOf(row: OperationResultRow, resources: readonly DesiredResource[]): readonly ItemResult[] {
  const { item_index: index, existed, unchanged, result_json } = row;
  const result: ItemResult['result'] = storedJson(result_json);
  if (unchanged === null) return [{ index, existed: existed === null ? null : existed === 1, result }];
  return itemsOf({ index, count: unchanged, duration_ms: result.duration_ms }, resources);
}

/** Returns the rows of an operation from a position on, in the order they arrived, at most `limit`. */
export async function listOperationResults(
  db: Queryable,
  operationId: string,
  { from = 0, limit }: { readonly from?: number; readonly limit?: number } = {},
): Promise<readonly OperationResultRow[]> {
  const query = db
    .selectFrom('operation_results')
    .selectAll()
    .where('operation_id', '=', operationId)
    .where('position', '>=', from)
    .orderBy('position');
  return (limit === undefined ? query : query.limit(limit)).execute();
}

/** Returns the position after the results of a row. */
export const positionAfter = ({ position, unchanged }: OperationResultRow): number => position + (unchanged ?? 1);

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
 * they have about `results` results in total, and keeps operations that a believed state or a trial refers to. Returns the number of
 * deleted operations.
 */
export async function deleteOperationsBefore(db: Queryable, time: number, results: number): Promise<number> {
  const old = await db
    .selectFrom('operations')
    .select(['operation_id', 'content_id', 'summary_json'])
    // Operation IDs are ULIDs, so they sort by time.
    .where('operation_id', '<', encodeTime(time))
    .where('finished_at', 'is not', null)
    .where('operation_id', 'not in', (not) =>
      not.selectFrom('agents').select('state_operation_id').where('state_operation_id', 'is not', null),
    )
    .where('operation_id', 'not in', (not) =>
      not.selectFrom('agents').select('trial_operation_id').where('trial_operation_id', 'is not', null),
    )
    .where('operation_id', 'not in', (not) => not.selectFrom('applied_resources').select('operation_id'))
    .orderBy('operation_id')
    .limit(OPERATIONS_AT_ONCE)
    .execute();
  const doomed = upTo(old, results, (row) => 1 + columns.decode(row).summary.total);
  for (const { operation_id } of doomed) {
    await db.deleteFrom('operations').where('operation_id', '=', operation_id).execute();
  }
  await deleteUnusedContents(db, doomed);
  if (doomed.length > 0) await deleteUnusedTexts(db);
  if (doomed.length > 0) await deleteUnusedOneOffValues(db);
  return doomed.length;
}

/** Returns the number of operations in each state. */
export async function countOperationsByState(db: Queryable): Promise<ReadonlyMap<string, number>> {
  const counts = await countUnsuccessful(db, {});
  const others = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const succeeded = (await countMatching(db, {})) - others;
  return succeeded === 0 ? counts : new Map([...counts, [SUCCEEDED, succeeded]]);
}

async function countUnsuccessful(db: Queryable, filter: OperationFilter): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('operations')
    .select(['state', (count) => count.fn.countAll<number>().as('count')])
    .where(matches(db, filter))
    .where(isUnsuccessful)
    .groupBy('state')
    .execute();
  return new Map(rows.map(({ state, count }) => [state, count]));
}

/** The apply that the believed state of an agent reflects. */
export interface StateOperation extends Pick<OperationRow, 'node_id' | 'content_id' | 'modules' | 'value_inputs'> {}

/** Returns the apply that each believed state reflects. */
export async function listStateOperations(db: Queryable): Promise<readonly StateOperation[]> {
  const rows = await db
    .selectFrom('agents')
    .innerJoin('operations', 'operations.operation_id', 'agents.state_operation_id')
    .select(['agents.node_id', 'operations.content_id', 'modules_json', 'value_inputs_json'])
    .execute();
  return rows.map((row) => columns.decode(row));
}
