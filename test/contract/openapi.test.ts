import { describe, expect, it } from 'vitest';
import { API_BASE, CONTRACT } from '../../src/contract/contract.js';
import { FAULTS, generalFaults } from '../../src/contract/faults.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import { ANSWER_SCHEMAS, REQUEST_SCHEMAS } from '../../src/contract/openapi-schema.js';
import { isLocated, type RouteSpec } from '../../src/contract/route.js';
import { ProblemSchema } from '../../src/contract/shapes.js';
import type { FaultCode } from '../../src/kernel/fault.js';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly security: readonly Record<string, readonly string[]>[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, { readonly schema: object }> };
  readonly responses: Record<
    string,
    {
      readonly description: string;
      readonly content?: Record<string, { schema: object }>;
      readonly headers?: Record<string, object>;
    }
  >;
}

interface Document {
  readonly openapi: string;
  readonly info: Record<string, unknown>;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly schemas: Record<string, object>;
    readonly responses: Record<string, object>;
    readonly securitySchemes: Record<string, object>;
  };
}

// As a client gets it.
const text = JSON.stringify(openApiDocument(CONTRACT, { version: '0.1.0' }));
const raw: Document = JSON.parse(text);
/** The same, with shared answers in the place of references to them. */
const document: Document = {
  ...raw,
  paths: JSON.parse(JSON.stringify(raw.paths), (key, value) =>
    key === 'responses'
      ? Object.fromEntries(Object.entries(value).map(([status, one]) => [status, sharedOr(one as { $ref?: string })]))
      : value,
  ),
};

function sharedOr(response: { readonly $ref?: string }): object {
  const { $ref } = response;
  return $ref === undefined ? response : (raw.components.responses[$ref.split('/').at(-1) ?? ''] ?? {});
}

const routes: readonly RouteSpec[] = Object.values(CONTRACT);
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
);

/** Every object in the document with the way to it. */
function* objects(value: unknown, way = '#'): Generator<readonly [string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [way, value as Record<string, unknown>];
  for (const [key, member] of Object.entries(value)) yield* objects(member, `${way}/${key}`);
}

const resolve = (reference: string): unknown =>
  reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document);

/** The value with every reference in it replaced by what it leads to. */
const reached = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null), (_, member) =>
    typeof member?.$ref === 'string' ? reached(resolve(member.$ref)) : member,
  );

