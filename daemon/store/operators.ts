/** Operators, one row for each ID. Removal is soft: the row stays, and an operator who is added again gets it back. */
import type { Queryable } from './queryable.js';
import type { NewRow, Row } from './schema.js';

export type OperatorRow = Row<'operators'>;

/** Adds an operator. The record of a removed operator with this ID becomes active again, with the values given. */
export async function putOperator(db: Queryable, operator: NewRow<'operators'>): Promise<void> {
  const { operator_id, username } = operator;
  const { public_key, ...changed } = { removed_at: null, removed_by: null, ...operator };
  await db
    .insertInto('operators')
    .values({ ...changed, public_key })
    .onConflict((conflict) =>
      conflict.column('operator_id').doUpdateSet(changed).where('operators.removed_at', 'is not', null),
    )
    .executeTakeFirstOrThrow();
  await db
    .insertInto('operator_names')
    .values({ operator_id, username })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** In the order in which they were first added; removed ones too when asked for. */
export async function listOperators(db: Queryable, includeRemoved = false): Promise<readonly OperatorRow[]> {
  let query = db.selectFrom('operators').selectAll().orderBy('row_id');
  if (!includeRemoved) query = query.where('removed_at', 'is', null);
  return query.execute();
}

export async function findActiveOperator(db: Queryable, operatorId: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('operator_id', '=', operatorId);
  return (await query.where('removed_at', 'is', null).executeTakeFirst()) ?? null;
}

/** Active or removed. */
export async function findOperator(db: Queryable, operatorId: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('operator_id', '=', operatorId);
  return (await query.executeTakeFirst()) ?? null;
}

export async function findActiveOperatorByName(db: Queryable, username: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('username', '=', username);
  return (await query.where('removed_at', 'is', null).executeTakeFirst()) ?? null;
}

/** IDs of all operators that have or had this username. */
export async function operatorIdsOfName(db: Queryable, username: string): Promise<readonly string[]> {
  const query = db.selectFrom('operator_names').select('operator_id').where('username', '=', username);
  return (await query.orderBy('operator_id').execute()).map((row) => row.operator_id);
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
