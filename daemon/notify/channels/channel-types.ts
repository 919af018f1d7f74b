/** All channel types: the requests that they send, and their secret members. */

import { createHmac } from 'node:crypto';
import { CHANNEL_CONFIGS, CHANNEL_TYPES, type ChannelType } from '../../../src/contract/channels.js';
import type { WebhookHeaders, WebhookMessage } from '../../../src/contract/webhooks.js';
import { toSeconds, toTimestamp } from '../../../src/kernel/clock.js';
import type { Message } from '../message.js';
import type { Reply } from '../response-reader.js';
import { type ChannelKind, defineChannel } from './channel-kind.js';

/** The channel type `webhook`: sends JSON with Standard Webhooks headers, signed when a secret is configured. */
const webhook = defineChannel({
  schema: CHANNEL_CONFIGS.webhook,
  secrets: ['secret'],
  urls: ['url'],
  secretUrls: [],
  secretMistake: (_name, secret) =>
    secret.startsWith('whsec_') && encodedKey(secret) === null ? 'must be base64 behind whsec_' : null,
  request: ({ url, secret }, message, now) => {
    const body = JSON.stringify(bodyOf(message));
    const stamp: WebhookHeaders = { 'webhook-id': message.id, 'webhook-timestamp': String(toSeconds(now)) };
    if (typeof secret !== 'string') return { url, headers: stamp, body };
    const signed = `${message.id}.${stamp['webhook-timestamp']}.${body}`;
    const signature = createHmac('sha256', keyOf(secret)).update(signed).digest('base64');
    const headers: WebhookHeaders = { ...stamp, 'webhook-signature': `v1,${signature}` };
    return { url, headers, body };
  },
});

const bodyOf = ({
  id,
  event_type,
  severity,
  summary,
  timestamp,
  actor,
  target,
  metadata,
}: Message): WebhookMessage => ({
  id,
  event_type,
  severity,
  summary,
  timestamp: toTimestamp(timestamp),
  actor,
  target,
  metadata,
});

/** Returns the decoded bytes after `whsec_`, or the bytes of the text for any other secret. */
const keyOf = (secret: string): Buffer => encodedKey(secret) ?? Buffer.from(secret);

/** Returns the decoded bytes after `whsec_`; null without the prefix or when they are not base64. */
function encodedKey(secret: string): Buffer | null {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  return encoded === undefined ? null : Buffer.from(encoded, 'base64');
}

/** Colours of Discord's embeds. */
const COLOURS: Readonly<Record<Message['severity'], number>> = {
  info: 0x5b8def,
  notice: 0x3aa675,
  warning: 0xe0a030,
  critical: 0xd64545,
};

/** The channel type `discord`: sends one embed in the colour of the severity. */
const discord = defineChannel({
  schema: CHANNEL_CONFIGS.discord,
  secrets: [],
  urls: [],
  secretUrls: ['webhook_url'],
  request: ({ webhook_url: url }, message) => ({
    url,
    headers: {},
    body: JSON.stringify({
      // Text from an agent must not be able to mention users or roles.
      allowed_mentions: { parse: [] },
      embeds: [
        {
          title: escapeMarkdown(message.event_type),
          description: escapeMarkdown(message.summary),
          color: COLOURS[message.severity],
          timestamp: toTimestamp(message.timestamp),
          footer: { text: `orch · ${message.severity}` },
        },
      ],
    }),
  }),
  pauseOf: discordPause,
});

/** More seconds than Discord asks to wait; larger numbers without a fraction are milliseconds. */
const MOST_SECONDS = 300;

/**
 * Returns the milliseconds that Discord asks to wait. `X-RateLimit-Reset-After` is in seconds. The unit of `retry_after`
 * and `Retry-After` depends on the version in the address, and addresses from Discord's own pages have none: they mean
 * milliseconds.
 */
