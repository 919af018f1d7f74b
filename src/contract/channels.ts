/** Notification channels: destinations of notifications, and their deliveries. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { SEVERITIES } from './audit.js';
import { route } from './route.js';
import { Cursor, limitOf, NEXT_PAGE, pathId, Seconds, ulidOf } from './shapes.js';

export const CHANNEL_TYPES = ['webhook', 'discord', 'slack', 'ntfy'] as const;
export type ChannelType = (typeof CHANNEL_TYPES)[number];

const Url = Type.String({ minLength: 1, maxLength: 2048, description: 'https, or http if the setting allows it' });
const Credential = Type.String({ minLength: 1, maxLength: 1024 });

const HookConfigSchema = closed({ webhook_url: Url });

/** Configuration of each channel type. */
export const CHANNEL_CONFIGS = {
  webhook: closed({
    url: Url,
    secret: optional({ ...Credential, description: 'Signs each delivery; `whsec_` and base64, or any text' }),
  }),
  discord: HookConfigSchema,
  slack: HookConfigSchema,
  ntfy: closed({
    topic: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
    url: optional({ ...Url, description: 'Server; default: the public service' }),
    token: optional(Credential),
    priority: optional(
      Type.Integer({ minimum: 1, maximum: 5, description: 'Priority; default: derived from the severity' }),
    ),
  }),
} as const satisfies Readonly<Record<ChannelType, Type.TObject>>;

/** Placeholder for the secret parts of a configuration in answers. */
export const MASKED = '********';

