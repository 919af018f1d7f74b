/** One route as an OpenAPI operation. */
import type { TSchema } from 'typebox';
import type { FaultCode } from '../kernel/fault-code.js';
import type { JsonObject } from '../kernel/json.js';
import { FAULTS, generalFaults } from './faults.js';
import { headersOfAnswer } from './openapi-headers.js';
import type { SharedResponses } from './openapi-responses.js';
import type { WriteSchema } from './openapi-schema.js';
import type { Access, RouteSpec } from './route.js';

const WHO: Readonly<Record<Access, string>> = {
  public: 'Open to everybody.',
  viewer: 'For every operator.',
  operator: 'For operators with the role operator or admin.',
  admin: 'For operators with the role admin.',
};

const STATUS_TEXT: Readonly<Record<string, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Begun',
  204: 'Done; there is no body',
};

const LINES = { type: 'string', description: 'One JSON value a line, each as `x-line` says' };

export function describeOperation(route: RouteSpec, write: WriteSchema, shared: SharedResponses): JsonObject {
  const parameters = parametersOf(route, write);
  return {
    operationId: route.id,
    summary: route.summary,
    description: WHO[route.access],
    tags: [route.tag],
    security: route.access === 'public' ? [] : [{ bearer: [] }],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body ? { requestBody: bodyOf(route, route.body, write) } : {}),
    responses: { ...answersOf(route, write), ...problemsOf(route, write, shared) },
  };
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'A fresh random value: the same key within 24 hours returns the first answer instead of doing it again',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

const ONE_TIME_KEY = {
  ...IDEMPOTENCY_KEY,
  description:
    'A fresh random value: the same key within 24 hours is a conflict, because the answer holds a secret and is not kept',
};

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  in: 'header',
  description: 'ID of the last event that was received: the stream goes on behind it',
  schema: { type: 'string' },
};

function parametersOf(
  { access, events, method, params, query, secretAnswer }: RouteSpec,
  write: WriteSchema,
): readonly JsonObject[] {
  return [
    ...Object.entries(membersOf(params)).map(([name, schema]) => ({
      name,
      in: 'path',
      required: true,
      schema: write(schema),
    })),
    ...Object.entries(membersOf(query)).map(([name, schema]) => ({
      name,
      in: 'query',
      required: requiredOf(query).includes(name),
      schema: write(withoutNull(schema)),
    })),
    ...(method !== 'GET' && access !== 'public' ? [secretAnswer ? ONE_TIME_KEY : IDEMPOTENCY_KEY] : []),
    ...(events ? [LAST_EVENT_ID] : []),
  ];
}

function bodyOf(route: RouteSpec, body: TSchema, write: WriteSchema): JsonObject {
  const required = route.bodyOptional !== true && requiredOf(body).length > 0;
  return { required, content: { 'application/json': { schema: write(body) } } };
}

function answersOf(route: RouteSpec, write: WriteSchema): JsonObject {
  // As the schema of the body it would make generated clients take the whole answer for one line.
  const lines: JsonObject = route.stream
    ? { 'application/x-ndjson': { schema: LINES, 'x-line': write(route.stream) } }
    : {};
  const answers = Object.entries(route.answers).map(([status, schema]) => {
    const description = STATUS_TEXT[status] ?? 'Done';
    const headers = headersOfAnswer(route);
    if (schema === null) return [status, { description, headers }];
    // OpenAPI 3.1 has no place for it; 3.2 calls it itemSchema.
    const item: JsonObject = route.events ? { 'x-event-data': write(route.events) } : {};
    const content = { [route.mediaType ?? 'application/json']: { schema: write(schema), ...item } };
    return [status, { description, headers, content: status === '200' ? { ...content, ...lines } : content }];
  });
  return Object.fromEntries(answers);
}

/** One response for each status. */
function problemsOf(route: RouteSpec, write: WriteSchema, shared: SharedResponses): JsonObject {
  const byStatus = new Map<number, Set<FaultCode>>();
  for (const code of [...route.faults, ...generalFaults(route)]) {
    const status = route.statuses?.[code] ?? FAULTS[code].status;
    byStatus.set(status, (byStatus.get(status) ?? new Set()).add(code));
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      shared.problem({ route, status, codes: [...codes], write }),
    ]),
  );
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly TSchema[];
  readonly type?: unknown;
}

const membersOf = (schema: ObjectSchema | undefined): Readonly<Record<string, TSchema>> => schema?.properties ?? {};

const requiredOf = (schema: ObjectSchema | undefined): readonly string[] => schema?.required ?? [];

/** There is no null in a URL: what may be null may be left out. */
function withoutNull(schema: TSchema): TSchema {
  const { anyOf }: ObjectSchema = schema;
  const branches = anyOf?.filter((branch: ObjectSchema) => branch.type !== 'null') ?? [];
  return (branches.length === 1 ? branches[0] : undefined) ?? schema;
}
