/** The channel type `webhook`: sends JSON with Standard Webhooks headers, signed when a secret is configured. */
import { createHmac } from 'node:crypto';
import { WebhookConfigSchema } from '../../../src/contract/channels.js';
import { toSeconds, toTimestamp } from '../../../src/kernel/clock.js';
import type { Message } from '../message.js';
import { defineChannel } from './channel-kind.js';

export const webhook = defineChannel({
  schema: WebhookConfigSchema,
  secrets: ['secret'],
  urls: ['url'],
  secretUrls: [],
  secretMistake: (_name, secret) =>
    secret.startsWith('whsec_') && encodedKey(secret) === null ? 'must be base64 behind whsec_' : null,
  request: ({ url, secret }, message, now) => {
    const body = JSON.stringify(bodyOf(message));
    const stamp = { 'webhook-id': message.id, 'webhook-timestamp': String(toSeconds(now)) };
    if (typeof secret !== 'string') return { url, headers: stamp, body };
    const signed = `${message.id}.${stamp['webhook-timestamp']}.${body}`;
    const signature = createHmac('sha256', keyOf(secret)).update(signed).digest('base64');
    return { url, headers: { ...stamp, 'webhook-signature': `v1,${signature}` }, body };
  },
});

const bodyOf = ({ id, event_type, severity, summary, timestamp, actor, target, metadata }: Message) => ({
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
