/** Writes the contract as an OpenAPI 3.1 document, from the same schemas that validate requests and answers. */
import type { TSchema } from 'typebox';
import type { FaultCode } from '../kernel/fault.js';
import type { JsonObject, JsonValue } from '../kernel/json.js';
import { API_BASE } from './contract.js';
import { EXAMPLES } from './examples.js';
import { FAULTS, generalFaults } from './faults.js';
import { NAMED_RIGHTS } from './named-rights.js';
import { COMPONENT_HEADERS, headersOfAnswer, pascalCase, SharedResponses } from './openapi-answers.js';
import {
  ANSWER_SCHEMAS,
  type NamedSchemas,
  REQUEST_SCHEMAS,
  schemaWriter,
  type WriteSchema,
} from './openapi-schema.js';
import { rolesWith } from './rights.js';
import { type Access, deprecationText, type Example, grantUse, type RouteSpec, takesIfMatch } from './route.js';
import { describeWebhooks } from './webhooks.js';

interface OpenApiOptions {
  /** Version in the document. */
  readonly version: string;
}

const DESCRIPTION = `Manages a fleet of agents. Log in with \`POST ${API_BASE}/auth/challenge\` and \`POST ${API_BASE}/auth/verify\`, \
then send the token as \`Authorization: Bearer TOKEN\`. Failures are problem documents (RFC 9457) with a stable \`code\`. \
Times are Unix seconds (UTC) where they are integers and RFC 3339 where they are strings. A member that may be left out may \
be null, which means the same. Every answer has an \`X-Request-Id\`. \
Lists with a \`limit\` come in pages; the \`Link\` header names the next one. Lists without it are whole. The search of recordings has \`truncated\` instead. Most answers of more than 1,024 characters are \
compressed for clients that accept gzip; those that may hold secrets are not. Requests with unknown members are refused; answers may \
have further members, which a client has to ignore.`;

const SECURITY = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: `Session token of POST ${API_BASE}/auth/verify`,
  },
};

export function openApiDocument(
  contract: Readonly<Record<string, RouteSpec>>,
  { version }: OpenApiOptions,
): JsonObject {
  const routes = Object.values(contract);
  const schemas = schemaWriter(namedSchemas(routes));
  const problems = new SharedResponses();
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of routes) {
    const path = API_BASE + route.path;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route, schemas, problems) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'orch management API',
      version,
      description: DESCRIPTION,
      contact: { name: 'The admins of this orchestrator' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The orchestrator that serves this document' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name, description: TAGS[name] ?? name })),
    paths,
    webhooks: describeWebhooks(schemas.answer),
    components: {
      schemas: schemas.definitions(),
      responses: problems.definitions(),
      headers: COMPONENT_HEADERS,
      securitySchemes: SECURITY,
    },
  };
}

/** Names bodies that have no name after their operation, so that generated clients have types for them. */
function namedSchemas(routes: readonly RouteSpec[]): NamedSchemas {
  const requests = namer(REQUEST_SCHEMAS);
  const answers = namer(ANSWER_SCHEMAS);
  for (const route of routes) {
    const name = pascalCase(route.id);
    requests.add(`${name}Request`, route.body);
    if (route.mediaType === undefined) {
      const [first, ...others] = Object.entries(route.answers);
      answers.add(`${name}Response`, first?.[1]);
      for (const [status, schema] of others) answers.add(`${name}${STATUS_TEXT[status] ?? 'Other'}Response`, schema);
    }
    answers.add(`${name}Line`, route.stream);
    answers.add(`${name}Event`, route.events);
  }
  return { requests: requests.named, answers: answers.named };
}

function namer(known: Readonly<Record<string, TSchema>>) {
  const named: Record<string, TSchema> = { ...known };
  const seen = new Set(Object.values(known));
  const add = (name: string, schema: TSchema | null | undefined): void => {
    if (!schema || seen.has(schema)) return;
    seen.add(schema);
    named[name] = schema;
  };
  return { named, add };
}

/** Returns who may call a route. */
function callersOf(access: Access): string {
  if (access === 'public') return 'Open to everybody.';
  if (access === 'admin') return 'For operators with the role admin.';
  if (access === 'read') return 'For every operator.';
  if (NAMED_RIGHTS.has(access)) {
    return `For operators with the role admin, and for those whom a grant gives the right \`${access}\` by its name.`;
  }
  const roles = rolesWith(access).toReversed();
  return `For operators with the right \`${access}\`, which the roles ${roles.slice(0, -1).join(', ')} and ${roles.at(-1)} have.`;
}

