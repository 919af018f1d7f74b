/** Creates, lists, changes and deletes notification channels; secrets in a configuration are never returned. */
import {
  type Channel,
  type ChannelType,
  type CreateChannel,
  type channelRoutes,
  DELIVERY_LIST_LIMIT,
  type Delivery,
  MASKED,
  type UpdateChannel,
} from '../../src/contract/channels.js';
import type { Operator } from '../../src/contract/operators.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { Fault } from '../../src/kernel/fault.js';
import { canonicalJson, type JsonObject, type JsonValue } from '../../src/kernel/json.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import type { Core } from '../core/core.js';
import type { RequestContext } from '../core/domain-event.js';
import { requireMatch, type Tagged, tagged } from '../core/entity-tag.js';
import type { Queryable } from '../database/schema.js';
import type { HandlersFor } from '../http/handler.js';
import { pageFrom } from '../http/query-string.js';
import type { ChannelCipher } from '../secrets/ciphers.js';
import type { AddressPolicy } from './address-policy.js';
import { patternMistakes, storedPatterns } from './channel-filter.js';
import { pauseLeft } from './channel-pause.js';
import {
  type ChannelRow,
  channelEvent,
  channelView,
  configOrNull,
  deleteChannel,
  deliveryView,
  insertChannel,
  listChannels,
  requireChannel,
  sealedConfig,
  updateChannel,
} from './channel-store.js';
import type { ChannelTester } from './channel-tester.js';
import { invalidConfig, type ReadConfig } from './channels/channel-kind.js';
import { CHANNEL_KINDS, typeOf } from './channels/channel-types.js';
import { listDeliveries, makeDeliveriesDue } from './delivery-store.js';

interface ChannelServiceOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly cipher: ChannelCipher;
  readonly policy: Pick<AddressPolicy, 'refusalAtOnce'>;
  /** Notes, within a unit of work, that a delivery may be due once it is committed. */
  readonly noteDue: () => void;
}

export class ChannelService {
  private readonly options: ChannelServiceOptions;

  constructor(options: ChannelServiceOptions) {
    this.options = options;
  }

  /**
   * Returns all channels, oldest first.
   * @param isFull true for a reader who may change channels
   */
  async list(isFull: boolean): Promise<Channel[]> {
    return (await listChannels(this.options.db)).map((row) => this.view(row, isFull));
  }

  /**
   * Returns the channel, its secrets masked. Throws `channel_not_found`.
   * @param isFull true for a reader who may change channels
   */
  async get(id: string, isFull: boolean): Promise<Tagged<Channel>> {
    return this.shown(await requireChannel(this.options.db, id), isFull);
  }

  /** Creates a channel and returns it. Throws `channel_exists`, and `invalid_body` also for an address that is never allowed. */
  async create(
    { channel_type, name, config, events, min_severity }: CreateChannel,
    context: RequestContext,
  ): Promise<Tagged<Channel>> {
    const { uow, clock, newId, cipher } = this.options;
    const read = readConfig(channel_type, config, null);
    this.requireReachable(read);
    requireEvents(events ?? []);
    const place = { channel_id: newId(), row_version: 1 };
    const row: ChannelRow = {
      ...place,
      ...sealedConfig(cipher, read.config, place),
      name,
      channel_type,
      created_at: clock.now(),
      created_by: context.actor.id,
      disabled_at: null,
      failing: 0,
      attempted_at: null,
      attempt_status: null,
      attempt_error: null,
      paused_until: null,
      events: storedPatterns(events ?? []),
      min_severity: min_severity ?? 'info',
    };
    await uow.write(async (tx, emit) => {
      await requireFreeName(tx, name, null);
      await insertChannel(tx, row);
      emit(channelEvent('channel.created', `created the ${channel_type} channel ${name}`, { row, context }));
    });
    return this.shown(row);
  }

