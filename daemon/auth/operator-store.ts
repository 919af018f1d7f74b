/** Rows of operators, one per ID. Removal is soft: the row stays, and an operator who is added again gets it back. */
import type { Operator } from '../../src/contract/operators.js';
import { type Grant, ROLES, type Role } from '../../src/contract/rights.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Party } from '../core/domain-event.js';
import { NO_RIGHTS, Rights } from '../core/rights.js';
import type { NewRow, Queryable, Row } from '../database/schema.js';
import { storedJson } from '../database/stored-json.js';

export type OperatorRow = Row<'operators'>;

/** An operator without limits [default] may do everywhere, and for ever, what the role permits. */
export type NewOperatorRow = Omit<NewRow<'operators'>, 'grants_json'> & Partial<OperatorLimits>;

/** What limits an operator beside the role. */
export interface OperatorLimits {
  /** Grants; null for none, so the role counts on every machine. */
  readonly grants: readonly Grant[] | null;
  /** Unix milliseconds from which the operator may do nothing; null for no end. */
  readonly expires_at: number | null;
}

/** Adds an operator. The row of a removed operator with this ID becomes active again, with the given values. */
export async function putOperator(db: Queryable, { grants = null, ...operator }: NewOperatorRow): Promise<void> {
  const { operator_id, username } = operator;
  const fresh = { removed_at: null, removed_by: null, robot: 0, expires_at: null, expiry_told: 0, last_used_at: null };
  const { public_key, ...changed } = { ...fresh, ...operator, grants_json: grantsJson(grants) };
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

/** Returns operators in the order they were first added. */
export async function listOperators(db: Queryable, includeRemoved = false): Promise<readonly OperatorRow[]> {
  let query = db.selectFrom('operators').selectAll().orderBy('row_id');
  if (!includeRemoved) query = query.where('removed_at', 'is', null);
  return query.execute();
}

/** Returns the operator, who was not removed but may have expired, or null. */
export async function findActiveOperator(db: Queryable, operatorId: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('operator_id', '=', operatorId);
  return (await query.where('removed_at', 'is', null).executeTakeFirst()) ?? null;
}

/** Returns what the operator may do at `now` (Unix milliseconds), which is nothing once removed or expired. */
export async function rightsAt(db: Queryable, operatorId: string, now: number): Promise<Rights> {
  const row = await findActiveOperator(db, operatorId);
  return row === null || isExpired(row, now) ? NO_RIGHTS : rightsOfRow(row);
}

/** Returns true once the end of the operator has come. */
export const isExpired = ({ expires_at }: Pick<OperatorRow, 'expires_at'>, now: number): boolean =>
  expires_at !== null && expires_at <= now;

/** Returns the operator, active or removed, or null. */
export async function findOperator(db: Queryable, operatorId: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('operator_id', '=', operatorId);
  return (await query.executeTakeFirst()) ?? null;
}

/** Returns the ID that the operator has now: a rotation of the key retires the record by itself, and adds another of that name. */
export async function currentIdOf(db: Queryable, operatorId: string): Promise<string> {
  const seen = new Set<string>();
  for (let id = operatorId; ; ) {
    seen.add(id);
    const row = await findOperator(db, id);
    if (row === null || row.removed_by !== id) return id;
    const query = db.selectFrom('operators').select('operator_id').where('added_by', '=', id);
    const next = await query.where('username', '=', row.username).orderBy('row_id', 'desc').executeTakeFirst();
    if (next === undefined || seen.has(next.operator_id)) return id;
    id = next.operator_id;
  }
}

export async function findActiveOperatorByName(db: Queryable, username: string): Promise<OperatorRow | null> {
  const query = db.selectFrom('operators').selectAll().where('username', '=', username);
  return (await query.where('removed_at', 'is', null).executeTakeFirst()) ?? null;
}

/** Returns the IDs of all operators who have or had this username. */
export async function operatorIdsOfName(db: Queryable, username: string): Promise<readonly string[]> {
  const query = db.selectFrom('operator_names').select('operator_id').where('username', '=', username);
  return (await query.orderBy('operator_id').execute()).map((row) => row.operator_id);
}

/** Counts active admins without an end. */
export async function countLastingAdmins(db: Queryable): Promise<number> {
  const { count } = await db
    .selectFrom('operators')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('role', '=', 'admin')
    .where('removed_at', 'is', null)
    .where('expires_at', 'is', null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns true when there has never been an operator. */
export async function hasNoOperators(db: Queryable): Promise<boolean> {
  return (await db.selectFrom('operators').select('row_id').limit(1).executeTakeFirst()) === undefined;
}

/** Sets the role and the grants of the active operator with that ID, and what else is given. */
export async function setOperatorRights(
  db: Queryable,
  operatorId: string,
  { grants, ...given }: NewRights,
): Promise<void> {
  const rights = { ...given, grants_json: grantsJson(grants) };
  const query = db.updateTable('operators').set(rights).where('operator_id', '=', operatorId);
  await query.where('removed_at', 'is', null).execute();
}

interface NewRights
  extends Pick<OperatorLimits, 'grants'>,
    Pick<OperatorRow, 'role'>,
    Partial<Pick<OperatorRow, 'expires_at' | 'expiry_told' | 'robot'>> {}

interface Removal {
  readonly removed_at: number;
  readonly removed_by: string;
}

/** Marks the operator as removed. Returns false when no active operator has that ID. */
export async function markOperatorRemoved(db: Queryable, operatorId: string, removal: Removal): Promise<boolean> {
  const result = await db
    .updateTable('operators')
    .set(removal)
    .where('operator_id', '=', operatorId)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Revokes enrolment tokens with uses left, only those of `creator` if given. Returns the number revoked. Expired tokens
 * are included, because setting the clock back would make them valid again.
 */
export async function revokeUnusedTokens(db: Queryable, now: number, creator?: string): Promise<number> {
  let query = db.updateTable('enrolment_tokens').set({ revoked_at: now });
  if (creator !== undefined) query = query.where('created_by', '=', creator);
  const result = await query.where('revoked_at', 'is', null).where('uses_left', '>', 0).executeTakeFirst();
  return Number(result.numUpdatedRows);
}

const grantsJson = (grants: readonly Grant[] | null): string | null =>
  grants === null ? null : JSON.stringify(grants);

/** Returns the rights of the operator of a row. */
export const rightsOfRow = (row: OperatorRow): Rights => {
  const { role, grants = null, robot: isRobot = false } = operatorOfRow(row);
  return new Rights(role, grants, { isRobot });
};

/**
 * Returns active operators whose end is at or before `before` (Unix milliseconds), and of whose end less was told than `stage`, a
 * value of `expiry_told`.
 */
export async function operatorsEnding(db: Queryable, before: number, stage: number): Promise<readonly OperatorRow[]> {
  const query = db.selectFrom('operators').selectAll().where('removed_at', 'is', null);
  return query.where('expires_at', '<=', before).where('expiry_told', '<', stage).orderBy('expires_at').execute();
}

/** Returns active operators of whose end was told, as `stage`, that it came, although it is after `now` (Unix milliseconds). */
export async function operatorsToldTooEarly(
  db: Queryable,
  now: number,
  stage: number,
): Promise<readonly Pick<OperatorRow, 'operator_id'>[]> {
  const query = db.selectFrom('operators').select('operator_id').where('removed_at', 'is', null);
  return query.where('expires_at', '>', now).where('expiry_told', '>=', stage).execute();
}

export async function markEndTold(db: Queryable, operatorId: string, expiry_told: number): Promise<void> {
  await db.updateTable('operators').set({ expiry_told }).where('operator_id', '=', operatorId).execute();
}

/** Stores when a robot was used last. */
export async function touchRobot(db: Queryable, operatorId: string, last_used_at: number): Promise<void> {
  await db.updateTable('operators').set({ last_used_at }).where('operator_id', '=', operatorId).execute();
}

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text);

export function operatorOfRow(row: OperatorRow): Operator {
  return {
    operator_id: row.operator_id,
    username: row.username,
    // An unknown role gets the fewest rights.
    role: isRole(row.role) ? row.role : 'viewer',
    bootstrap: row.bootstrap === 1,
    added_at: toSeconds(row.added_at),
    added_by: row.added_by,
    removed_at: row.removed_at === null ? null : toSeconds(row.removed_at),
    removed_by: row.removed_by,
    public_key: row.public_key,
    ...(row.grants_json !== null && { grants: storedJson<Grant[]>(row.grants_json) }),
    ...(row.expires_at !== null && { expires_at: toSeconds(row.expires_at) }),
    ...(row.robot === 1 && {
      robot: true as const,
      last_used_at: row.last_used_at === null ? null : toSeconds(row.last_used_at),
    }),
  };
}

export const partyOfOperator = ({ operator_id, username }: Pick<OperatorRow, 'operator_id' | 'username'>): Party => ({
  id: operator_id,
  name: username,
  type: 'operator',
});

/**
 * Resolves a username or ID to an operator ID: the operator with this ID, else the active operator with this
 * username, else the only operator who ever had it. Returns the text itself when no operator ever had it. Throws
 * `invalid_filter` when several had it.
 */
export async function resolveOperatorId(db: Queryable, nameOrId: string): Promise<string> {
  if ((await findOperator(db, nameOrId)) !== null) return nameOrId;
  const current = await findActiveOperatorByName(db, nameOrId);
  if (current !== null) return current.operator_id;
  const [first, ...others] = await operatorIdsOfName(db, nameOrId);
  if (first === undefined) return nameOrId;
  if (others.length > 0) throw ambiguous(nameOrId, [first, ...others]);
  return first;
}

const ambiguous = (name: string, ids: readonly string[]): Fault =>
  new Fault('invalid_filter', `${ids.length} operators had the name ${name}, and none has it now: ${ids.join(', ')}`, {
    hint: `give the ID of the one you mean: operator=${ids[0]}, on the command line --operator ${ids[0]}`,
    data: { parameter: 'operator', operator_ids: [...ids] },
  });
