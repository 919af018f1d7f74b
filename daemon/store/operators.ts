/** Operators. Removal is soft: rows stay, and an operator that is added again gets a new one. */
import type { Queryable } from './queryable.js';
import type { NewRow, Row } from './schema.js';

export type OperatorRow = Row<'operators'>;

export async function insertOperator(db: Queryable, operator: NewRow<'operators'>): Promise<void> {
  await db.insertInto('operators').values(operator).execute();
}

/** By the time of adding; removed ones too when asked for. */
export async function listOperators(db: Queryable, includeRemoved = false): Promise<readonly OperatorRow[]> {
  let query = db.selectFrom('operators').selectAll().orderBy('row_id');
  if (!includeRemoved) query = query.where('removed_at', 'is', null);
  return query.execute();
}

export async function findActiveOperator(db: Queryable, operatorId: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('operator_id', '=', operatorId);
  return (await query.where('removed_at', 'is', null).executeTakeFirst()) ?? null;
}

/** The active operator of that ID, else the one that was removed last. */
export async function findOperator(db: Queryable, operatorId: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('operator_id', '=', operatorId);
  return (await query.orderBy('row_id', 'desc').limit(1).executeTakeFirst()) ?? null;
}

export async function findActiveOperatorByName(db: Queryable, username: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('username', '=', username);
  return (await query.where('removed_at', 'is', null).executeTakeFirst()) ?? null;
}

/** IDs of all that have or had this username. */
export async function operatorIdsOfName(db: Queryable, username: string): Promise<readonly string[]> {
  const query = db.selectFrom('operators').select('operator_id').distinct().where('username', '=', username);
  return (await query.execute()).map((row) => row.operator_id);
}

export async function countActiveAdmins(db: Queryable): Promise<number> {
  const { count } = await db
    .selectFrom('operators')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('role', '=', 'admin')
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow();
  return count;
}

/** True when there has never been an operator. */
export async function hasNoOperators(db: Queryable): Promise<boolean> {
  return (await db.selectFrom('operators').select('row_id').limit(1).executeTakeFirst()) === undefined;
}

/** Of the active operator of that ID. */
export async function setOperatorRole(db: Queryable, operatorId: string, role: string): Promise<void> {
  const query = db.updateTable('operators').set({ role }).where('operator_id', '=', operatorId);
  await query.where('removed_at', 'is', null).execute();
}

export interface Removal {
  readonly removed_at: number;
  readonly removed_by: string;
}

/** False when there is no active operator of that ID. */
export async function markOperatorRemoved(db: Queryable, operatorId: string, removal: Removal): Promise<boolean> {
  const result = await db
    .updateTable('operators')
    .set(removal)
    .where('operator_id', '=', operatorId)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}
