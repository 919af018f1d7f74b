/** The channel type `slack`: sends plain-text blocks, and a line of text for clients without blocks. */
import { HookConfigSchema } from '../../../src/contract/channels.js';
import { toTimestamp } from '../../../src/kernel/clock.js';
import { defineChannel } from './channel-kind.js';

export const slack = defineChannel({
  schema: HookConfigSchema,
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