function discordPause({ headers, body }: Reply): number | null {
  const resetAfter = Number.parseFloat(headers.get('x-ratelimit-reset-after') ?? '');
  if (Number.isFinite(resetAfter)) return resetAfter * 1_000;
  const [, inBody] = /"retry_after"\s*:\s*(\d+(?:\.\d+)?)/.exec(body) ?? [];
  const text = inBody ?? headers.get('retry-after') ?? '';
  if (!/^\d{1,9}(\.\d+)?$/.test(text)) return null;
  const value = Number(text);
  return value > MOST_SECONDS && Number.isInteger(value) ? value : value * 1_000;
}

/**
 * Escapes Markdown, links, mentions and emoji. Characters that are special only at the beginning of a line are escaped
 * only there.
 */
const escapeMarkdown = (text: string): string =>
  text.replace(/[\\`*_~|<>[\]()@:]/g, '\\$&').replace(/^(\s*)([-+#]|\d+(?=\.))/, '$1\\$2');

/** The channel type `slack`: sends plain-text blocks, and a line of text for clients without blocks. */
const slack = defineChannel({
  schema: CHANNEL_CONFIGS.slack,
  secrets: [],
  urls: [],
  secretUrls: ['webhook_url'],
  request: ({ webhook_url: url }, { severity, summary, event_type, timestamp }) => {
    const line = escapeText(summary);
    return {
      url,
      headers: {},
      body: JSON.stringify({
        text: `[${severity}] ${line}`,
        mrkdwn: false,
        link_names: false,
        unfurl_links: false,
        unfurl_media: false,
        blocks: [
          { type: 'section', text: plain(line) },
          { type: 'context', elements: [plain(`${severity} · ${event_type} · ${toTimestamp(timestamp)}`)] },
        ],
      }),
    };
  },
});

const plain = (text: string) => ({ type: 'plain_text', text, emoji: false });

/** Escapes the three characters that Slack treats as special even in plain text (links, mentions, `<!channel>`). */
const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** ntfy's server without a configured one. */
const PUBLIC_SERVICE = 'https://ntfy.sh/';

/** ntfy priorities, from 1 to 5; ntfy's default is 3. */
const PRIORITIES: Readonly<Record<Message['severity'], number>> = { info: 2, notice: 3, warning: 4, critical: 5 };

/** Emoji names, which ntfy renders in front of the title; it shows other tags below the message. */
const TAGS: Readonly<Record<Message['severity'], string>> = {
  info: 'information_source',
  notice: 'bell',
  warning: 'warning',
  critical: 'rotating_light',
};

/** The channel type `ntfy`: publishes as JSON, because HTTP headers cannot carry every character. */
const ntfy = defineChannel({
  schema: CHANNEL_CONFIGS.ntfy,
  secrets: ['token'],
  // Without a token, everyone who knows the topic can read it.
  hidden: ['topic'],
  urls: [],
  servers: ['url'],
  secretUrls: [],
  standardUrl: PUBLIC_SERVICE,
  secretMistake: (_name, token) => (headerText(token) === token ? null : 'must be visible ASCII without blanks'),
  request: ({ topic, url, token, priority }, message) => ({
    url: url ?? PUBLIC_SERVICE,
    headers: { authorization: typeof token === 'string' ? `Bearer ${headerText(token)}` : undefined },
    body: JSON.stringify({
      topic,
      title: `orch: ${message.event_type}`,
      message: message.summary,
      priority: priority ?? PRIORITIES[message.severity],
      tags: [TAGS[message.severity], message.severity],
    }),
  }),
});

/** Returns the visible ASCII characters of a text. A stored token with other characters must not break the request. */
const headerText = (text: string): string => text.replace(/[^\x21-\x7e]/g, '');

export const CHANNEL_KINDS: Readonly<Record<ChannelType, ChannelKind>> = { webhook, discord, slack, ntfy };

/** Returns the channel type of a stored row. Throws for an unknown type. */
export function typeOf({ channel_type: name }: { readonly channel_type: string }): ChannelType {
  const type = CHANNEL_TYPES.find((candidate) => candidate === name);
  if (type === undefined) throw new Error(`the store holds a channel of the unknown type ${name}`);
  return type;
}
