/** The type `ntfy`: a message published as JSON, which holds every character, as headers would not. */
import { NtfyConfigSchema } from '../../../src/contract/channels.js';
import type { Message } from '../message.js';
import { defineChannel } from './channel-kind.js';

const PUBLIC_SERVICE = 'https://ntfy.sh/';

/** From 1 to 5; 3 is the standard. */
const PRIORITIES: Readonly<Record<Message['severity'], number>> = { info: 2, notice: 3, warning: 4, critical: 5 };

/** Names of emoji stand in front of the title, others below the message. */
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

/** A token with anything else in it is none, and must not break the request. */
const headerText = (text: string): string => text.replace(/[^\x21-\x7e]/g, '');