/** What grants mean for the calls of an operator who has them. */
const GRANT_TEXTS: Readonly<Record<ReturnType<typeof grantUse>, string | null>> = {
  machine: 'Grants have to give it on this machine.',
  filtered: 'Grants limit it to their machines.',
  shared: null,
  unlimited: 'Not for operators with grants.',
};

/** Descriptions of tags. */
const TAGS: Readonly<Record<string, string>> = {
  agents: 'Machines with an agent: approval, names, facts and upgrades.',
  assignments: 'Modules for every agent that a selector matches.',
  audit: 'The signed log of everything that was done.',
  auth: 'Login by challenge and signature, and the session.',
  channels: 'Receivers of notifications.',
  discovery: 'Packets that tell waiting agents where the orchestrator is.',
  drift: 'Differences between machines and their last apply.',
  'enrolment tokens': 'Tokens with which new machines enrol.',
  maintenance: 'Windows that pause automatic work, or permit applies.',
  metrics: 'Measurements of machines, and counters of the orchestrator.',
  modules: 'Declarative lists of resources, and the files beside them.',
  notifications: 'Events that need attention.',
  operators: 'People and pipelines with a login.',
  rollouts: 'Plans and applies on many agents.',
  runs: 'Plans, applies and health checks on one agent.',
  secrets: 'Write-only values that modules name.',
  state: 'What was applied, and the operations that did it.',
  status: 'Health, and documents about the API.',
  tags: 'Tags of agents, which selectors and modules use.',
  terminal: 'Remote terminals, commands on agents, and their recordings.',
  forward: 'Connections through agents to targets, and copies of files, that their settings permit.',
  values: 'Values of inputs of modules.',
};

const STATUS_TEXT: Readonly<Record<string, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Begun',
  204: 'Done; there is no body',
};

/** Describes a stream as text: generated clients would parse the whole answer as one value otherwise. */
const linesOf = (line: JsonObject): JsonObject => ({
  schema: {
    type: 'string',
    description: 'One JSON value a line, each with the schema in `contentSchema`',
    contentMediaType: 'application/x-ndjson',
    contentSchema: line,
  },
  'x-line': line,
});

/** Returns the keywords with the schema of what the events in a text hold. */
const eventsOf = (event: TSchema, gap: TSchema | undefined, write: WriteSchema): JsonObject => ({
  contentMediaType: 'text/event-stream',
  contentSchema: gap === undefined ? write(event) : { anyOf: [write(event), write(gap)] },
});

interface Writers {
  readonly request: WriteSchema;
  readonly answer: WriteSchema;
}

function describeOperation(route: RouteSpec, { request, answer }: Writers, shared: SharedResponses): JsonObject {
  const example = EXAMPLES[route.id];
  const parameters = parametersOf(route, request, example);
  return {
    operationId: route.id,
    summary: route.summary,
    description: descriptionOf(route),
    ...(route.deprecated ? { deprecated: true } : {}),
    tags: [route.tag],
    security: route.access === 'public' ? [] : [{ bearer: [] }],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body ? { requestBody: bodyOf(route, route.body, request, example) } : {}),
    responses: { ...answersOf(route, answer, example), ...problemsOf(route, answer, shared) },
  };
}

/** Returns who may call an operation, and what else its route says about calls. Its summary says what it does. */
function descriptionOf(route: RouteSpec): string {
  const { access, deprecated, own, stream, tls } = route;
  const limits = access === 'public' || access === 'admin' ? null : GRANT_TEXTS[grantUse(route)];
  const enough = own?.map((right) => `\`${right}\``).join(' or ');
  const ofOwn = enough === undefined ? [] : [`For what is their own, ${enough} is enough.`];
  return [
    [callersOf(access), ...ofOwn, ...(limits === null ? [] : [limits])].join(' '),
    ...(tls ? ['Needs TLS, except from the host of the orchestrator.'] : []),
    ...(takesIfMatch(route) ? ['With `If-Match` it fails if another request has changed the record meanwhile.'] : []),
    ...(stream
      ? ['With `Accept: application/x-ndjson` the answer is a stream: one JSON value a line, as it happens.']
      : []),
    ...(deprecated ? [deprecationText(deprecated)] : []),
  ].join('\n\n');
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Random value; once a request has begun something, a request with the same key within 24 hours returns the first answer and does nothing. A refusal that began nothing is not kept',
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
  description: 'ID of the last received event; the stream continues after it',
  schema: { type: 'string' },
};

