/** The OpenAPI document's description of each operation, and whether an answer is one of those that it describes. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Answer } from './api-request.js';

interface HeaderObject {
  readonly $ref?: string;
  readonly required?: boolean;
  readonly schema?: object;
}

interface ResponseObject {
  readonly $ref?: string;
  readonly content?: Readonly<
    Record<string, { readonly schema: object; readonly 'x-event-data'?: object; readonly 'x-line'?: object }>
  >;
  readonly headers?: Readonly<Record<string, HeaderObject>>;
}

export interface OperationObject {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, { schema: object }>> };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

export interface OpenApi {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: OperationObject }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly headers: Readonly<Record<string, HeaderObject>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
  };
}

export type Role = 'viewer' | 'operator' | 'admin';

export interface Described {
  readonly id: string;
  readonly method: string;
  /** Below the base, parameters in braces. */
  readonly path: string;
  readonly params: readonly string[];
  readonly takesBody: boolean;
  /** Who may call it; null is everybody. */
  readonly access: Role | null;
  /** `200 application/json`, `204`, `invalid_path` and so on: everything that it can answer. */
  readonly outcomes: ReadonlySet<string>;
  readonly object: OperationObject;
}

const SUCCESSES = /^[23]/;

export class DescribedApi {
  readonly document: OpenApi;
  readonly operations: ReadonlyMap<string, Described>;
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  private readonly validators = new Map<object, ValidateFunction>();

  constructor(document: OpenApi) {
    this.document = document;
    this.ajv.addSchema(withoutFurtherMembers(document), 'api');
    const all = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, object]) => this.describe(method, path, this.withResponses(object))),
    );
    this.operations = new Map(all.map((operation) => [operation.id, operation]));
  }

  operation(id: string): Described {
    const operation = this.operations.get(id);
    if (operation === undefined) throw new Error(`the document has no operation ${id}`);
    return operation;
  }

  /** The parts of the answer that are not as described; empty when it is one of the answers of the operation. */
  problemsOf(id: string, answer: Answer): readonly string[] {
    const response = this.operation(id).object.responses[String(answer.status)];
    if (response === undefined) return [`the status ${answer.status} is not described`];
    return [...this.bodyProblems(response, answer), ...this.headerProblems(response, answer)];
  }

  /** The parts of a body that are not as described for requests; empty for a good one, and for none. */
  requestProblemsOf(id: string, body: string | Buffer | null): readonly string[] {
    const { content } = this.operation(id).object.requestBody ?? {};
    const schema = content?.['application/json']?.schema;
    if (body === null || body.length === 0 || schema === undefined) return [];
    return this.mismatches(schema, JSON.parse(body.toString().replace(/^\ufeff/, '')));
  }

  /** The parts of a sent webhook that are not as described; empty for a good one. */
  webhookProblemsOf(
    name: string,
    headers: Readonly<Record<string, string | undefined>>,
    body: string,
  ): readonly string[] {
    const { parameters = [], requestBody } = this.document.webhooks[name]?.post ?? {};
    const described = parameters.map((parameter) => parameter.name);
    const missing = parameters.filter((parameter) => parameter.required && headers[parameter.name] === undefined);
    const { schema } = requestBody?.content['application/json'] ?? { schema: { not: {} } };
    return [
      ...missing.map((parameter) => `the header ${parameter.name} is missing`),
      ...Object.keys(headers)
        .filter((header) => !described.includes(header))
        .map((header) => `the header ${header} is not described`),
      ...this.mismatches(schema, JSON.parse(body)),
    ];
  }

  /** Which of the outcomes of the operation an answer is. */
  outcomeOf({ status, headers, json }: Answer): string {
    if (!SUCCESSES.test(String(status))) return String(json?.code);
    const type = headers['content-type'];
    return type === undefined ? String(status) : `${status} ${mediaTypeOf(type)}`;
  }

  private describe(method: string, path: string, object: OperationObject): Described {
    const codes = this.codesOf(object);
    return {
      id: object.operationId,
      method: method.toUpperCase(),
      path,
      params: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
      takesBody: object.requestBody !== undefined,
      access: accessOf(object, codes),
      outcomes: new Set([...successesOf(object), ...codes]),
      object,
    };
  }

  /** The operation with its shared answers in place. */
  private withResponses(object: OperationObject): OperationObject {
    const responses = Object.entries(object.responses).map(([status, response]) => {
      const { $ref } = response;
      return [
        status,
        $ref === undefined ? response : (this.document.components.responses[$ref.split('/').at(-1) ?? ''] ?? {}),
      ];
    });
    return { ...object, responses: Object.fromEntries(responses) };
  }

  private codesOf({ responses }: OperationObject): readonly string[] {
    return Object.entries(responses)
      .filter(([status]) => !SUCCESSES.test(status))
      .flatMap(([, { content }]) => codesIn(content?.['application/problem+json']?.schema));
  }

  private bodyProblems({ content }: ResponseObject, { headers, text, json }: Answer): readonly string[] {
    const type = headers['content-type'];
    if (content === undefined)
      return type === undefined && text === '' ? [] : ['there is a body, and none is described'];
    const found = Object.entries(content).find(([name]) => mediaTypeOf(name) === mediaTypeOf(type ?? ''));
    if (found === undefined) return [`the type ${type} is not described`];
    const [name, { schema, 'x-event-data': event, 'x-line': line = {} }] = found;
    if (event !== undefined) return eventsIn(text).flatMap((data) => this.mismatches(event, data));
    if (name === 'application/x-ndjson') return linesIn(text).flatMap((one) => this.mismatches(line, one));
    return this.mismatches(schema, /json$/.test(mediaTypeOf(name)) ? json : text);
  }

  private headerProblems({ headers: described = {} }: ResponseObject, { headers }: Answer): readonly string[] {
    return Object.entries(described).flatMap(([name, given]) => {
      const { required, schema } = given.$ref ? this.headerAt(given.$ref) : given;
      const value = headers[name.toLowerCase()];
      if (value === undefined) return required ? [`the header ${name} is missing`] : [];
      return this.mismatches(schema ?? {}, isNumeric(schema) ? Number(value) : value);
    });
  }

  private headerAt(reference: string): HeaderObject {
    return this.document.components.headers[reference.split('/').at(-1) ?? ''] ?? { required: true };
  }

  private mismatches(schema: object, value: unknown): readonly string[] {
    const validate = this.validators.get(schema) ?? this.ajv.compile(rebased(schema));
    this.validators.set(schema, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }
}

