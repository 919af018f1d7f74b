/** The form of OpenAPI 3.1 documents as far as ours go, closed where the specification is: written after its sections 4.8 and 4.9. */
import { Ajv2020 } from 'ajv/dist/2020.js';

const text = { type: 'string', minLength: 1 };
const markdown = { type: 'string' };
const url = { type: 'string', format: 'uri-reference' };

/** Fixed fields and `x-` extensions, nothing else. */
const fixed = (properties: Readonly<Record<string, object | boolean>>, required: readonly string[] = []) => ({
  type: 'object',
  required,
  properties,
  patternProperties: { '^x-': true },
  additionalProperties: false,
});

const mapOf = (names: string, value: object) => ({
  type: 'object',
  propertyNames: { pattern: names },
  additionalProperties: value,
});

const ref = (name: string) => ({ $ref: `#/$defs/${name}` });

/** The thing itself or a reference to one; both at once mean nothing. */
const orReference = (name: string) => ({
  if: { type: 'object', required: ['$ref'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: fixed({ $ref: { type: 'string', pattern: '^#/components/' }, summary: text, description: markdown }, ['$ref']),
  else: ref(name),
});

/** The Schema Object of 3.1 is JSON Schema 2020-12. */
const schema = { $ref: 'https://json-schema.org/draft/2020-12/schema' };

const COMPONENT = '^[a-zA-Z0-9._-]+$';
const MEDIA_TYPE = '^[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[a-z0-9.-]+)*$';
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** `content`, or a `schema`, but not both. */
const oneOfSchemaAndContent = { oneOf: [{ required: ['schema'] }, { required: ['content'] }] };

const parameterFields = {
  description: markdown,
  required: { type: 'boolean' },
  deprecated: { type: 'boolean' },
  schema,
  explode: { type: 'boolean' },
  example: true,
  content: { ...mapOf(MEDIA_TYPE, ref('mediaType')), minProperties: 1, maxProperties: 1 },
};

const OPEN_API = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...fixed(
    {
      openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
      info: ref('info'),
      jsonSchemaDialect: url,
      servers: { type: 'array', items: ref('server') },
      paths: mapOf('^/', ref('pathItem')),
      webhooks: mapOf(COMPONENT, ref('pathItem')),
      components: ref('components'),
      security: { type: 'array', items: mapOf(COMPONENT, { type: 'array', items: text }) },
      tags: { type: 'array', items: fixed({ name: text, description: markdown }, ['name']) },
      externalDocs: fixed({ url, description: markdown }, ['url']),
    },
    ['openapi', 'info', 'paths'],
  ),
  $defs: {
    info: fixed(
      {
        title: text,
        summary: text,
        description: markdown,
        termsOfService: url,
        contact: fixed({ name: text, url, email: text }),
        version: text,
        license: {
          ...fixed({ name: text, identifier: text, url }, ['name']),
          not: { required: ['identifier', 'url'] },
        },
      },
      ['title', 'version'],
    ),
    server: fixed({ url: text, description: markdown }, ['url']),
    pathItem: fixed({
      summary: text,
      description: markdown,
      parameters: { type: 'array', items: orReference('parameter'), uniqueItems: true },
      ...Object.fromEntries(METHODS.map((method) => [method, ref('operation')])),
    }),
    operation: fixed({
      tags: { type: 'array', items: text, uniqueItems: true },
      summary: text,
      description: markdown,
      operationId: { type: 'string', pattern: '^[a-zA-Z]\\w*$' },
      parameters: { type: 'array', items: orReference('parameter'), uniqueItems: true },
      requestBody: orReference('requestBody'),
      responses: {
        ...mapOf('^([1-5]\\d\\d|[1-5]XX|default)$', orReference('response')),
        minProperties: 1,
      },
      deprecated: { type: 'boolean' },
      security: { type: 'array', items: mapOf(COMPONENT, { type: 'array', items: text }) },
    }),
    parameter: {
      ...fixed({ ...parameterFields, name: text, in: { enum: ['query', 'header', 'path', 'cookie'] }, style: text }, [
        'name',
        'in',
      ]),
      ...oneOfSchemaAndContent,
      if: { properties: { in: { const: 'path' } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['required'], properties: { required: { const: true } } },
    },
    header: { ...fixed({ ...parameterFields, style: { const: 'simple' } }), ...oneOfSchemaAndContent },
    requestBody: fixed(
      { description: markdown, content: mapOf(MEDIA_TYPE, ref('mediaType')), required: { type: 'boolean' } },
      ['content'],
    ),
    response: fixed(
      {
        description: markdown,
        headers: mapOf("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", orReference('header')),
        content: mapOf(MEDIA_TYPE, ref('mediaType')),
      },
      ['description'],
    ),
    mediaType: { ...fixed({ schema, example: true, examples: mapOf(COMPONENT, { type: 'object' }) }) },
    components: fixed({
      schemas: mapOf(COMPONENT, schema),
      responses: mapOf(COMPONENT, orReference('response')),
      parameters: mapOf(COMPONENT, orReference('parameter')),
      requestBodies: mapOf(COMPONENT, orReference('requestBody')),
      headers: mapOf(COMPONENT, orReference('header')),
      securitySchemes: mapOf(COMPONENT, orReference('securityScheme')),
    }),
    securityScheme: {
      ...fixed({ type: { const: 'http' }, description: markdown, scheme: text, bearerFormat: text }, [
        'type',
        'scheme',
      ]),
    },
  },
};

/** The parts of a document that break OpenAPI 3.1; empty for a good one. */
export function openApiMistakes(document: unknown): readonly string[] {
  const validate = new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(OPEN_API);
  if (validate(document)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
