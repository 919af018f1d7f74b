/** Notification channels, their configurations sealed: this room neither seals nor opens. */
import type { Updateable } from 'kysely';
import type { ChannelTable, NewRow, Queryable, Row } from '../database/schema.js';

export type ChannelRow = Row<'channels'>;

/** In the order they were made. */
export async function listChannels(db: Queryable): Promise<readonly ChannelRow[]> {
  return db.selectFrom('channels').selectAll().orderBy('created_at').orderBy('channel_id').execute();
}

export async function findChannel(db: Queryable, channelId: string): Promise<ChannelRow | null> {
  return (await db.selectFrom('channels').selectAll().where('channel_id', '=', channelId).executeTakeFirst()) ?? null;
}

/** The oldest of that name: stores from before names were unique may have several. */
export async function findChannelByName(db: Queryable, name: string): Promise<ChannelRow | null> {
  const query = db
    .selectFrom('channels')
    .selectAll()
    .where('name', '=', name)
    .orderBy('created_at')
    .orderBy('channel_id');
  return (await query.executeTakeFirst()) ?? null;
}

export async function insertChannel(db: Queryable, row: NewRow<'channels'>): Promise<void> {
  await db.insertInto('channels').values(row).execute();
}

export async function updateChannel(
  db: Queryable,
  channelId: string,
  change: Omit<Updateable<ChannelTable>, 'channel_id'>,
): Promise<void> {
  await db.updateTable('channels').set(change).where('channel_id', '=', channelId).execute();
}

export async function deleteChannel(db: Queryable, channelId: string): Promise<void> {
  await db.deleteFrom('channels').where('channel_id', '=', channelId).execute();
}

/** Those that something is to be sent to. */
export async function enabledChannelIds(db: Queryable): Promise<readonly string[]> {
  const query = db.selectFrom('channels').select('channel_id').where('disabled_at', 'is', null);
  return (await query.orderBy('created_at').execute()).map((row) => row.channel_id);
}
