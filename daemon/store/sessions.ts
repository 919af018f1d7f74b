/** Sessions of operators, found by the hash of their token. */
import type { OperatorRow } from './operators.js';
import type { Queryable } from './queryable.js';
import type { NewRow, Row } from './schema.js';

export type SessionRow = Row<'sessions'>;

export interface SessionOfOperator {
  readonly session: SessionRow;
  readonly operator: OperatorRow;
}

export async function insertSession(db: Queryable, session: NewRow<'sessions'>): Promise<void> {
  await db.insertInto('sessions').values(session).execute();
}

/** The session and its operator, who is active; expired or not. */
export async function findSession(db: Queryable, tokenHash: string): Promise<SessionOfOperator | null> {
  const session = await db.selectFrom('sessions').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
  if (!session) return null;
  const operator = await db
    .selectFrom('operators')
    .selectAll()
    .where('operator_id', '=', session.operator_id)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return operator ? { session, operator } : null;
}

export async function touchSession(db: Queryable, tokenHash: string, lastUsedAt: number): Promise<void> {
  await db.updateTable('sessions').set({ last_used_at: lastUsedAt }).where('token_hash', '=', tokenHash).execute();
}

/** False when there was none. */
export async function deleteSession(db: Queryable, tokenHash: string): Promise<boolean> {
  const result = await db.deleteFrom('sessions').where('token_hash', '=', tokenHash).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Returns how many there were. */
export async function deleteSessionsOf(db: Queryable, operatorId: string): Promise<number> {
  const result = await db.deleteFrom('sessions').where('operator_id', '=', operatorId).executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** Returns how many there were. */
export async function deleteAllSessions(db: Queryable): Promise<number> {
  const result = await db.deleteFrom('sessions').executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** Drops what has expired at `now`, or was made after `madeUpTo`, both in ms; returns how many there were. */
export async function deleteExpiredSessions(
  db: Queryable,
  { now, madeUpTo }: { readonly now: number; readonly madeUpTo: number },
): Promise<number> {
  const result = await db
    .deleteFrom('sessions')
    .where((is) => is.or([is('expires_at', '<=', now), is('created_at', '>', madeUpTo)]))
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}