describe('the OpenAPI document', () => {
  it('has the form of OpenAPI 3.1', () => {
    expect(Object.keys(document).sort()).toEqual([
      'components',
      'info',
      'openapi',
      'paths',
      'servers',
      'tags',
      'webhooks',
    ]);
    expect(document.openapi).toBe('3.1.0');
    expect(document.info).toMatchObject({ title: 'orch management API', version: '0.1.0' });
    for (const name of Object.keys(document.components.schemas)) expect(name).toMatch(/^[a-zA-Z0-9._-]+$/);
    for (const path of Object.keys(document.paths))
      expect(path).toMatch(/^\/api\/v1(\/[a-z0-9.-]+|\/\{[a-z][a-z0-9_]*\})+$/);
    for (const { method } of operations) expect(['get', 'post', 'put', 'delete']).toContain(method);
  });

  it('has every route of the contract once, and no other operation', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...ids].sort()).toEqual(Object.keys(CONTRACT).sort());
    for (const [id, route] of Object.entries(CONTRACT)) {
      expect(route.id).toBe(id);
      const operation = document.paths[API_BASE + route.path]?.[route.method.toLowerCase()];
      expect(operation?.operationId).toBe(id);
      expect(operation?.summary).toBe(route.summary);
    }
    const shapes = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
    expect(new Set(shapes).size, 'no two paths differ by names of parameters alone').toBe(shapes.length);
  });

  it('has nothing but references that lead somewhere', () => {
    const references = [...objects(raw)].filter(([, value]) => '$ref' in value);
    expect(references.length).toBeGreaterThan(50);
    for (const [way, value] of references) {
      expect(Object.keys(value), way).toEqual(['$ref']);
      expect(resolve(String(value.$ref)), way).toBeTypeOf('object');
    }
    const used = new Set(references.map(([, value]) => String(value.$ref).split('/').at(-1)));
    expect(Object.keys(document.components.schemas).filter((name) => !used.has(name))).toEqual([]);
    expect(Object.keys(document.components.responses).filter((name) => !used.has(name))).toEqual([]);
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(Object.keys({ ...ANSWER_SCHEMAS, ...REQUEST_SCHEMAS })),
    );
  });

  it('has a name for every body, and each error answer once', () => {
    for (const { operation } of operations) {
      const bodies = [operation.requestBody, ...Object.values(operation.responses)];
      for (const body of bodies) {
        const schema = body?.content?.['application/json']?.schema;
        if (schema) expect(Object.keys(schema), operation.operationId).toEqual(['$ref']);
      }
    }
    for (const [, item] of Object.entries(raw.paths)) {
      for (const { operationId, responses } of Object.values(item)) {
        const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
        for (const [status, error] of errors) expect(Object.keys(error), `${operationId} ${status}`).toEqual(['$ref']);
      }
    }
    const answers = Object.values(document.components.responses).map((one) => JSON.stringify(one));
    expect(new Set(answers).size).toBe(answers.length);
    expect(text.length).toBeLessThan(600_000);
  });

  it('has components with names that generated types can have', () => {
    const names = Object.values(raw.components).flatMap((section) => Object.keys(section));
    // Also where upper and lower case are alike, as in names of files.
    const alike = names.map((name) => name.toLowerCase());
    expect(names.filter((name, at) => alike.indexOf(name.toLowerCase()) !== at)).toEqual([]);
    const types = names.filter((name) => !(name in raw.components.securitySchemes));
    expect(types.filter((name) => !/^(?:[A-Z][a-z]+)+$/.test(name))).toEqual([]);
    // Of the languages that clients are generated for.
    const taken = [
      'Array',
      'Boolean',
      'Date',
      'Error',
      'Exception',
      'Map',
      'Number',
      'Object',
      'Record',
      'Set',
      'String',
    ];
    expect(types.filter((name) => taken.includes(name))).toEqual([]);
  });

  it('names what several operations answer with after the thing, and not after one of them', () => {
    const users = new Map<string, Set<string>>();
    for (const { operation } of operations) {
      for (const [, value] of objects(operation.responses)) {
        const name =
          String(value.$ref ?? '')
            .split('/')
            .at(-1) ?? '';
        if (/(?:Request|Response)$/.test(name))
          users.set(name, (users.get(name) ?? new Set()).add(operation.operationId));
      }
    }
    expect(users.size).toBeGreaterThan(20);
    expect([...users].filter(([, ids]) => ids.size > 1).map(([name, ids]) => [name, ...ids])).toEqual([]);
  });

  it('refuses unknown members of requests, and lets answers have further ones', () => {
    const closedIn = (from: unknown): readonly string[] =>
      [...objects(reached(from))]
        .filter(([way, one]) => one.additionalProperties === false && !way.includes('/example'))
        .map(([way]) => way);
    for (const { operation } of operations) {
      expect(closedIn(operation.responses), operation.operationId).toEqual([]);
      const open = [...objects(reached(operation.requestBody))].filter(
        ([, schema]) => typeof schema.properties === 'object' && schema.additionalProperties !== false,
      );
      expect(
        open.map(([way]) => way),
        operation.operationId,
      ).toEqual([]);
    }
  });

  it('describes every member and every parameter', () => {
    const isDescribed = ({
      description,
      $ref,
      anyOf,
    }: {
      description?: string;
      $ref?: string;
      anyOf?: readonly object[];
    }): boolean =>
      $ref !== undefined || (description !== undefined && description !== '') || (anyOf ?? []).some(isDescribed);
    const missing = [...objects(raw.components.schemas, '')].flatMap(([way, { properties }]) =>
      typeof properties !== 'object' || way.endsWith('/properties')
        ? []
        : Object.entries(properties ?? {})
            .filter(([, schema]) => !isDescribed(schema))
            .map(([name]) => `${way}/${name}`),
    );
    const parameters = operations.flatMap(({ operation }) =>
      (operation.parameters ?? [])
        .filter((parameter) => !isDescribed(parameter))
        .map(({ name }) => `${operation.operationId} ${name}`),
    );
    expect([...missing, ...parameters]).toEqual([]);
  });

  it('says how wide every integer is, and what a string is where it is more than text', () => {
    const integers = [...objects(raw)].filter(([, { type }]) => type === 'integer');
    for (const [way, { format }] of integers) expect(['int32', 'int64'], way).toContain(format);
    const schemaAt = (...way: readonly string[]) =>
      way.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], raw.components.schemas);
    const inner = (schema: unknown) => (schema as { anyOf?: readonly object[] }).anyOf?.[0] ?? schema;
    expect(inner(schemaAt('MetricsSample', 'properties', 'memory_total'))).toMatchObject({ format: 'int64' });
    expect(schemaAt('ResourceResult', 'properties', 'duration_ms')).toMatchObject({ format: 'int64' });
    expect(schemaAt('VerifyChallengeResponse', 'properties', 'expires_at')).toMatchObject({ format: 'int64' });
    expect(schemaAt('AuditEvent', 'properties', 'timestamp')).toMatchObject({ format: 'date-time' });
    expect(inner(schemaAt('Secret', 'properties', 'expires_at'))).toMatchObject({ format: 'date-time' });
    expect(schemaAt('Agent', 'properties', 'node_id')).toMatchObject({ pattern: expect.any(String) });
    expect(schemaAt('Agent', 'properties', 'status')).toMatchObject({ type: 'string', enum: expect.any(Array) });
    const open = operations.find(({ operation }) => operation.operationId === 'openTerminal')?.operation;
    for (const name of ['cols', 'rows']) {
      const parameter = open?.parameters?.find((one) => one.name === name);
      expect(parameter?.schema, name).toMatchObject({ type: 'integer', format: 'int32' });
    }
  });

  it('gives a stream as text, with the schema of its lines beside it', () => {
    for (const { operation } of operations) {
      const lines = operation.responses[200]?.content?.['application/x-ndjson'];
      if (!lines) continue;
      expect(lines.schema, operation.operationId).toMatchObject({ type: 'string' });
      expect(lines, operation.operationId).toMatchObject({ 'x-line': { $ref: expect.any(String) } });
    }
  });

  it('declares every parameter of a path, and no other', () => {
    for (const { path, operation } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parameters = operation.parameters ?? [];
      const declared = parameters.filter((parameter) => parameter.in === 'path');
      expect(declared.map(({ name }) => name).sort(), path).toEqual(named.sort());
      for (const { required } of declared) expect(required).toBe(true);
      const keys = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
      expect(new Set(keys).size).toBe(keys.length);
      for (const { schema } of parameters) expect(JSON.stringify(schema)).not.toContain('"null"');
    }
  });

  it('tells who may call what', () => {
    for (const route of routes) {
      const operation = document.paths[API_BASE + route.path]?.[route.method.toLowerCase()];
      expect(operation?.security).toEqual(route.access === 'public' ? [] : [{ bearer: [] }]);
      expect('401' in (operation?.responses ?? {}), route.id).toBe(
        route.access !== 'public' || route.faults.some((code) => FAULTS[code].status === 401),
      );
    }
    expect(document.components.securitySchemes).toMatchObject({ bearer: { type: 'http', scheme: 'bearer' } });
    const tags = document.tags.map(({ name }) => name);
    for (const { operation } of operations) expect(tags).toEqual(expect.arrayContaining([...operation.tags]));
  });

  it('has every status that a route can answer, with its schema and the codes behind it', () => {
    for (const route of routes) {
      const responses = document.paths[API_BASE + route.path]?.[route.method.toLowerCase()]?.responses ?? {};
      const codes = [...route.faults, ...generalFaults(route)];
      const own: RouteSpec['statuses'] = 'statuses' in route ? route.statuses : {};
      const statusOf = (code: FaultCode) => own?.[code] ?? FAULTS[code].status;
      const statuses = [...Object.keys(route.answers), ...codes.map((code) => String(statusOf(code)))];
      expect(Object.keys(responses).sort(), route.id).toEqual([...new Set(statuses)].sort());
      for (const code of codes) {
        const response = responses[String(statusOf(code))];
        expect(response?.description, route.id).toContain(`\`${code}\``);
        const schema = response?.content?.['application/problem+json']?.schema;
        expect(JSON.stringify(schema), route.id).toContain('#/components/schemas/Problem');
        expect(JSON.stringify(schema), route.id).toContain(`"${code}"`);
      }
      for (const [status, schema] of Object.entries(route.answers)) {
        const content = responses[status]?.content;
        if (schema === null) expect(content, route.id).toBeUndefined();
        else expect(content?.[route.mediaType ?? 'application/json']?.schema, route.id).toBeTypeOf('object');
      }
      expect('application/x-ndjson' in (responses[200]?.content ?? {}), route.id).toBe(route.stream !== undefined);
      for (const { description } of Object.values(responses)) expect(description).not.toBe('');
    }
  });

  it('names the record after every answer that has created or begun something', () => {
    const paths = new Set(routes.map(({ path }) => path));
    for (const route of routes) {
      const located = Object.entries(route.answers).filter(([status]) => isLocated(Number(status)));
      expect(route.location !== undefined, route.id).toBe(located.length > 0);
      if (route.location === undefined) continue;
      expect(paths, route.id).toContain(route.location);
      for (const [status, schema] of located) {
        const { required = [] } = (schema ?? {}) as { required?: readonly string[] };
        const members = [...route.location.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        expect(required, route.id).toEqual(expect.arrayContaining(members));
        const responses = document.paths[API_BASE + route.path]?.[route.method.toLowerCase()]?.responses;
        expect(responses?.[status]?.headers, route.id).toMatchObject({
          Location: { $ref: '#/components/headers/Location' },
        });
      }
    }
  });

  it('describes every operation and every tag', () => {
    for (const { operation } of operations) expect(operation.description).not.toContain(operation.summary);
    for (const { name, description } of document.tags) expect(description, name).not.toBe(name);
  });

  it('tells which bodies may be left out', () => {
    for (const route of routes) {
      const body = document.paths[API_BASE + route.path]?.[route.method.toLowerCase()]?.requestBody;
      expect(body === undefined, route.id).toBe(route.body === undefined);
      if (!body) continue;
      const { required = [] } = (route.body ?? {}) as { required?: readonly string[] };
      expect(body.required, route.id).toBe(route.bodyOptional !== true && required.length > 0);
      expect(Object.keys(body.content)).toEqual(['application/json']);
    }
  });

  it('holds only what JSON Schema knows', () => {
    const types = ['object', 'array', 'string', 'integer', 'number', 'boolean', 'null'];
    for (const [way, value] of objects(document)) {
      if (typeof value.type === 'string' && way.includes('chema')) expect(types, way).toContain(value.type);
      if (typeof value.pattern === 'string') expect(() => new RegExp(String(value.pattern), 'u'), way).not.toThrow();
      if (Array.isArray(value.required)) {
        expect(Object.keys((value.properties as object | undefined) ?? {}), way).toEqual(
          expect.arrayContaining(value.required),
        );
      }
    }
  });

  it('covers the endpoints of the first version', () => {
    const known = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(known).toEqual(
      expect.arrayContaining([
        'GET /api/v1/status',
        'POST /api/v1/auth/challenge',
        'POST /api/v1/auth/verify',
        'GET /api/v1/agents/{node_id}/attributes',
        'POST /api/v1/agents/{node_id}/apply',
        'GET /api/v1/agents/{node_id}/state/operations/{operation_id}/output',
        'GET /api/v1/audit',
      ]),
    );
  });
});

