/** Notification channels: create, list, change, delete, try out. What is secret in a configuration is never given out. */
import type { Kysely } from 'kysely';
import type { Channel, ChannelTest, CreateChannel, Delivery, UpdateChannel } from '../../src/contract/channels.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import { canonicalJson } from '../../src/kernel/json.js';
import type { DomainEvent } from '../events/domain-event.js';
import type { Doorbell } from '../events/doorbell.js';
import { eventOfRequest } from '../events/event-of-request.js';
import type { EventType } from '../events/event-type.js';
import type { RequestContext } from '../events/request-context.js';
import type { UnitOfWork } from '../events/unit-of-work.js';
import type { ChannelVault } from '../secrets/channel-vault.js';
import {
  type ChannelRow,
  deleteChannel,
  findChannel,
  insertChannel,
  listChannels,
  updateChannel,
} from '../store/channels.js';
import { hastenDeliveries, listDeliveries } from '../store/deliveries.js';
import type { Queryable } from '../store/queryable.js';
import type { Database } from '../store/schema.js';
import { readConfig } from './channel-config.js';
import { channelNotFound, channelParty, channelView, configOrNull, deliveryView } from './channel-record.js';
import { typeOf } from './channels/index.js';
import { messageOf } from './message.js';
import type { Attempt, Sender } from './sender.js';

export interface ChannelServiceOptions {
  readonly db: Kysely<Database>;
  readonly uow: UnitOfWork;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly vault: ChannelVault;
  readonly sender: Sender;
  /** Rung when there may be something to send. */
  readonly bell: Pick<Doorbell, 'ring'>;
}

export class ChannelService {
  private readonly options: ChannelServiceOptions;

  constructor(options: ChannelServiceOptions) {
    this.options = options;
  }

  /** In the order they were made. */
  async list(): Promise<Channel[]> {
    return (await listChannels(this.options.db)).map((row) => this.view(row));
  }

  /** Throws `channel_not_found`. */
  async get(id: string): Promise<Channel> {
    return this.view(await requireChannel(this.options.db, id));
  }

  /** Throws `invalid_body`. */
  async create({ channel_type, name, config }: CreateChannel, context: RequestContext): Promise<Channel> {
    const { uow, clock, newId, vault } = this.options;
    const read = readConfig(channel_type, config, null);
    const place = { channel_id: newId(), row_version: 1 };
    const row: ChannelRow = {
      ...place,
      ...vault.seal(JSON.stringify(read.config), place),
      name,
      channel_type,
      created_at: clock.now(),
      created_by: context.actor.id,
      disabled_at: null,
      failing: 0,
      attempted_at: null,
      attempt_status: null,
      attempt_error: null,
    };
    await uow.write(async (tx, emit) => {
      await insertChannel(tx, row);
      emit(eventOf('channel.created', `created the ${channel_type} channel ${name}`, row, context));
    });
    return this.view(row);
  }

  /** What is left out stays; a configuration replaces the old one and enables the channel. Throws `channel_not_found`, `invalid_body`. */
  async update(id: string, given: UpdateChannel, context: RequestContext): Promise<Channel> {
    const { uow, clock, bell } = this.options;
    return uow.write(async (tx, emit) => {
      const before = await requireChannel(tx, id);
      const { row, changed } = this.changed(before, given);
      if (changed.length === 0) return this.view(before);
      const { channel_id: _id, ...change } = row;
      await updateChannel(tx, id, change);
      // What waits for its next attempt is not to wait for what was wrong with the old configuration.
      if (row.row_version !== before.row_version) await hastenDeliveries(tx, id, clock.now());
      bell.ring();
      emit(eventOf('channel.updated', `changed ${changed.join(' and ')} of the channel ${row.name}`, row, context));
      return this.view(row);
    });
  }

  /** Throws `channel_not_found`. */
  async remove(id: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const row = await requireChannel(tx, id);
      await deleteChannel(tx, id);
      emit(eventOf('channel.deleted', `deleted the channel ${row.name}`, row, context));
    });
  }

  /** Sends at once, also to a channel that is disabled, which a success enables. Throws `channel_not_found`, `delivery_failed`. */
  async test(id: string, context: RequestContext, signal: AbortSignal): Promise<ChannelTest> {
    const { db, clock, sender } = this.options;
    const row = await requireChannel(db, id);
    const begun = clock.monotonic();
    const attempt = await sender.attempt(row, this.testMessage(row, context), signal);
    const duration = Math.round(clock.monotonic() - begun);
    await this.noteTest(row, attempt, context);
    if (attempt.delivered && attempt.status !== null) {
      return { delivered: true, status_code: attempt.status, duration_ms: duration };
    }
    throw new Fault('delivery_failed', `the channel ${row.name} could not be reached: ${attempt.error}`, {
      data: { reason: attempt.reason, status_code: attempt.status, duration_ms: duration },
    });
  }

  /** Newest notification first. Throws `channel_not_found`. */
  async deliveries(id: string, limit: number): Promise<Delivery[]> {
    const { db } = this.options;
    await requireChannel(db, id);
    return (await listDeliveries(db, id, limit)).map(deliveryView);
  }

  private changed(before: ChannelRow, { name, config }: UpdateChannel) {
    const changed: string[] = [];
    let row = before;
    if (typeof name === 'string' && name !== before.name) {
      row = { ...row, name };
      changed.push('the name');
    }
    if (config) {
      const { vault } = this.options;
      const stored = configOrNull(vault, before);
      const read = readConfig(typeOf(before), config, stored);
      if (before.disabled_at !== null || stored === null || canonicalJson(stored) !== canonicalJson(read.config)) {
        const place = { channel_id: before.channel_id, row_version: before.row_version + 1 };
        const sealed = vault.seal(JSON.stringify(read.config), place);
        row = { ...row, ...place, ...sealed, disabled_at: null, failing: 0 };
        changed.push('the configuration');
      }
    }
    return { row, changed };
  }

  private testMessage(row: ChannelRow, { actor }: RequestContext) {
    const { clock, newId } = this.options;
    return messageOf({
      id: newId(),
      type: 'channel.tested',
      summary: `This is a test of the channel ${row.name}, sent by ${actor.name}.`,
      timestamp: clock.now(),
      actor,
      target: channelParty(row),
      metadata: {},
    });
  }

  private async noteTest(row: ChannelRow, attempt: Attempt, context: RequestContext): Promise<void> {
    const { uow, clock, bell } = this.options;
    const { delivered, status, reason, error } = attempt;
    await uow.write(async (tx, emit) => {
      await updateChannel(tx, row.channel_id, {
        attempted_at: clock.now(),
        attempt_status: status,
        attempt_error: error,
        ...(delivered ? { disabled_at: null, failing: 0 } : {}),
      });
      if (delivered) await hastenDeliveries(tx, row.channel_id, clock.now());
      bell.ring();
      const event = eventOf('channel.tested', `tested the channel ${row.name}: ${error ?? 'delivered'}`, row, context);
      emit({ ...event, metadata: { ...event.metadata, delivered, status_code: status, reason } });
    });
  }

  private view(row: ChannelRow): Channel {
    return channelView(row, this.options.vault);
  }
}

const eventOf = (type: EventType, what: string, row: ChannelRow, context: RequestContext): DomainEvent =>
  eventOfRequest(context, {
    type,
    target: channelParty(row),
    summary: `${context.actor.name} ${what}`,
    metadata: { channel_type: row.channel_type },
  });

async function requireChannel(db: Queryable, id: string): Promise<ChannelRow> {
  const row = await findChannel(db, id);
  if (row === null) throw channelNotFound(id);
  return row;
}
