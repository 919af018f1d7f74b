/** Queries of deliveries to channels: pending ones are the outbox, finished ones its log. */
import type { Updateable } from 'kysely';
import { chunks } from '../database/batches.js';
import type { DeliveryTable, NewRow, Queryable, Row } from '../database/schema.js';
import { seqOf } from './notification-store.js';

export type DeliveryRow = Row<'deliveries'>;
export type DeliveryKey = Pick<DeliveryRow, 'channel_id' | 'seq'>;

/**
 * Milliseconds that `updated_at` may be ahead of the clock. A larger lead means that the delivery was scheduled by a
 * wrong clock; a smaller correction delays it only briefly.
 */
const AHEAD_MS = 60_000;

export async function insertDeliveries(db: Queryable, rows: readonly NewRow<'deliveries'>[]): Promise<void> {
  for (const part of chunks(rows, 500)) await db.insertInto('deliveries').values(part).execute();
}

export async function findDelivery(db: Queryable, { channel_id, seq }: DeliveryKey): Promise<DeliveryRow | null> {
  const query = db.selectFrom('deliveries').selectAll().where('channel_id', '=', channel_id).where('seq', '=', seq);
  return (await query.executeTakeFirst()) ?? null;
}

export async function updateDelivery(
  db: Queryable,
  { channel_id, seq }: DeliveryKey,
  change: Omit<Updateable<DeliveryTable>, 'channel_id' | 'seq'>,
): Promise<void> {
  await db.updateTable('deliveries').set(change).where('channel_id', '=', channel_id).where('seq', '=', seq).execute();
}

/**
 * Returns up to `limit` pending deliveries of a channel, in the order they are due. Includes deliveries that were
 * scheduled while the clock was ahead. `now` is in Unix milliseconds.
 */
export async function dueDeliveries(
  db: Queryable,
  { channelId, now, limit }: { readonly channelId: string; readonly now: number; readonly limit: number },
): Promise<readonly DeliveryRow[]> {
  return db
    .selectFrom('deliveries')
    .selectAll()
    .where('channel_id', '=', channelId)
    .where('next_at', 'is not', null)
    .where((is) => is.or([is('next_at', '<=', now), is('updated_at', '>', now + AHEAD_MS)]))
    .orderBy('next_at')
    .orderBy('seq')
    .limit(limit)
    .execute();
}

export async function countPendingDeliveries(db: Queryable): Promise<number> {
  const { count } = await db
    .selectFrom('deliveries')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('next_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the Unix milliseconds of the channel's next delivery due after `behind`, or null. */
export async function nextDeliveryAt(db: Queryable, channelId: string, behind: number): Promise<number | null> {
  const row = await db
    .selectFrom('deliveries')
    .select('next_at')
    .where('channel_id', '=', channelId)
    .where('next_at', '>', behind)
    .orderBy('next_at')
    .limit(1)
    .executeTakeFirst();
  return row?.next_at ?? null;
}

/** Makes every pending delivery of a channel due at `now`. */
export async function makeDeliveriesDue(db: Queryable, channelId: string, now: number): Promise<void> {
  await db
    .updateTable('deliveries')
    .set({ next_at: now })
    .where('channel_id', '=', channelId)
    .where('next_at', '>', now)
    .execute();
}

/** Ends every pending delivery of a channel with the same state and error. */
export async function endPendingDeliveries(
  db: Queryable,
  channelId: string,
  end: { readonly state: string; readonly error: string; readonly updated_at: number },
): Promise<void> {
  await db
    .updateTable('deliveries')
    .set({ ...end, next_at: null })
    .where('channel_id', '=', channelId)
    .where('next_at', 'is not', null)
    .execute();
}

export type LoggedDelivery = DeliveryRow & {
  readonly id: string;
  readonly event_type: string;
  readonly summary: string;
};

/** Returns the deliveries of a channel, newest notification first. */
export async function listDeliveries(
  db: Queryable,
  channelId: string,
  { limit, before }: { readonly limit: number; readonly before?: string | null },
): Promise<readonly LoggedDelivery[]> {
  let query = db
    .selectFrom('deliveries')
    .innerJoin('notifications', 'notifications.seq', 'deliveries.seq')
    .selectAll('deliveries')
    .select(['notifications.id', 'notifications.event_type', 'notifications.summary'])
    .where('channel_id', '=', channelId)
    .orderBy('deliveries.seq', 'desc')
    .limit(limit);
  if (before != null) query = query.where('deliveries.seq', '<', seqOf(before));
  return query.execute();
}