describe('the contract', () => {
  it('has a status and a title for every fault, and only known ones', () => {
    for (const { status, title } of Object.values(FAULTS)) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(title).not.toBe('');
    }
    for (const route of routes) for (const code of route.faults) expect(FAULTS[code], route.id).toBeDefined();
  });

  it('has problem documents with the members of RFC 9457', () => {
    expect(Object.keys(ProblemSchema.properties)).toEqual(
      expect.arrayContaining(['type', 'title', 'status', 'detail']),
    );
  });
});

describe('what generators read', () => {
  const { parts } = (() => {
    const found: (readonly [string, Record<string, unknown>])[] = [];
    const walk = (value: unknown, way: string): void => {
      if (typeof value !== 'object' || value === null) return;
      found.push([way, value as Record<string, unknown>]);
      for (const [key, member] of Object.entries(value)) if (key !== 'example') walk(member, `${way} ${key}`);
    };
    walk(raw, '');
    return { parts: found };
  })();

  it('has a reference to each schema outside of extensions, which they skip', () => {
    const used = new Set(parts.flatMap(([way, { $ref }]) => (way.includes(' x-') ? [] : [$ref])));
    const unused = Object.keys(raw.components.schemas).filter((name) => !used.has(`#/components/schemas/${name}`));
    expect(unused).toEqual([]);
  });

  it('gives values of maps their type with additionalProperties', () => {
    expect(parts.filter(([, part]) => part.patternProperties !== undefined).map(([way]) => way)).toEqual([]);
  });

  it('describes a value that may be null beside its union', () => {
    const hidden = parts.filter(
      ([, { anyOf, description }]) =>
        description === undefined &&
        Array.isArray(anyOf) &&
        anyOf.length === 2 &&
        anyOf[1].type === 'null' &&
        anyOf[0].description !== undefined,
    );
    expect(hidden.map(([way]) => way)).toEqual([]);
  });
});