const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  description:
    'The ETag of what the change was made for, or a list of them: the request fails with 412 when another request has changed it since. Weak tags never match',
  schema: { type: 'string' },
};

function parametersOf(
  { access, events, method, params, query, secretAnswer, tagged }: RouteSpec,
  write: WriteSchema,
  example: Example | undefined,
): readonly JsonObject[] {
  return [
    ...Object.entries(membersOf(params)).map(([name, schema]) => ({
      name,
      in: 'path',
      required: true,
      ...described(schema, write),
      ...exampleOf(example?.params?.[name], schema),
    })),
    ...Object.entries(membersOf(query)).map(([name, schema]) => ({
      name,
      in: 'query',
      required: requiredOf(query).includes(name),
      ...(isDeprecated(schema) ? { deprecated: true } : {}),
      ...described(withoutNull(schema), write),
      ...exampleOf(example?.query?.[name], withoutNull(schema)),
    })),
    ...(method !== 'GET' && access !== 'public' ? [secretAnswer ? ONE_TIME_KEY : IDEMPOTENCY_KEY] : []),
    ...(takesIfMatch({ method, tagged }) ? [IF_MATCH] : []),
    ...(events ? [LAST_EVENT_ID] : []),
  ];
}

function bodyOf(route: RouteSpec, body: TSchema, write: WriteSchema, example: Example | undefined): JsonObject {
  const required = route.bodyOptional !== true && requiredOf(body).length > 0;
  return { required, content: { 'application/json': { schema: write(body), ...optionalExample(example?.body) } } };
}

function answersOf(route: RouteSpec, write: WriteSchema, example: Example | undefined): JsonObject {
  const lines: JsonObject = route.stream ? { 'application/x-ndjson': linesOf(write(route.stream)) } : {};
  const answers = Object.entries(route.answers).map(([status, schema]) => {
    const description = STATUS_TEXT[status] ?? 'Done';
    const headers = headersOfAnswer(route, Number(status));
    if (schema === null) return [status, { description, headers }];
    // OpenAPI 3.1 has no keyword for it; in 3.2 it is `itemSchema`.
    const item: JsonObject = {
      ...(route.events ? { 'x-event-data': write(route.events) } : {}),
      ...(route.gaps ? { 'x-event-gap': write(route.gaps) } : {}),
    };
    const shown = String(example?.status) === status ? optionalExample(example?.answer) : {};
    const described = route.events ? { ...write(schema), ...eventsOf(route.events, route.gaps, write) } : write(schema);
    const content = { [route.mediaType ?? 'application/json']: { schema: described, ...item, ...shown } };
    return [status, { description, headers, content: status === '200' ? { ...content, ...lines } : content }];
  });
  return Object.fromEntries(answers);
}

/** Describes one response for each status. */
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

/** Returns the schema of a parameter, with its description beside it, where readers of OpenAPI look for it. */
function described(schema: TSchema & { readonly description?: unknown }, write: WriteSchema): JsonObject {
  const { description } = schema;
  const { description: _, ...bare } = write(schema);
  return { ...(typeof description === 'string' ? { description } : {}), schema: bare };
}

const optionalExample = (example: JsonValue | undefined): JsonObject => (example === undefined ? {} : { example });

/** Returns the example of a parameter in the type of its schema. */
function exampleOf(text: string | undefined, { type }: { readonly type?: unknown }): JsonObject {
  if (text === undefined || type === 'string') return optionalExample(text);
  return optionalExample(type === 'integer' ? Number(text) : type === 'boolean' ? text === 'true' : text);
}

const isDeprecated = (schema: { readonly deprecated?: unknown }): boolean => schema.deprecated === true;

/** Removes null from a parameter's schema: in a URL, null means an absent parameter. */
function withoutNull(schema: TSchema): TSchema {
  const { anyOf }: ObjectSchema = schema;
  const branches = anyOf?.filter((branch: ObjectSchema) => branch.type !== 'null') ?? [];
  return (branches.length === 1 ? branches[0] : undefined) ?? schema;
}
