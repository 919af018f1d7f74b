/** The channel type `ntfy`: publishes as JSON, because HTTP headers cannot carry every character. */
import { NtfyConfigSchema } from '../../../src/contract/channels.js';
import type { Message } from '../message.js';
import { defineChannel } from './channel-kind.js';

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

export const ntfy = defineChannel({
  schema: NtfyConfigSchema,
  secrets: ['token'],
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
