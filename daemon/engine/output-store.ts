/** What scripts wrote in applies; that of sensitive ones is sealed, and this room neither seals nor opens. */
import { encodeTime } from 'ulid';
import { upTo } from '../database/batches.js';
import type { NewRow, Queryable, Row } from '../database/schema.js';

export type OperationOutputRow = Row<'operation_outputs'>;
/** Outputs that are deleted in one transaction at most. */
const OUTPUTS_AT_ONCE = 1000;

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
