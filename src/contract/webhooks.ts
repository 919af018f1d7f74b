/** The request that notification channels of the type `webhook` send: its schema, its headers, and its part of the OpenAPI document. */

import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import type { JsonObject } from '../kernel/json.js';
import { closed } from '../kernel/schema.js';
import { AuditEventSchema } from './audit.js';
import { ulidOf } from './shapes.js';

export const WebhookMessageSchema = closed({
  id: ulidOf('ID of the notification, the same in every attempt; also in `webhook-id`'),
  event_type: AuditEventSchema.properties.event_type,
  severity: AuditEventSchema.properties.severity,
  summary: Type.String({ maxLength: 512, description: 'The event as one line of text for people' }),
  timestamp: AuditEventSchema.properties.timestamp,
  actor: AuditEventSchema.properties.actor,
  target: AuditEventSchema.properties.target,
  metadata: Type.Record(Type.String(), Type.Unknown(), {
    description: 'IDs, counts and flags that depend on the type',
  }),
});
export type WebhookMessage = Type.Static<typeof WebhookMessageSchema>;

interface HeaderEntry {
  readonly description: string;
  readonly required: boolean;
  readonly example: string;
}

const header = (description: string, example: string, required = true): HeaderEntry => ({
  description,
  required,
  example,
});

/** Headers by the rules of Standard Webhooks. */
export const WEBHOOK_HEADERS = {
  'webhook-id': header('`id` of the message; accept each once', '01JQ2Z6T0V5X8Y4M3N7P9R1S2T'),
  'webhook-timestamp': header('Unix seconds of this attempt; refuse old ones', '1772359200'),
  'webhook-signature': header(
    '`v1,` and the base64 of the HMAC-SHA-256 of `ID.TIMESTAMP.BODY` with the secret of the channel; absent without a secret. ' +
      'The key is the text of the secret, or the decoded bytes after `whsec_`. Here the secret is `a secret`, and the body the example without blanks between its parts',
    'v1,SeWfJ95uOJoVY4WRGkSzA2mThdqX1IynCNu4sGSXelI=',
    false,
  ),
} as const;

export type WebhookHeaders = Partial<Readonly<Record<keyof typeof WEBHOOK_HEADERS, string>>>;

const EXAMPLE = {
  id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
  event_type: 'drift.detected',
  severity: 'warning',
  summary: 'web-01 has drifted in 2 of 7 resources',
  timestamp: '2026-03-01T10:00:00.123Z',
  actor: { id: 'system', name: 'system', type: 'system' },
  target: { id: '3f2a91c4d5e6f708192a3b4c5d6e7f80', name: 'web-01', type: 'agent' },
  metadata: {},
} as const satisfies WebhookMessage;

/** What the orchestrator makes of an answer, by its status. */
const ANSWERS: Readonly<Record<string, string>> = {
  '2XX': 'Received; the body is not used',
  '410': 'The address is gone: the channel is disabled until it is changed or tested',
  '429':
    'Too many messages: the channel pauses for the time in `Retry-After`, at most five minutes, and for a minute without it',
  '5XX': 'Failed: it is sent again later, after the time in `Retry-After` if there is one',
  default: 'Failed: it is sent again later',
};

/** Returns `webhooks` of the OpenAPI document. */
export const describeWebhooks = (write: (schema: TSchema) => JsonObject): JsonObject => ({
  notification: {
    post: {
      operationId: 'receiveNotification',
      summary: 'A notification that a channel of the type webhook sends to its url',
      description:
        'Sent to each channel whose filter the event passes, and for a test of the channel. An attempt that fails is repeated with ' +
        'the same `id`.',
      tags: ['channels'],
      security: [],
      parameters: Object.entries(WEBHOOK_HEADERS).map(([name, { description, required, example }]) => ({
        name,
        in: 'header',
        required,
        description,
        schema: { type: 'string' },
        example,
      })),
      requestBody: {
        required: true,
        content: { 'application/json': { schema: write(WebhookMessageSchema), example: EXAMPLE } },
      },
      responses: Object.fromEntries(Object.entries(ANSWERS).map(([status, description]) => [status, { description }])),
    },
  },
});
