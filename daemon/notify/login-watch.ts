/** Logins that failed in a row, and the addresses that operators log in from. */
import type { Queryable, Row } from '../database/schema.js';

export type LoginStreakRow = Row<'login_streaks'>;

export async function findLoginStreak(db: Queryable, subject: string): Promise<LoginStreakRow | null> {
  return (await db.selectFrom('login_streaks').selectAll().where('subject', '=', subject).executeTakeFirst()) ?? null;
}

export async function putLoginStreak(db: Queryable, { subject, failures, told_at }: LoginStreakRow): Promise<void> {
  await db
    .insertInto('login_streaks')
    .values({ subject, failures, told_at })
    .onConflict((conflict) => conflict.column('subject').doUpdateSet({ failures, told_at }))
    .execute();
}

export async function deleteLoginStreak(db: Queryable, subject: string): Promise<void> {
  await db.deleteFrom('login_streaks').where('subject', '=', subject).execute();
}

/** Notes a login; returns when the last one from there was, null when there was none. */
export async function noteLoginAddress(
  db: Queryable,
  { operator_id, address, last_login_at }: Row<'operator_addresses'>,
): Promise<number | null> {
  const before = await db
    .selectFrom('operator_addresses')
    .select('last_login_at')
    .where('operator_id', '=', operator_id)
    .where('address', '=', address)
    .executeTakeFirst();
  await db
    .insertInto('operator_addresses')
    .values({ operator_id, address, last_login_at })
    .onConflict((conflict) => conflict.columns(['operator_id', 'address']).doUpdateSet({ last_login_at }))
    .execute();
  return before?.last_login_at ?? null;
}

export async function deleteLoginAddresses(db: Queryable, operatorId: string): Promise<void> {
  await db.deleteFrom('operator_addresses').where('operator_id', '=', operatorId).execute();
}

/** Forgets addresses that nobody has logged in from since a time in ms. */
export async function deleteLoginAddressesBefore(db: Queryable, time: number): Promise<void> {
  await db.deleteFrom('operator_addresses').where('last_login_at', '<', time).execute();
}
