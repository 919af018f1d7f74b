/** The bodies that each type of channel sends, also those with texts that an agent has made up. */
import { describe, expect, it } from 'vitest';
import { CHANNEL_KINDS } from '../../daemon/notify/channels/channel-types.js';
import { type Message, messageOf } from '../../daemon/notify/message.js';
import type { ChannelType } from '../../src/contract/channels.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { DescribedApi } from '../api/described-api.js';

const HOSTILE =
  '@everyone <!channel> <@U1> *b* _i_ ~s~ `c` [x](http://evil.example) :boom: & "q"\n# head\u202e\u0007\u2028 \ud800 ünï';

const PARTY = { id: 'b'.repeat(32), name: 'web-01', type: 'agent' } as const;

const message = (summary: string, metadata: JsonObject = {}) =>
  messageOf({
    id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    type: 'agent.duplicate_identity',
    summary,
    timestamp: Date.parse('2026-03-01T12:00:00Z'),
    actor: PARTY,
    target: { ...PARTY, name: HOSTILE },
    metadata,
  });

const CONFIGS: Readonly<Record<ChannelType, object>> = {
  webhook: { url: 'https://hooks.example.com/orch' },
  discord: { webhook_url: 'https://discord.com/api/webhooks/1/token' },
  slack: { webhook_url: 'https://hooks.slack.com/services/T/B/x' },
  ntfy: { topic: 'fleet', token: 'tk_ü\r\nx: y' },
};

const sent = (type: ChannelType, summary: string, metadata?: JsonObject) => {
  const outgoing = CHANNEL_KINDS[type].read(CONFIGS[type]).request(message(summary, metadata), 0);
  return { ...outgoing, body: JSON.parse(outgoing.body) };
};

/** A parameter with its example. */
interface Shown {
  readonly example?: string;
}

/** Everything invisible that steers. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

describe('a hostile summary', () => {
  it('is one harmless line in a webhook', () => {
    const { body } = sent('webhook', HOSTILE);
    expect(body.summary).toBe(
      '@everyone <!channel> <@U1> *b* _i_ ~s~ `c` [x](http://evil.example) :boom: & "q" # head ünï',
    );
    expect(body.target.name).not.toMatch(INVISIBLE);
  });

  it('mentions no one and formats nothing in Discord', () => {
    const { body } = sent('discord', HOSTILE);
    expect(body.allowed_mentions).toEqual({ parse: [] });
    expect(body.embeds).toHaveLength(1);
    const [{ title, description, color, timestamp }] = body.embeds;
    expect(title).toBe('agent.duplicate\\_identity');
    expect(description).toMatch(/^\\@everyone \\<!channel\\> \\<\\@U1\\> \\\*b\\\* \\_i\\_ \\~s\\~ \\`c\\` /);
    expect(description).toContain('\\[x\\]\\(http\\://evil.example\\) \\:boom\\:');
    expect(description).not.toMatch(INVISIBLE);
    expect({ color, timestamp }).toEqual({ color: 0xd64545, timestamp: '2026-03-01T12:00:00.000Z' });
    expect(sent('discord', '# big').body.embeds[0].description).toBe('\\# big');
    expect(sent('discord', '1. item').body.embeds[0].description).toBe('\\1. item');
  });

  it('is plain text in Slack, with a plain fall-back', () => {
    const { body } = sent('slack', HOSTILE);
    expect(body.text).toMatch(/^\[critical\] @everyone &lt;!channel&gt; &lt;@U1&gt; \*b\*/);
    expect(body).toMatchObject({ mrkdwn: false, link_names: false, unfurl_links: false });
    const texts = body.blocks.flatMap(
      (block: { text?: object; elements?: object[] }) => block.elements ?? [block.text],
    );
    for (const text of texts) {
      expect(text.type).toBe('plain_text');
      expect(text.text).not.toMatch(/[<>]/);
      expect(text.text).not.toMatch(INVISIBLE);
    }
  });

  it('is a message in ntfy, whose token cannot break out of its header', () => {
    const { url, headers, body } = sent('ntfy', HOSTILE);
    expect(url).toBe('https://ntfy.sh/');
    expect(headers).toEqual({ authorization: 'Bearer tk_x:y' });
    expect(body).toMatchObject({ topic: 'fleet', title: 'orch: agent.duplicate_identity', priority: 5 });
    expect(body.tags).toEqual(['rotating_light', 'critical']);
    expect(body.message).toContain('ünï');
    expect(body.message).not.toMatch(INVISIBLE);
  });
});

describe('a body', () => {
  it.each(['webhook', 'discord', 'slack', 'ntfy'] as const)('of %s stays below 20 kB', (type) => {
    const ids = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`${'k'.repeat(800)}${index}`, index]));
    const { body } = sent(type, '<&>'.repeat(5000), ids);
    expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThanOrEqual(20_000);
  });

  it('has a summary of 512 characters at most', () => {
    expect(sent('webhook', 'x'.repeat(600)).body.summary).toBe(`${'x'.repeat(511)}…`);
    expect(sent('webhook', `${'x'.repeat(510)}💥💥`).body.summary).toBe(`${'x'.repeat(510)}…`);
  });

  it('has IDs and counts of the metadata only', () => {
    const { body } = sent('webhook', 'x', {
      operation_id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
      key_id: '0123456789abcdef',
      count: 3,
      disabled: false,
      summary: { failed: 1 },
      hostname: 'evil',
      reason: 'script_failed',
      modules: ['site'],
      nested: { name: 'evil' },
      nothing: null,
    });
    expect(body.metadata).toEqual({
      operation_id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
      key_id: '0123456789abcdef',
      count: 3,
      disabled: false,
      summary: { failed: 1 },
    });
  });

  it('of ntfy takes the priority and the server of the configuration', () => {
    const config = { topic: 'fleet', url: 'https://push.example.com', priority: 1 };
    const { url, headers, body } = CHANNEL_KINDS.ntfy.read(config).request(message('x'), 0);
    expect({ url, authorization: headers.authorization }).toEqual({ url: config.url, authorization: undefined });
    expect(JSON.parse(body).priority).toBe(1);
  });
});

describe('a webhook', () => {
  const api = new DescribedApi(JSON.parse(JSON.stringify(openApiDocument(CONTRACT, { version: '0.1.0' }))));
  const { url } = CONFIGS.webhook as { readonly url: string };

  it.each([
    ['signed', { url, secret: 'whsec_c2VjcmV0' }],
    ['not signed', { url }],
  ])('is sent as the OpenAPI document describes it: %s', (_what, config) => {
    const { headers, body } = CHANNEL_KINDS.webhook.read(config).request(message(HOSTILE, { count: 2 }), 0);
    expect(api.webhookProblemsOf('notification', headers, body)).toEqual([]);
    expect('webhook-signature' in headers).toBe('secret' in config);
  });

  it('looks like its example, whose signature is that of the document', () => {
    const { requestBody, parameters = [] } = api.document.webhooks.notification?.post ?? {};
    const { example } = (requestBody?.content['application/json'] ?? {}) as { example?: { timestamp: string } };
    const shown = Object.fromEntries(parameters.map((parameter) => [parameter.name, (parameter as Shown).example]));
    expect(example).toBeDefined();
    const sentAgain = { ...message(''), ...example, timestamp: Date.parse(example?.timestamp ?? '') } as Message;
    const now = Number(shown['webhook-timestamp']) * 1000;
    const { headers, body } = CHANNEL_KINDS.webhook.read({ url, secret: 'a secret' }).request(sentAgain, now);
    expect(JSON.parse(body)).toEqual(example);
    expect(headers).toEqual(shown);
  });
});