  /**
   * Changes a channel and returns it. Absent members stay; a configuration replaces the old one and enables the channel.
   * Throws `channel_not_found`, `channel_exists`, `invalid_body`, `precondition_failed`.
   */
  async update(id: string, given: UpdateChannel, context: RequestContext): Promise<Tagged<Channel>> {
    const { uow, clock, noteDue } = this.options;
    return uow.write(async (tx, emit) => {
      const before = await requireChannel(tx, id);
      requireMatch(context, `the channel ${before.name}`, contentOf(before));
      const { row, changed } = this.changed(before, given);
      if (changed.length === 0) return this.shown(before);
      if (row.name !== before.name) await requireFreeName(tx, row.name, id);
      const { channel_id: _id, ...change } = row;
      await updateChannel(tx, id, change);
      // Pending retries were scheduled because of the old configuration, so they are due now.
      if (row.row_version !== before.row_version) await makeDeliveriesDue(tx, id, clock.now());
      noteDue();
      emit(
        channelEvent(
          'channel.updated',
          `changed ${changed.join(', ').replace(/, ([^,]*)$/, ' and $1')} of the channel ${row.name}`,
          {
            row,
            context,
          },
        ),
      );
      return this.shown(row);
    });
  }

  /** Deletes a channel. Throws `channel_not_found`. */
  async remove(id: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const row = await requireChannel(tx, id);
      requireMatch(context, `the channel ${row.name}`, contentOf(row));
      await deleteChannel(tx, id);
      emit(channelEvent('channel.deleted', `deleted the channel ${row.name}`, { row, context }));
    });
  }

  /** Returns the deliveries of a channel, newest notification first. Throws `channel_not_found`. */
  async deliveries(id: string, page: { readonly limit: number; readonly before?: string | null }): Promise<Delivery[]> {
    const { db, clock } = this.options;
    const channel = await requireChannel(db, id);
    const now = clock.now();
    const pause = pauseLeft(channel, now);
    const pausedUntil = pause === 0 ? null : now + pause;
    return (await listDeliveries(db, id, page)).map((row) => deliveryView(row, pausedUntil));
  }

  private changed(before: ChannelRow, { name, config, events, min_severity }: UpdateChannel) {
    const changed: string[] = [];
    let row = before;
    if (typeof name === 'string' && name !== before.name) {
      row = { ...row, name };
      changed.push('the name');
    }
    requireEvents(events ?? []);
    const filter = {
      events: events ? storedPatterns(events) : before.events,
      min_severity: min_severity ?? before.min_severity,
    };
    if (filter.events !== before.events || filter.min_severity !== before.min_severity) {
      row = { ...row, ...filter };
      changed.push('the filter');
    }
    if (config) {
      const { cipher } = this.options;
      const stored = configOrNull(cipher, before);
      const read = readConfig(typeOf(before), config, stored);
      this.requireReachable(read);
      if (before.disabled_at !== null || stored === null || canonicalJson(stored) !== canonicalJson(read.config)) {
        const place = { channel_id: before.channel_id, row_version: before.row_version + 1 };
        const sealed = sealedConfig(cipher, read.config, place);
        row = { ...row, ...place, ...sealed, disabled_at: null, failing: 0, paused_until: null };
        changed.push('the configuration');
      }
    }
    return { row, changed };
  }

  /**
   * Throws `invalid_body` for a destination that is refused without a lookup. A name may resolve to other addresses
   * each time, so its addresses are checked on connect.
   */
  private requireReachable({ destination }: ReadConfig): void {
    const refusal = this.options.policy.refusalAtOnce(new URL(destination.url));
    if (refusal !== null) throw invalidConfig([{ path: `/config/${destination.member}`, message: refusal }]);
  }

  private shown(row: ChannelRow, isFull = true): Tagged<Channel> {
    return tagged(this.view(row, isFull), contentOf(row));
  }

  private view(row: ChannelRow, isFull = true): Channel {
    const { cipher, clock } = this.options;
    return channelView(row, { cipher, now: clock.now(), isFull });
  }
}

/** Returns what a change of a channel can replace; the version rises with each new configuration. */
const contentOf = ({ channel_id, row_version, name, events, min_severity }: ChannelRow) => ({
  channel_id,
  row_version,
  name,
  events,
  min_severity,
});