/** Answers are open for later releases. This one gives no member that it does not describe, except in problem documents. */
function withoutFurtherMembers(document: OpenApi): object {
  const close = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(close);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, close(member)]));
    const isObject = members.type === 'object' && typeof members.properties === 'object';
    return isObject && !('additionalProperties' in members) ? { ...members, additionalProperties: false } : members;
  };
  const { components } = document;
  const schemas = Object.entries(components.schemas).map(([name, one]) => [
    name,
    name === 'Problem' ? one : close(one),
  ]);
  return { ...document, components: { ...components, schemas: Object.fromEntries(schemas) } };
}

/** References of the document as references to it from elsewhere. */
function rebased(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"api#/'));
}

export const mediaTypeOf = (type: string): string => type.split(';')[0]?.trim().toLowerCase() ?? '';

const isNumeric = (schema: { readonly type?: unknown } = {}): boolean => schema.type === 'integer';

function successesOf({ responses }: OperationObject): readonly string[] {
  return Object.entries(responses)
    .filter(([status]) => SUCCESSES.test(status))
    .flatMap(([status, { content }]) =>
      content ? Object.keys(content).map((type) => `${status} ${mediaTypeOf(type)}`) : [status],
    );
}

/** `allOf: [Problem, {properties: {code: {enum}}}]`. */
function codesIn(schema: object | undefined): readonly string[] {
  const parts: { allOf?: readonly { properties?: { code?: { enum?: readonly string[] } } }[] } = schema ?? {};
  return (parts.allOf ?? []).flatMap((part) => part.properties?.code?.enum ?? []);
}

function accessOf({ security }: OperationObject, codes: readonly string[]): Role | null {
  if (security.length === 0) return null;
  if (codes.includes('admin_required')) return 'admin';
  return codes.includes('role_forbidden') ? 'operator' : 'viewer';
}

const linesIn = (text: string): readonly unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** Leaves an unfinished last line out, at which the reader may have hung up. */
const eventsIn = (text: string): readonly unknown[] =>
  text
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)));
