/** Stores snoozes and accepted drift. */
import type { DriftedAddress } from '../../../src/contract/drift-excuses.js';
import { keyParts } from '../../../src/resources/resource-key.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import type { NewRow, Queryable, Row } from '../../database/schema.js';

interface SnoozeValues {
  readonly resources: readonly DriftedAddress[] | null;
}

const columns = jsonColumns<SnoozeValues>({ resources: true });

export type SnoozeRow = Decoded<Row<'drift_snoozes'>, SnoozeValues>;
export type AcceptRow = Row<'drift_accepts'>;

/** Adds a snooze, and deletes those that ended long before `now` (Unix milliseconds). */
export async function insertSnooze(tx: Queryable, snooze: SnoozeRow, now: number): Promise<void> {
  await tx
    .deleteFrom('drift_snoozes')
    .where('ends_at', '<', now - KEPT_MS)
    .execute();
  await tx.insertInto('drift_snoozes').values(columns.encode(snooze)).execute();
}

/** Ended snoozes are kept for a day, so that a clock that was ahead for a while ends none. */
const KEPT_MS = 86_400_000;

export async function findSnooze(db: Queryable, snoozeId: string): Promise<SnoozeRow | null> {
  const row = await db.selectFrom('drift_snoozes').selectAll().where('snooze_id', '=', snoozeId).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function deleteSnooze(tx: Queryable, snoozeId: string): Promise<void> {
  await tx.deleteFrom('drift_snoozes').where('snooze_id', '=', snoozeId).execute();
}

/** Returns the snoozes that have not ended at `now` (Unix milliseconds), the first to end first; of one agent or all. */
export async function listSnoozes(db: Queryable, now: number, nodeId?: string): Promise<readonly SnoozeRow[]> {
  let query = db.selectFrom('drift_snoozes').selectAll().where('ends_at', '>', now);
  if (nodeId !== undefined) query = query.where('node_id', '=', nodeId);
  return (await query.orderBy('ends_at').orderBy('snooze_id').execute()).map((row) => columns.decode(row));
}

/** Adds acceptances, or replaces those of the same resources; deletes those of the agent that an apply has ended. */
export async function putAccepts(tx: Queryable, rows: readonly NewRow<'drift_accepts'>[]): Promise<void> {
  for (const row of rows) {
    const { node_id, operation_id } = row;
    await tx
      .deleteFrom('drift_accepts')
      .where('node_id', '=', node_id)
      .where((is) =>
        is.or([
          is('operation_id', '!=', operation_id),
          is.and([is('family', '=', row.family), is('identity_key', '=', row.identity_key)]),
        ]),
      )
      .execute();
    await tx.insertInto('drift_accepts').values(row).execute();
  }
}

/** Returns the acceptances that no apply has ended, by resource; of one agent or all. */
export async function listAccepts(db: Queryable, nodeId?: string): Promise<readonly AcceptRow[]> {
  let query = db
    .selectFrom('drift_accepts')
    .innerJoin('agents', (join) =>
      join
        .onRef('agents.node_id', '=', 'drift_accepts.node_id')
        .onRef('agents.state_operation_id', '=', 'drift_accepts.operation_id'),
    )
    .selectAll('drift_accepts');
  if (nodeId !== undefined) query = query.where('drift_accepts.node_id', '=', nodeId);
  return query.orderBy('drift_accepts.node_id').orderBy('family').orderBy('identity_key').execute();
}

/** Returns the columns of a resource. */
export const addressColumns = ({ module, kind, identity }: DriftedAddress) => ({
  ...keyParts({ module, kind, identity }),
  module,
  kind,
  identity,
});
