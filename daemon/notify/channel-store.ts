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
import { pauseLeft } from './channel-pause.js';
import { CHANNEL_KINDS, typeOf } from './channels/channel-types.js';
import type { LoggedDelivery } from './delivery-store.js';
import { severityOf } from './message.js';

export type ChannelRow = Row<'channels'>;

/** Returns all channels, oldest first. */
export async function listChannels(db: Queryable): Promise<readonly ChannelRow[]> {
  return db.selectFrom('channels').selectAll().orderBy('created_at').orderBy('channel_id').execute();
}

export async function findChannel(db: Queryable, channelId: string): Promise<ChannelRow | null> {
  return (await db.selectFrom('channels').selectAll().where('channel_id', '=', channelId).executeTakeFirst()) ?? null;
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

/**
 * Holds back every delivery to a channel. Those that are due stay due, and their attempts do not count.
 * @param until Unix milliseconds
 */
export const pauseChannel = (db: Queryable, { channel_id }: Pick<ChannelRow, 'channel_id'>, until: number) =>
  updateChannel(db, channel_id, { paused_until: until });

export async function deleteChannel(db: Queryable, channelId: string): Promise<void> {
  await db.deleteFrom('channels').where('channel_id', '=', channelId).execute();
}

/** Returns the enabled channels with their filters, oldest first. */
export async function enabledChannels(
  db: Queryable,
): Promise<readonly Pick<ChannelRow, 'channel_id' | 'events' | 'min_severity'>[]> {
  const query = db.selectFrom('channels').select(['channel_id', 'events', 'min_severity']);
  return query.where('disabled_at', 'is', null).orderBy('created_at').execute();
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

interface ViewOptions {
  readonly cipher: ChannelCipher;
  /** Unix milliseconds. */
  readonly now: number;
  /** True for a reader who may change channels. */
  readonly isFull: boolean;
}

/** Returns a channel as the API shows it. A configuration that cannot be decrypted is shown empty. */
export function channelView(row: ChannelRow, { cipher, now, isFull }: ViewOptions): Channel {
  const { attempted_at: attemptedAt, attempt_error: error } = row;
  const pause = pauseLeft(row, now);
  return {
    id: row.channel_id,
    name: row.name,
    channel_type: typeOf(row),
    config: { ...shownConfig(row, cipher, isFull) },
    events: [...patternsOf(row)],
    min_severity: severityOf(row.min_severity),
    created_at: toSeconds(row.created_at),
    created_by: row.created_by,
    disabled_at: row.disabled_at === null ? null : toSeconds(row.disabled_at),
    paused_until: pause === 0 ? null : Math.ceil((now + pause) / 1_000),
    last_attempt:
      attemptedAt === null
        ? null
        : { at: toSeconds(attemptedAt), delivered: error === null, status_code: row.attempt_status, error },
  };
}

/** @param pausedUntil Unix milliseconds at which the pause of the channel ends; null for none */
export const deliveryView = (row: LoggedDelivery, pausedUntil: number | null): Delivery => ({
  notification_id: row.id,
  event_type: row.event_type,
  summary: row.summary,
  state: stateOf(row.state),
  attempts: row.attempts,
  next_attempt_at: row.next_at === null ? null : Math.ceil(Math.max(row.next_at, pausedUntil ?? 0) / 1_000),
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

function shownConfig(row: ChannelRow, cipher: ChannelCipher, isFull: boolean): JsonObject {
  const config = configOrNull(cipher, row);
  if (config === null) return {};
  const { masked, hidden } = CHANNEL_KINDS[typeOf(row)].read(config);
  return isFull ? masked : hidden;
}

/** Returns the patterns of a stored filter of events; none stands for every event. */
export const patternsOf = ({ events }: Pick<ChannelRow, 'events'>): readonly string[] =>
  events === '' ? [] : events.split(' ');

const stateOf = (state: string): Delivery['state'] =>
  state === 'delivered' || state === 'failed' || state === 'suppressed' ? state : 'pending';
