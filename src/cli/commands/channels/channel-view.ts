/** How channels and their deliveries are shown. */
import type { Channel, Delivery } from '../../../contract/channels.js';
import { formatAge, formatTime, orNone } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { type FieldsView, fieldsOf, type Span, styled, type TableView } from '../../view.js';

export const channelTable = (channels: readonly Channel[], now: number): TableView => ({
  kind: 'table',
  columns: [
    { title: 'CHANNEL', whole: true },
    { title: 'TYPE' },
    { title: 'SENDS TO' },
    { title: 'LAST ATTEMPT' },
    { title: 'ID', whole: true, wide: true },
  ],
  rows: channels.map((channel) => [
    channel.name,
    channel.channel_type,
    orNone(targetOf(channel)),
    channel.disabled_at === null ? lastAttempt(channel, now) : styled('bad', 'disabled'),
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
    ['Created', `${formatTime(channel.created_at)} by ${nameOf(channel.created_by)}`],
    ...(channel.disabled_at === null
      ? []
      : [['Disabled', `${formatTime(channel.disabled_at)}, its address is gone`] as [string, string]]),
    ['Last attempt', [lastAttempt(channel, now)]],
  ]);
}

export const deliveryTable = (deliveries: readonly Delivery[], now: number): TableView => ({
  kind: 'table',
  columns: [
    { title: 'STATE', whole: true },
    { title: 'TRIES', right: true },
    { title: 'EVENT', whole: true },
    { title: 'SUMMARY' },
    { title: 'ANSWER' },
    { title: 'CHANGED' },
    { title: 'NEXT TRY', wide: true },
  ],
  rows: deliveries.map((one) => [
    one.state === 'failed' ? styled('bad', one.state) : one.state,
    String(one.attempts),
    one.event_type,
    one.summary,
    orNone(one.error ?? one.status_code?.toString()),
    formatAge(one.updated_at, now),
    orNone(formatTime(one.next_attempt_at)),
  ]),
  empty: 'Nothing was sent to it yet.',
});

function targetOf({ config }: Channel): string {
  const target = config.url ?? config.webhook_url ?? config.topic;
  return typeof target === 'string' ? target : '';
}

function lastAttempt({ last_attempt: last }: Channel, now: number): Span {
  if (last === null) return 'never';
  const age = formatAge(last.at, now);
  return last.delivered ? `${age}, delivered` : styled('warn', `${age}, ${last.error ?? 'failed'}`);
}
