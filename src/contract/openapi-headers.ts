/** The headers of answers that programs go by, in the OpenAPI document. */
import type { JsonObject } from '../kernel/json.js';
import type { RouteSpec } from './route.js';

const text = { type: 'string' };

/** For `components`. */
export const COMPONENT_HEADERS: JsonObject = {
  RequestId: {
    description: 'Names the request in the log of the orchestrator and in the audit log',
    required: true,
    schema: text,
  },
  Challenge: { description: 'How to log in: with a bearer token', required: true, schema: text },
  RetryAfter: {
    description: 'Seconds to wait before the next attempt, where it is known',
    schema: { type: 'integer', format: 'int64', minimum: 0 },
  },
  Replayed: {
    description:
      'There when the request was not done, because this is the answer of the first one with its Idempotency-Key',
    schema: { enum: ['true'] },
  },
};

const reference = (name: string): JsonObject => ({ $ref: `#/components/headers/${name}` });

const ALWAYS: JsonObject = { 'X-Request-Id': reference('RequestId') };

const replayed = ({ access, method }: Pick<RouteSpec, 'access' | 'method'>): JsonObject =>
  method !== 'GET' && access !== 'public' ? { 'Idempotent-Replayed': reference('Replayed') } : {};

/** Of successful answers. */
export const headersOfAnswer = ({ access, method, headers = {} }: RouteSpec): JsonObject => ({
  ...ALWAYS,
  ...replayed({ access, method }),
  ...Object.fromEntries(Object.entries(headers).map(([name, description]) => [name, { description, schema: text }])),
});

export const headersOfProblem = (route: RouteSpec, status: number): JsonObject => ({
  ...ALWAYS,
  // What failed here is not kept.
  ...(status < 500 ? replayed(route) : {}),
  ...(status === 401 ? { 'WWW-Authenticate': reference('Challenge') } : {}),
  ...(status === 429 || status === 503 ? { 'Retry-After': reference('RetryAfter') } : {}),
});
