/** What scripts wrote in applies; that of sensitive ones is sealed, and this room neither seals nor opens. */
import { encodeTime } from 'ulid';
import type { Queryable } from './queryable.js';
import type { NewRow, Row } from './schema.js';
import { upTo } from './up-to.js';

export type OperationOutputRow = Row<'operation_outputs'>;
/** Outputs that are deleted in one transaction at most. */
const OUTPUTS_AT_ONCE = 1000;

export type OperationOutputKey = Pick<OperationOutputRow, 'operation_id' | 'position'>;

export async function insertOperationOutputs(
  db: Queryable,
  rows: readonly NewRow<'operation_outputs'>[],
): Promise<void> {
  for (const row of rows) await db.insertInto('operation_outputs').values(row).execute();
}

/** In the order they came. */
export async function listOperationOutputs(db: Queryable, operationId: string): Promise<readonly OperationOutputRow[]> {
  return db
    .selectFrom('operation_outputs')
    .selectAll()
    .where('operation_id', '=', operationId)
    .orderBy('position')
    .execute();
}

/** Bytes of all outputs of an operation. */
export async function sizeOfOperationOutputs(db: Queryable, operationId: string): Promise<number> {
  const { size } = await db
    .selectFrom('operation_outputs')
    .select((select) => select.fn.sum<number | null>('size').as('size'))
    .where('operation_id', '=', operationId)
    .executeTakeFirstOrThrow();
  return size ?? 0;
}

/** The next after a place of those that another key than the given one has sealed. */
export async function outputsOfOtherKeys(
  db: Queryable,
  keyId: string,
  page: { readonly after: OperationOutputKey | null; readonly limit: number },
): Promise<readonly OperationOutputRow[]> {
  const { after, limit } = page;
  let query = db.selectFrom('operation_outputs').selectAll().where('key_id', 'is not', null);
  query = query.where('key_id', '!=', keyId).orderBy('operation_id').orderBy('position').limit(limit);
  if (after !== null) {
    query = query.where(({ eb, and, or }) =>
      or([
        eb('operation_id', '>', after.operation_id),
        and([eb('operation_id', '=', after.operation_id), eb('position', '>', after.position)]),
      ]),
    );
  }
  return query.execute();
}

/** Puts a newly sealed text in the place of the old one. */
export async function resealOperationOutput(
  db: Queryable,
  { operation_id, position }: OperationOutputKey,
  sealed: { readonly output: string; readonly key_id: string },
): Promise<void> {
  await db
    .updateTable('operation_outputs')
    .set(sealed)
    .where('operation_id', '=', operation_id)
    .where('position', '=', position)
    .execute();
}

/**
 * Deletes outputs of operations that began before a time in ms, the oldest first, until they come to so many bytes;
 * returns how many.
 */
export async function deleteOutputsBefore(db: Queryable, time: number, bytes: number): Promise<number> {
  const old = await db
    .selectFrom('operation_outputs')
    .select(['operation_id', 'position', 'size'])
    // Operation IDs are ULIDs, so their order is that of time.
    .where('operation_id', '<', encodeTime(time))
    .orderBy('operation_id')
    .orderBy('position')
    .limit(OUTPUTS_AT_ONCE)
    .execute();
  const doomed = upTo(old, bytes, ({ size }) => size);
  for (const { operation_id, position } of doomed) {
    await db
      .deleteFrom('operation_outputs')
      .where('operation_id', '=', operation_id)
      .where('position', '=', position)
      .execute();
  }
  return doomed.length;
}
