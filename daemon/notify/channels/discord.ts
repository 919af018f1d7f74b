/** The channel type `discord`: sends one embed in the colour of the severity. */
import { HookConfigSchema } from '../../../src/contract/channels.js';
import { toTimestamp } from '../../../src/kernel/clock.js';
import type { Message } from '../message.js';
import { defineChannel } from './channel-kind.js';

const COLOURS: Readonly<Record<Message['severity'], number>> = {
  info: 0x5b8def,
  notice: 0x3aa675,
  warning: 0xe0a030,
  critical: 0xd64545,
};

export const discord = defineChannel({
  schema: HookConfigSchema,
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
});

/**
 * Escapes Markdown, links, mentions and emoji. Characters that are special only at the beginning of a line are escaped
 * only there.
 */
const escapeMarkdown = (text: string): string =>
  text.replace(/[\\`*_~|<>[\]()@:]/g, '\\$&').replace(/^(\s*)([-+#]|\d+(?=\.))/, '$1\\$2');