/** Throws `channel_exists` for the name of another channel, and for one that people take for it. */
async function requireFreeName(db: Queryable, name: string, own: string | null): Promise<void> {
  const others = (await listChannels(db)).filter(({ channel_id }) => channel_id !== own);
  const like = new LookAlikes(others.map((one) => one.name)).like(name);
  const other = others.find((one) => one.name === name) ?? others.find((one) => one.name === like);
  if (other === undefined) return;
  const message =
    other.name === name
      ? `there is a channel named ${JSON.stringify(name)} already`
      : `the name ${JSON.stringify(name)} looks like that of the channel ${JSON.stringify(other.name)}`;
  throw new Fault('channel_exists', message, {
    hint: 'change that one with: orch channels update, or take another name',
    data: { id: other.channel_id },
  });
}

/** Returns true for an operator who may change channels, as their routes require it. */
const mayChange = ({ role }: Operator): boolean => role === 'admin';

interface ChannelParts {
  readonly channels: ChannelService;
  readonly tester: ChannelTester;
}

/** Returns the route handlers of notification channels. */
export const channelHandlers = ({ channels, tester }: ChannelParts): HandlersFor<typeof channelRoutes> => ({
  listChannels: async ({ operator }) => ({ status: 200, body: await channels.list(mayChange(operator)) }),
  createChannel: async ({ body, context }) => ({ status: 201, ...(await channels.create(body, context)) }),
  getChannel: async ({ params, operator }) => ({
    status: 200,
    ...(await channels.get(params.id, mayChange(operator))),
  }),
  updateChannel: async ({ params, body, context }) => ({
    status: 200,
    ...(await channels.update(params.id, body, context)),
  }),
  removeChannel: async ({ params, context }) => {
    await channels.remove(params.id, context);
    return { status: 204, body: undefined };
  },
  testChannel: async ({ params, context, signal }) => ({
    status: 200,
    body: await tester.test(params.id, context, signal),
  }),
  listDeliveries: async ({ params, query }) => {
    const limit = clampLimit(query.limit, DELIVERY_LIST_LIMIT.standard, DELIVERY_LIST_LIMIT.maximum);
    const { items, headers } = pageFrom(
      await channels.deliveries(params.id, { limit: limit + 1, before: query.cursor ?? null }),
      {
        path: `/channels/${params.id}/deliveries`,
        query: { ...query, limit },
        cursorOf: ({ notification_id }) => notification_id,
      },
    );
    return { status: 200, body: items, headers };
  },
});

/** Throws `invalid_body` for patterns that match no event. */
function requireEvents(patterns: readonly string[]): void {
  const errors = patternMistakes(patterns);
  if (errors.length === 0) return;
  throw new Fault('invalid_body', errors.map(({ message }) => message).join('; '), { errors });
}

/**
 * Returns the configuration given by a request, with masked values replaced by the stored ones.
 * @param stored null for a new channel
 * @throws Fault `invalid_body`, also for a masked value that matches no stored value
 */
function readConfig(type: ChannelType, given: object, stored: JsonObject | null): ReadConfig {
  const kind = CHANNEL_KINDS[type];
  const shown = stored === null ? {} : kind.read(stored).masked;
  const entries = Object.entries(given).map(([name, value]): readonly [string, unknown] => {
    if (!kind.secretMembers.includes(name) || typeof value !== 'string') return [name, value];
    return [name, meantBy(name, value, { shown, stored })];
  });
  const read = kind.read(Object.fromEntries(entries));
  const mistakes = kind.newMistakes(read.config);
  if (mistakes.length > 0) throw invalidConfig(mistakes);
  return read;
}

interface Known {
  readonly shown: JsonObject;
  readonly stored: JsonObject | null;
}

function meantBy(name: string, value: string, { shown, stored }: Known): JsonValue | undefined {
  if (stored !== null && value === shown[name]) return stored[name];
  if (!value.includes(MASKED)) return value;
  const message =
    stored === null || shown[name] === undefined
      ? `is masked, and there is no stored value that it could stand for`
      : `is masked, but not as the stored value is shown, which is ${JSON.stringify(shown[name])}`;
  throw invalidConfig([{ path: `/config/${name}`, message }]);
}
