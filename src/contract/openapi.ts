/** The contract as an OpenAPI 3.1 document: made from the schemas that check requests and answers, so it cannot lie. */

import type { TSchema } from 'typebox';
import type { JsonObject } from '../kernel/json.js';
import { COMPONENT_SCHEMAS } from './component-schemas.js';
import { API_BASE } from './contract.js';
import { COMPONENT_HEADERS } from './openapi-headers.js';
import { describeOperation } from './openapi-operation.js';
import { pascalCase, SharedResponses } from './openapi-responses.js';
import { schemaWriter } from './openapi-schema.js';
import type { RouteSpec } from './route.js';

export interface OpenApiOptions {
  /** Of the interface description. */
  readonly version: string;
}

const DESCRIPTION = `Manages a fleet of agents. Log in with \`POST ${API_BASE}/auth/challenge\` and \`POST ${API_BASE}/auth/verify\`, \
then send the token as \`Authorization: Bearer TOKEN\`. Failures are problem documents (RFC 9457) with a stable \`code\`. \
Times are Unix seconds (UTC) where they are integers and RFC 3339 where they are strings. A member that may be left out may \
be null, which means the same. Every answer has an \`X-Request-Id\`.`;

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
  const schemas = schemaWriter({ ...COMPONENT_SCHEMAS, ...bodiesOf(routes) });
  const problems = new SharedResponses();
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of routes) {
    const path = API_BASE + route.path;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route, schemas.write, problems) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'orch management API',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The orchestrator that serves this document' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.definitions(),
      responses: problems.definitions(),
      headers: COMPONENT_HEADERS,
      securitySchemes: SECURITY,
    },
  };
}

/** Names for the bodies that have none of their own, so that generated clients get types for them: after the operation. */
function bodiesOf(routes: readonly RouteSpec[]): Readonly<Record<string, TSchema>> {
  const known = new Set(Object.values(COMPONENT_SCHEMAS));
  const named: Record<string, TSchema> = {};
  const add = (name: string, schema: TSchema | null | undefined) => {
    if (!schema || known.has(schema)) return;
    known.add(schema);
    named[name] = schema;
  };
  for (const { id, answers, body, events, mediaType, stream } of routes) {
    const name = pascalCase(id);
    add(`${name}Request`, body);
    if (mediaType === undefined) {
      const [first, ...others] = Object.entries(answers);
      add(`${name}Response`, first?.[1]);
      for (const [status, schema] of others) add(`${name}Response${status}`, schema);
    }
    add(`${name}Line`, stream);
    add(`${name}Event`, events);
  }
  return named;
}
