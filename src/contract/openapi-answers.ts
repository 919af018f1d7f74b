/** Error answers and headers of the OpenAPI document. */
import type { FaultCode } from '../kernel/fault.js';
import { canonicalJson, type JsonObject } from '../kernel/json.js';
import { FAULTS } from './faults.js';
import type { WriteSchema } from './openapi-schema.js';
import { deprecationHeaders, isLocated, type RouteSpec } from './route.js';
import { ProblemSchema } from './shapes.js';

/** Error answers, shared under `components/responses`. */
interface ProblemOptions {
  readonly route: RouteSpec;
  readonly status: number;
  /** Fault codes with this status at the route. */
  readonly codes: readonly FaultCode[];
  readonly write: WriteSchema;
}

export class SharedResponses {
  private readonly responses: Record<string, JsonObject> = {};
  private readonly names = new Map<string, string>();

  /** Returns a reference to the answer with this status and these codes. */
  problem(options: ProblemOptions): JsonObject {
    const response = problemOf(options);
    const key = canonicalJson(response);
    const name = this.names.get(key) ?? this.freeName(options);
    this.names.set(key, name);
    this.responses[name] = response;
    return { $ref: `#/components/responses/${name}` };
  }

  definitions(): JsonObject {
    return this.responses;
  }

  /** Names an answer after its only code or its status, and after its first operation when the name is taken. */
  private freeName({ route, status, codes }: ProblemOptions): string {
    const [code] = codes;
    const name = codes.length === 1 && code !== undefined ? pascalCase(code) : (STATUS_NAMES[status] ?? 'Failed');
    return name in this.responses ? `${name}Of${pascalCase(route.id)}` : name;
  }
}

/** Names of answers by their status, for those with several codes. Generated clients have types of these names. */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  500: 'Broken',
  503: 'Unavailable',
};

/** Converts `listAgents` or `rate_limited` to the name of a type. */
export const pascalCase = (text: string): string =>
  text.replace(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase());

function problemOf(options: ProblemOptions): JsonObject {
  const { codes, write } = options;
  const sorted = [...codes].sort();
  const code = { type: 'string', enum: sorted };
  return {
    description: sorted.map((name) => `${FAULTS[name].title} (\`${name}\`)`).join(', '),
    headers: headersOfProblem(options),
    content: {
      'application/problem+json': { schema: { allOf: [write(ProblemSchema), { properties: { code } }] } },
    },
  };
}

const text = { type: 'string' };

/** Headers of answers, for `components`. */
export const COMPONENT_HEADERS: JsonObject = {
  RequestId: {
    description: 'Names the request in the log of the orchestrator and in the audit log',
    required: true,
    schema: text,
  },
  Challenge: { description: 'How to log in: with a bearer token', required: true, schema: text },
  RetryAfter: {
    description:
      'Seconds after which another attempt makes sense: what was in the way passes by itself. Absent where waiting does not help',
    schema: { type: 'integer', format: 'int64', minimum: 1 },
  },
  EntityTag: {
    description:
      'Tag of what a write can replace, for its If-Match. What the orchestrator adds by itself, such as matched agents, does not change it',
    schema: text,
  },
  Location: {
    description: 'Path of the created record, or of the record that tells how far the begun work has come',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
  },
  Replayed: {
    description:
      'There when the request was not done, because this is the answer of the first one with its Idempotency-Key',
    schema: { enum: ['true'] },
  },
};

const reference = (name: string): JsonObject => ({ $ref: `#/components/headers/${name}` });

const DEPRECATION_HEADERS: Readonly<Record<string, string>> = {
  Deprecation: 'Moment since which the operation is deprecated: `@` and Unix seconds (RFC 9745)',
  Sunset: 'Earliest moment at which the operation goes away (RFC 8594)',
};

/** Headers of every answer of a route. */
const general = ({ deprecated }: Pick<RouteSpec, 'deprecated'>): JsonObject => ({
  'X-Request-Id': reference('RequestId'),
  ...Object.fromEntries(
    Object.keys(deprecationHeaders(deprecated)).map((name) => [
      name,
      { description: DEPRECATION_HEADERS[name] ?? name, schema: text },
    ]),
  ),
});

const replayed = ({ access, method }: Pick<RouteSpec, 'access' | 'method'>): JsonObject =>
  method !== 'GET' && access !== 'public' ? { 'Idempotent-Replayed': reference('Replayed') } : {};

/** Returns the headers of a successful answer with a status. */
export const headersOfAnswer = (
  { access, answers, deprecated, location, method, headers = {}, tagged }: RouteSpec,
  status: number,
): JsonObject => ({
  ...general({ deprecated }),
  ...(location !== undefined && isLocated(status) ? { Location: reference('Location') } : {}),
  ...(tagged && !(204 in answers) ? { ETag: reference('EntityTag') } : {}),
  ...replayed({ access, method }),
  ...Object.fromEntries(Object.entries(headers).map(([name, description]) => [name, { description, schema: text }])),
});

/** Faults that know in some cases when another attempt makes sense, beside those that always do. */
const SOMETIMES_PASSING: ReadonlySet<FaultCode> = new Set([
  'agent_not_connected',
  'cancelled',
  'outside_window',
  'store_unavailable',
]);

const mayPass = (code: FaultCode): boolean => FAULTS[code].retryAfter !== undefined || SOMETIMES_PASSING.has(code);

const headersOfProblem = ({ route, status, codes }: ProblemOptions): JsonObject => ({
  ...general(route),
  // Answers of 500 and above are not stored for their idempotency key.
  ...(status < 500 ? replayed(route) : {}),
  ...(status === 401 ? { 'WWW-Authenticate': reference('Challenge') } : {}),
  ...(codes.some(mayPass) ? { 'Retry-After': reference('RetryAfter') } : {}),
});
