/** The commands of `orch channels`. */
import type { ApiClient } from '../../client/api-client.js';
import { SEVERITIES } from '../../contract/audit.js';
import {
  CHANNEL_CONFIGS,
  CHANNEL_TYPES,
  type Channel,
  type ChannelType,
  type Delivery,
  type UpdateChannel,
} from '../../contract/channels.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { formatAge, formatTime, type TimeCell, textOrNone, timeCells } from '../format.js';
import { readList } from '../list-pages.js';
import { choice, flagOf, integer, list, listWords, text } from '../options.js';
import { type Column, type FieldsView, fieldsOf, lines, type Span, stack, styled, type TableView } from '../outcome.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { readTextFile } from '../text-files.js';

export const channelArgument = argument('CHANNEL', 'name or ID of the channel', 'channel');

/** Options that configure a channel. */
export const configOptions = {
  to: text('URL', 'address of the webhook, or of the ntfy server [the public ntfy server]'),
  secret: text('TEXT', 'webhook: secret that signs each delivery'),
  topic: text('TOPIC', 'ntfy: the topic'),
  token: text('TOKEN', 'ntfy: access token'),
  priority: integer('N', 'ntfy: 1 to 5 [by severity]', 1),
  config: text('FILE', 'file with the whole configuration as JSON; - for standard input', { completes: 'file' }),
};

/** Options that choose what a channel receives. */
const filterOptions = {
  events: list('EVENT', 'only these events, such as drift.* or agent.disconnected; "" for all [all]'),
  minSeverity: choice('SEVERITY', SEVERITIES, 'only events of this severity or a higher one [info]'),
};

const CHANNEL_COLUMNS: readonly Column[] = [
  { title: 'CHANNEL', whole: true },
  { title: 'TYPE', spare: 2 },
  { title: 'SENDS TO' },
  { title: 'RECEIVES', spare: 1 },
  { title: 'LAST ATTEMPT' },
  { title: 'ID', whole: true, wide: true },
];

/** `orch channels list`. */
export const listChannels = defineCommand({
  examples: ['orch channels list'],
  access: 'viewer',
  columns: CHANNEL_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const channels = await api.call('listChannels', { signal: context.signal });
    const view = channelTable(channels, context.clock.now());
    return { body: channels, names: channels.map(({ id }) => id), view };
  },
});

/** Deliveries shown without --limit. */
const SHOWN = 10;

const DELIVERY_COLUMNS: readonly Column[] = [
  { title: 'STATE', whole: true },
  { title: 'TRIES', right: true, spare: 1 },
  { title: 'EVENT', whole: true },
  { title: 'SUMMARY' },
  { title: 'ANSWER' },
  { title: 'CHANGED', spare: 2 },
  { title: 'NEXT TRY', wide: true },
];

/** `orch channels show`. */
export const showChannel = defineCommand({
  examples: ['orch channels show ops', 'orch channels show ops --limit 100'],
  detail: ['Secret members of the configuration are masked.'],
  access: 'viewer',
  columns: DELIVERY_COLUMNS,
  args: { channel: channelArgument },
  options: { limit: integer('N', `maximum number of deliveries, newest first [${SHOWN}]`, 1) },
  run: async (context, { channel: given, limit }) => {
    const { signal, clock } = context;
    const api = await context.api();
    const channel = await findChannel(api, given, signal);
    const { items: deliveries } = await readList(context, {
      limit,
      read: (page) =>
        api.callWithHeaders('listDeliveries', {
          params: { id: channel.id },
          query: { ...page, limit: page.limit ?? SHOWN },
          signal,
        }),
      itemsOf: (body) => body,
    });
    const nameOf = await operatorNames(context, api);
    const now = clock.now();
    return {
      body: { ...channel, deliveries },
      names: [channel.id],
      view: stack(channelFields(channel, { nameOf, now }), deliveryTable(deliveries, timeCells(now, context.globals))),
    };
  },
});