/** Returns the members of a type's configuration, such as `{url, secret?}`. */
function membersOf(type: ChannelType): string {
  const { properties, required }: Type.TObject = CHANNEL_CONFIGS[type];
  const members = Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`));
  return `{${members.join(', ')}}`;
}

const ChannelConfig = Type.Record(Type.String(), Type.Unknown(), {
  description:
    `${CHANNEL_TYPES.map((type) => `${type} \`${membersOf(type)}\``).join(', ')}. Answers mask ` +
    '`secret`, `token` and the path of `webhook_url`, and for those who are not admins also `topic` and the path and query ' +
    'of `url`; a masked value that is sent back keeps the stored one.',
});

const Events = Type.Array(Type.String({ pattern: '^([a-z_]+\\.)?([a-z_]+|[a-z_]*\\*)$', maxLength: 64 }), {
  maxItems: 64,
  description:
    'Types of the events that it receives; `drift.*` stands for all that begin with `drift.`, an empty list for all events',
});
const MinSeverity = Type.Enum(SEVERITIES, { description: 'Least severity of the events that it receives' });

const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'suppressed'] as const;

export const ChannelSchema = closed({
  id: ulidOf('ID of the channel'),
  name: Type.String({ description: 'Name of the channel' }),
  channel_type: Type.Enum(CHANNEL_TYPES, { description: 'Kind of the receiver' }),
  config: ChannelConfig,
  events: Events,
  min_severity: MinSeverity,
  created_at: Seconds,
  created_by: Type.String({ description: 'operator_id' }),
  disabled_at: nullable(
    Type.Integer({
      description: 'Unix seconds at which its address answered 410 Gone; a new config or a test enables it',
    }),
  ),
  paused_until: nullable(
    Type.Integer({
      description:
        'Unix seconds until which nothing is sent, because its receiver asked for a pause; a new config or a successful ' +
        'test ends it',
    }),
  ),
  last_attempt: nullable(
    closed(
      {
        at: Seconds,
        delivered: Type.Boolean({ description: 'True when the receiver took it' }),
        status_code: nullable(Type.Integer({ description: 'HTTP status of the receiver; null without an answer' })),
        error: nullable(Type.String({ description: 'Why it was not delivered; null if it was' })),
      },
      { description: 'The newest delivery or test; null before the first' },
    ),
  ),
});
export type Channel = Type.Static<typeof ChannelSchema>;

export const DeliverySchema = closed({
  notification_id: ulidOf('ID of the notification'),
  event_type: Type.String({ description: 'Type of its event' }),
  summary: Type.String({ description: 'The notification as a sentence' }),
  state: Type.Enum(DELIVERY_STATES, { description: 'suppressed: a maintenance window was active' }),
  attempts: Type.Integer({ description: 'Number of attempts so far' }),
  next_attempt_at: nullable(Seconds),
  status_code: nullable(Type.Integer({ description: 'HTTP status of the last attempt; null without an answer' })),
  error: nullable(Type.String({ description: 'Why the last attempt failed; null if it did not' })),
  updated_at: Seconds,
});
export type Delivery = Type.Static<typeof DeliverySchema>;

export const DELIVERY_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

const params = closed({ id: pathId('ID of the channel') });
const Name = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'Name of the channel',
});

const CreateChannelSchema = closed({
  channel_type: Type.Enum(CHANNEL_TYPES, { description: 'Kind of the receiver, which cannot be changed later' }),
  name: Name,
  config: ChannelConfig,
  events: optional(Events),
  min_severity: optional(MinSeverity),
});
export type CreateChannel = Type.Static<typeof CreateChannelSchema>;

const UpdateChannelSchema = closed({
  name: optional(Name),
  config: optional(ChannelConfig),
  events: optional(Events),
  min_severity: optional(MinSeverity),
});
export type UpdateChannel = Type.Static<typeof UpdateChannelSchema>;

export const ChannelTestSchema = closed({
  delivered: Type.Literal(true, { description: 'Always true: a failure is an error' }),
  status_code: Type.Integer({ description: 'HTTP status of the receiver' }),
  duration_ms: Type.Integer({ description: 'Milliseconds until its answer' }),
});
export type ChannelTest = Type.Static<typeof ChannelTestSchema>;

export const channelRoutes = {
  listChannels: route({
    id: 'listChannels',
    summary: 'List notification channels, secret parts masked; addresses in full only for admins',
    tag: 'channels',
    method: 'GET',
    path: '/channels',
    access: 'read',
    answers: { 200: Type.Array(ChannelSchema) },
    faults: [],
  }),
  createChannel: route({
    id: 'createChannel',
    summary: 'Create a notification channel',
    tag: 'channels',
    method: 'POST',
    path: '/channels',
    access: 'admin',
    tagged: true,
    tls: true,
    body: CreateChannelSchema,
    location: '/channels/{id}',
    answers: { 201: ChannelSchema },
    faults: ['channel_exists', 'tls_required'],
  }),
  getChannel: route({
    id: 'getChannel',
    summary: 'One notification channel, secret parts masked; addresses in full only for admins',
    tag: 'channels',
    method: 'GET',
    path: '/channels/{id}',
    access: 'read',
    tagged: true,
    params,
    answers: { 200: ChannelSchema },
    faults: ['channel_not_found'],
  }),
  updateChannel: route({
    id: 'updateChannel',
    summary: 'Change the name or filter, or replace the configuration of a channel',
    tag: 'channels',
    method: 'PUT',
    path: '/channels/{id}',
    access: 'admin',
    tagged: true,
    tls: true,
    params,
    body: UpdateChannelSchema,
    answers: { 200: ChannelSchema },
    faults: ['channel_not_found', 'channel_exists', 'tls_required'],
  }),
  removeChannel: route({
    id: 'removeChannel',
    summary: 'Delete a channel and its pending deliveries',
    tag: 'channels',
    method: 'DELETE',
    path: '/channels/{id}',
    access: 'admin',
    tagged: true,
    params,
    answers: { 204: null },
    faults: ['channel_not_found'],
  }),
  testChannel: route({
    id: 'testChannel',
    summary: 'Send a test notification through a channel and wait for the answer',
    tag: 'channels',
    method: 'POST',
    path: '/channels/{id}/test',
    access: 'admin',
    params,
    answers: { 200: ChannelTestSchema },
    faults: ['channel_not_found', 'delivery_failed'],
  }),
  listDeliveries: route({
    id: 'listDeliveries',
    summary: 'Deliveries of a channel, newest first; a Link header names the next page',
    tag: 'channels',
    method: 'GET',
    path: '/channels/{id}/deliveries',
    access: 'read',
    params,
    query: closed({
      limit: optional(limitOf(DELIVERY_LIST_LIMIT.standard, DELIVERY_LIST_LIMIT.maximum)),
      cursor: Cursor,
    }),
    answers: { 200: Type.Array(DeliverySchema) },
    headers: NEXT_PAGE,
    faults: ['channel_not_found'],
  }),
} as const;
