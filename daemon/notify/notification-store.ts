/** Queries of notifications and of each operator's read marks. */
import { expressionBuilder, sql } from 'kysely';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Party } from '../core/domain-event.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { Database, NewRow, Queryable, Row } from '../database/schema.js';

interface NotificationValues {
  readonly actor: Party;
  readonly target: Party;
  readonly metadata: JsonObject;
}

const columns = jsonColumns<NotificationValues>({ actor: true, target: true, metadata: true });

export type NotificationRow = Decoded<Row<'notifications'>, NotificationValues>;
type NewNotification = Decoded<Omit<NewRow<'notifications'>, 'seq'>, NotificationValues>;

/** Inserts a notification and returns its `seq`. */
export async function insertNotification(db: Queryable, row: NewNotification): Promise<number> {
  const query = db.insertInto('notifications').values(columns.encode(row)).returning('seq');
  const { seq } = await query.executeTakeFirstOrThrow();
  return seq;
}

export async function findNotification(db: Queryable, id: string): Promise<NotificationRow | null> {
  const row = await db.selectFrom('notifications').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function findNotificationBySeq(db: Queryable, seq: number): Promise<NotificationRow | null> {
  const row = await db.selectFrom('notifications').selectAll().where('seq', '=', seq).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

interface NotificationQuery {
  readonly operatorId: string;
  readonly unreadOnly: boolean;
  readonly limit: number;
  /** ID of the notification that the page ends before; the page is empty when that notification is gone. */
  readonly before?: string | null | undefined;
}

/** Returns a subquery for the `seq` of the notification with this ID; it yields null when the notification is gone. */
export const seqOf = (id: string) =>
  expressionBuilder<Database, never>()
    .selectFrom('notifications as place')
    .select('place.seq')
    .where('place.id', '=', id);

/** Returns notifications, newest first; `read` is 0 or 1. */
export async function listNotifications(
  db: Queryable,
  { operatorId, unreadOnly, limit, before }: NotificationQuery,
): Promise<readonly (NotificationRow & { readonly read: number })[]> {
  const isRead = readBy(operatorId);
  let query = db
    .selectFrom('notifications')
    .selectAll()
    .select(isRead.as('read'))
    .orderBy('notifications.seq', 'desc')
    .limit(limit);
  if (before != null) query = query.where('notifications.seq', '<', seqOf(before));
  // The index skips everything up to the "read all" mark, however many rows that is.
  if (unreadOnly) query = query.where('notifications.seq', '>', await readTo(db, operatorId)).where(isRead, '=', 0);
  return (await query.execute()).map((row) => columns.decode(row));
}

export async function countUnread(db: Queryable, operatorId: string): Promise<number> {
  const from = await readTo(db, operatorId);
  const all = await db
    .selectFrom('notifications')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('seq', '>', from)
    .executeTakeFirstOrThrow();
  const read = await db
    .selectFrom('notification_reads')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('operator_id', '=', operatorId)
    .where('seq', '>', from)
    .executeTakeFirstOrThrow();
  return all.count - read.count;
}

export async function markRead(db: Queryable, operatorId: string, seq: number): Promise<void> {
  if (seq <= (await readTo(db, operatorId))) return;
  await db
    .insertInto('notification_reads')
    .values({ operator_id: operatorId, seq })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Marks every notification up to the newest as read. */
export async function markAllRead(db: Queryable, operatorId: string): Promise<void> {
  const newest = await db.selectFrom('notifications').select('seq').orderBy('seq', 'desc').limit(1).executeTakeFirst();
  if (newest === undefined) return;
  await db
    .insertInto('notification_readers')
    .values({ operator_id: operatorId, read_to: newest.seq })
    .onConflict((conflict) => conflict.column('operator_id').doUpdateSet({ read_to: newest.seq }))
    .execute();
  await db.deleteFrom('notification_reads').where('operator_id', '=', operatorId).execute();
}

/** Deletes all read marks of an operator. */
export async function deleteReadMarks(db: Queryable, operatorId: string): Promise<void> {
  await db.deleteFrom('notification_reads').where('operator_id', '=', operatorId).execute();
  await db.deleteFrom('notification_readers').where('operator_id', '=', operatorId).execute();
}

/** Deletes up to `limit` notifications older than `time` (Unix milliseconds) and their deliveries. Returns the count. */
export async function deleteNotificationsBefore(db: Queryable, time: number, limit: number): Promise<number> {
  const old = db
    .selectFrom('notifications')
    .select('seq')
    .where('timestamp', '<', time)
    .orderBy('timestamp')
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom('notifications').where('seq', 'in', old).executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

async function readTo(db: Queryable, operatorId: string): Promise<number> {
  const query = db.selectFrom('notification_readers').select('read_to').where('operator_id', '=', operatorId);
  return (await query.executeTakeFirst())?.read_to ?? 0;
}

/** PostgreSQL answers a condition with a boolean, SQLite with a number. */
const readBy = (operatorId: string) => sql<number>`(case when
  exists (select 1 from notification_readers r where r.operator_id = ${operatorId} and r.read_to >= notifications.seq)
  or exists (select 1 from notification_reads m where m.operator_id = ${operatorId} and m.seq = notifications.seq)
then 1 else 0 end)`;