/** `orch channels add`. */
export const addChannel = defineCommand({
  examples: [
    'orch channels add ops --type webhook --to https://hooks.example.com/orch --secret whsec_…',
    'orch channels add team --type slack',
    'orch channels add phone --type ntfy --topic my-fleet',
    'orch channels add ops --type discord --config discord.json',
    "orch channels add drift --type slack --events 'drift.*' --min-severity warning",
  ],
  detail: [
    'A channel gets every notification, unless --events or --min-severity limit them. The command asks for the',
    'address of Discord and Slack if it is not given.',
    'All users of this machine can see options in the process list; --config reads a file or standard input instead.',
  ],
  access: 'admin',
  args: { name: argument('NAME', 'name to give it') },
  options: { type: choice('TYPE', CHANNEL_TYPES, 'type of the channel'), ...configOptions, ...filterOptions },
  run: async (context, { name, type, events, minSeverity, ...input }) => {
    if (type === undefined) throw new Fault('usage', `--type is missing: ${listWords(CHANNEL_TYPES)}`);
    const config = (await givenConfig(context, type, input)) ?? (await askedConfig(context, type));
    const api = await context.api();
    const body = { channel_type: type, name, config: { ...config }, ...filterOf(events, minSeverity) };
    const channel = await api.call('createChannel', { body, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: channel,
      names: [channel.id],
      view: stack(
        lines(`Created the channel ${name}. Try it: orch channels test ${name}`),
        channelFields(channel, { nameOf, now: context.clock.now() }),
      ),
    };
  },
});

/** `orch channels update`. */
export const updateChannel = defineCommand({
  examples: [
    'orch channels update ops --name night-shift',
    'orch channels update ops --to https://hooks.example.com/new',
    'orch channels update ops --secret ""',
    "orch channels update ops --events 'agent.*' --events 'rollout.*'",
  ],
  detail: [
    'Members that are not given stay; an empty value removes an optional member. --config replaces them all, and',
    '--events all events of the channel. A new configuration enables a channel that was disabled because its address',
    'was gone.',
  ],
  access: 'admin',
  args: { channel: channelArgument },
  options: { name: text('NAME', 'new name of the channel'), ...configOptions, ...filterOptions },
  run: async (context, { channel: given, name, events, minSeverity, ...input }) => {
    const { signal } = context;
    const api = await context.api();
    const { id } = await findChannel(api, given, signal);
    const { body: before, headers } = await api.callWithHeaders('getChannel', { params: { id }, signal });
    const changes = await givenConfig(context, before.channel_type, input);
    const filter = filterOf(events, minSeverity);
    if (name === undefined && changes === null && Object.keys(filter).length === 0) {
      throw new Fault('usage', 'nothing to change', { hint: 'give --name, or an option with a new value' });
    }
    // The orchestrator replaces masked values by the stored ones.
    const config = changes === null || input.config !== undefined ? changes : { ...before.config, ...changes };
    const body = { name: name ?? null, config: config === null ? null : { ...config }, ...filter };
    const channel = await api.call('updateChannel', { params: { id }, body, ifMatch: headers.etag, signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: channel,
      names: [channel.id],
      view: stack(
        lines(`Changed the channel ${channel.name}.`),
        channelFields(channel, { nameOf, now: context.clock.now() }),
      ),
    };
  },
});

/** `orch channels test`. */
export const testChannel = defineCommand({
  examples: ['orch channels test ops'],
  detail: ['Waits for the answer. A success enables a disabled channel and ends a pause.'],
  access: 'admin',
  args: { channel: channelArgument },
  run: async (context, { channel: given }) => {
    const { signal } = context;
    const api = await context.api();
    const { id, name } = await findChannel(api, given, signal);
    const tested = await api.call('testChannel', { params: { id }, signal });
    const text = `Delivered to ${name}: the answer was ${tested.status_code}, after ${tested.duration_ms} ms.`;
    return { body: tested, names: [id], view: lines(text) };
  },
});

/** `orch channels remove`. */
export const removeChannel = defineCommand({
  examples: ['orch channels remove ops'],
  detail: ['Drops pending deliveries; the notifications themselves stay.'],
  access: 'admin',
  consent: true,
  args: { channel: channelArgument },
  run: async (context, { channel: given }) => {
    const { signal } = context;
    const api = await context.api();
    const { id, name, channel_type: type } = await findChannel(api, given, signal);
    await context.prompt.consent(`Delete the ${type} channel ${name}?`);
    await api.call('removeChannel', { params: { id }, signal });
    return { names: [id], view: lines(`Deleted the channel ${name}.`) };
  },
});

/** Returns the members of a request for the given filter. One empty event stands for all events. */
function filterOf(
  events: readonly string[],
  minSeverity: Channel['min_severity'] | undefined,
): Pick<UpdateChannel, 'events' | 'min_severity'> {
  return {
    ...(events.length === 0
      ? {}
      : { events: events.flatMap((one) => one.split(/[\s,]+/)).filter((one) => one !== '') }),
    ...(minSeverity === undefined ? {} : { min_severity: minSeverity }),
  };
}

/** Finds a channel by ID or unique name. Throws `channel_not_found`, or `usage` for an ambiguous name. */
export async function findChannel(api: ApiClient, given: string, signal: AbortSignal): Promise<Channel> {
  const all = await api.call('listChannels', { signal });
  const byId = all.find(({ id }) => id === given);
  if (byId !== undefined) return byId;
  const named = all.filter(({ name }) => name === given);
  const [only] = named;
  if (only === undefined) {
    throw new Fault('channel_not_found', `there is no channel "${given}"`, {
      hint: 'list the channels with: orch channels list',
    });
  }
  if (named.length === 1) return only;
  throw new Fault('usage', `${named.length} channels have the name "${given}"`, {
    hint: `name one by its ID: ${named.map(({ id }) => id).join(', ')}`,
  });
}

export interface ConfigInput {
  readonly to: string | undefined;
  readonly secret: string | undefined;
  readonly topic: string | undefined;
  readonly token: string | undefined;
  readonly priority: number | undefined;
  readonly config: string | undefined;
}

type Part = Exclude<keyof ConfigInput, 'config'>;

const PARTS: readonly Part[] = ['to', 'secret', 'topic', 'token', 'priority'];

/** Members that hold the address of a channel, which `--to` sets. Other options set the member of their name. */
const ADDRESSES: readonly string[] = ['url', 'webhook_url'];

/** Returns the configuration member that an option sets; undefined if the type has none. */
function memberOf(type: ChannelType, part: Part): string | undefined {
  const names = part === 'to' ? ADDRESSES : [part];
  return names.find((name) => name in CHANNEL_CONFIGS[type].properties);
}

/**
 * Returns the given configuration members, where an empty text removes a member. Returns null if no option was given.
 * Throws `usage` for an option that the type lacks.
 */
export async function givenConfig(
  context: Context,
  type: ChannelType,
  input: ConfigInput,
): Promise<Readonly<Record<string, unknown>> | null> {
  const given = PARTS.filter((part) => input[part] !== undefined);
  if (input.config !== undefined) {
    if (given.length > 0) throw new Fault('usage', '--config and the options for single values exclude each other');
    return readConfigFile(context, input.config);
  }
  const config: Record<string, unknown> = {};
  for (const part of given) {
    const member = memberOf(type, part);
    if (member === undefined) throw new Fault('usage', `${flagOf(part)} is not for channels of the type ${type}`);
    config[member] = input[part] === '' ? null : input[part];
  }
  return given.length === 0 ? null : config;
}

/** Asks for the webhook URL of Discord and Slack, which is a secret. Throws `usage` for other types. */
export async function askedConfig(context: Context, type: ChannelType): Promise<Readonly<Record<string, unknown>>> {
  if (memberOf(type, 'to') !== 'webhook_url') {
    const { required }: { readonly required: readonly string[] } = CHANNEL_CONFIGS[type];
    const parts = PARTS.filter((part) => required.includes(memberOf(type, part) ?? ''));
    const needed = parts.map((part) => flagOf(part)).join(' and ') || '--config';
    throw new Fault('usage', `a channel of the type ${type} needs ${needed}`, {
      hint: 'orch channels add --help shows an example of each type',
    });
  }
  const webhook_url = await context.prompt.secret(`Webhook URL of ${type}:`, 'give it with --to or --config');
  return { webhook_url };
}

async function readConfigFile(context: Context, file: string): Promise<Readonly<Record<string, unknown>>> {
  const source = file === '-' ? await context.readInput() : readTextFile(file);
  try {
    const config: unknown = JSON.parse(source);
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) return { ...config };
  } catch (cause) {
    throw new Fault('usage', `--config ${file} does not hold JSON: ${messageOf(cause)}`, { cause });
  }
  throw new Fault('usage', `--config ${file} must hold a JSON object`);
}

/** The table of channels. */
export const channelTable = (channels: readonly Channel[], now: number): TableView => ({
  kind: 'table',
  columns: CHANNEL_COLUMNS,
  rows: channels.map((channel) => [
    channel.name,
    channel.channel_type,
    textOrNone(targetOf(channel)),
    filterText(channel),
    stateOf(channel, now),
    channel.id,
  ]),
  empty: 'No channels. Make one with: orch channels add NAME --type TYPE',
});

export function channelFields(channel: Channel, { nameOf, now }: { nameOf: NameOfOperator; now: number }): FieldsView {
  const config = Object.entries(channel.config).map(([name, value]): [string, string] => [`  ${name}`, String(value)]);
  return fieldsOf([
    ['Channel', channel.name],
    ['ID', channel.id],
    ['Type', channel.channel_type],
    ...config,
    ['Receives', filterText(channel)],
    ['Created', `${formatTime(channel.created_at)} by ${nameOf(channel.created_by)}`],
    ...(channel.disabled_at === null
      ? []
      : [['Disabled', `${formatTime(channel.disabled_at)}, its address is gone`] as [string, string]]),
    ...(channel.paused_until === null
      ? []
      : [['Paused', [pauseText(channel.paused_until), ', as its receiver asked']] as [string, Span[]]]),
    ['Last attempt', [lastAttempt(channel, now)]],
  ]);
}

export const deliveryTable = (deliveries: readonly Delivery[], timeOf: TimeCell): TableView => ({
  kind: 'table',
  columns: DELIVERY_COLUMNS,
  rows: deliveries.map((one) => [
    one.state === 'failed' ? styled('bad', one.state) : one.state,
    String(one.attempts),
    one.event_type,
    one.summary,
    textOrNone(one.error ?? one.status_code?.toString()),
    timeOf(one.updated_at),
    timeOf(one.next_attempt_at),
  ]),
  empty: 'Nothing was sent to it yet.',
});

/** Returns what a channel receives, such as `drift.*, warning or higher`. */
function filterText({ events, min_severity: least }: Channel): string {
  const severity = least === 'info' ? [] : [least === 'critical' ? least : `${least} or higher`];
  return [...events, ...severity].join(', ') || 'all';
}

function targetOf({ config }: Channel): string {
  const target = config.url ?? config.webhook_url ?? config.topic;
  return typeof target === 'string' ? target : '';
}

/** Returns what the table says of a channel: that it is disabled or paused, else its last attempt. */
function stateOf(channel: Channel, now: number): Span {
  if (channel.disabled_at !== null) return styled('bad', 'disabled');
  return channel.paused_until === null ? lastAttempt(channel, now) : pauseText(channel.paused_until);
}

const pauseText = (until: number): Span => styled('warn', `paused until ${formatTime(until)}`);

function lastAttempt({ last_attempt: last }: Channel, now: number): Span {
  if (last === null) return 'never';
  const age = formatAge(last.at, now);
  return last.delivered ? `${age}, delivered` : styled('warn', `${age}, ${last.error ?? 'failed'}`);
}
