/** Queries of notification channels and their API views; configurations are stored sealed. */
import type { Updateable } from 'kysely';
import type { Channel, Delivery } from '../../src/contract/channels.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import {
  type DomainEvent,
  type EventType,
  eventOfRequest,
  type Party,
  type RequestContext,
} from '../core/domain-event.js';
import type { ChannelTable, NewRow, Queryable, Row } from '../database/schema.js';
import type { ChannelCipher } from '../secrets/ciphers.js';
import { CHANNEL_KINDS, typeOf } from './channels/channel-types.js';
import type { LoggedDelivery } from './delivery-store.js';

export type ChannelRow = Row<'channels'>;

/** Returns all channels, oldest first. */
export async function listChannels(db: Queryable): Promise<readonly ChannelRow[]> {
  return db.selectFrom('channels').selectAll().orderBy('created_at').orderBy('channel_id').execute();
}

export async function findChannel(db: Queryable, channelId: string): Promise<ChannelRow | null> {
  return (await db.selectFrom('channels').selectAll().where('channel_id', '=', channelId).executeTakeFirst()) ?? null;
}

/** Returns the oldest channel of that name; stores from before names were unique may hold several. */
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

/** Returns the IDs of enabled channels, oldest first. */
export async function enabledChannelIds(db: Queryable): Promise<readonly string[]> {
  const query = db.selectFrom('channels').select('channel_id').where('disabled_at', 'is', null);
  return (await query.orderBy('created_at').execute()).map((row) => row.channel_id);
}

/** Returns a channel as a party of events. */
export const channelParty = ({ channel_id: id, name }: Pick<ChannelRow, 'channel_id' | 'name'>): Party => ({
  id,
  name,
  type: 'channel',
});

/** Returns the encrypted configuration of this version of a channel. Throws `secrets_locked`. */
export const sealedConfig = (
  cipher: ChannelCipher,
  config: JsonObject,
  place: Pick<ChannelRow, 'channel_id' | 'row_version'>,
): Pick<ChannelRow, 'sealed' | 'key_id'> => cipher.seal(JSON.stringify(config), place);

/** Returns the decrypted configuration. Throws `secrets_locked`. */
export const configOf = (cipher: ChannelCipher, row: ChannelRow): JsonObject => JSON.parse(cipher.open(row));

/** Returns the decrypted configuration; null when it cannot be decrypted. */
export function configOrNull(cipher: ChannelCipher, row: ChannelRow): JsonObject | null {
  try {
    return configOf(cipher, row);
  } catch (error) {
    if (isFault(error, 'secrets_locked')) return null;
    throw error;
  }
}

/** Returns a channel as the API shows it. A configuration that cannot be decrypted is shown empty. */
export function channelView(row: ChannelRow, cipher: ChannelCipher): Channel {
  const { attempted_at: attemptedAt, attempt_error: error } = row;
  return {
    id: row.channel_id,
    name: row.name,
    channel_type: typeOf(row),
    config: { ...maskedConfig(row, cipher) },
    created_at: toSeconds(row.created_at),
    created_by: row.created_by,
    disabled_at: row.disabled_at === null ? null : toSeconds(row.disabled_at),
    last_attempt:
      attemptedAt === null
        ? null
        : { at: toSeconds(attemptedAt), delivered: error === null, status_code: row.attempt_status, error },
  };
}

export const deliveryView = (row: LoggedDelivery): Delivery => ({
  notification_id: row.id,
  event_type: row.event_type,
  summary: row.summary,
  state: stateOf(row.state),
  attempts: row.attempts,
  next_attempt_at: row.next_at === null ? null : toSeconds(row.next_at),
  status_code: row.status_code,
  error: row.error,
  updated_at: toSeconds(row.updated_at),
});

/** Returns the channel. Throws `channel_not_found`. */
export async function requireChannel(db: Queryable, id: string): Promise<ChannelRow> {
  const row = await findChannel(db, id);
  if (row !== null) return row;
  throw new Fault('channel_not_found', `there is no channel ${id}`, { hint: 'see what there is: orch channels list' });
}

/**
 * Returns the event of a change to a channel.
 * @param what predicate of the summary; the actor's name is put in front of it
 */
export const channelEvent = (
  type: EventType,
  what: string,
  { row, context, metadata }: { row: ChannelRow; context: RequestContext; metadata?: JsonObject },
): DomainEvent =>
  eventOfRequest(context, {
    type,
    target: channelParty(row),
    summary: `${context.actor.name} ${what}`,
    metadata: { channel_type: row.channel_type, ...metadata },
  });

function maskedConfig(row: ChannelRow, cipher: ChannelCipher): JsonObject {
  const config = configOrNull(cipher, row);
  return config === null ? {} : CHANNEL_KINDS[typeOf(row)].read(config).masked;
}

const stateOf = (state: string): Delivery['state'] =>
  state === 'delivered' || state === 'failed' || state === 'suppressed' ? state : 'pending';
