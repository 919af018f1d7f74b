/** Renders the OpenAPI document as a page for people: every operation with parameters, bodies, answers and errors, and every schema. */
import type { JsonObject } from '../kernel/json.js';
import { API_PAGE_THEME, API_REFERENCE_SCRIPT, API_REFERENCE_STYLE } from './api-page-assets.js';

/** The parts of the page, for a document of its own or for a site. The style and the script need no other file. */
export interface ApiPage {
  readonly title: string;
  readonly style: string;
  readonly script: string;
  /** HTML for the body of a document. */
  readonly body: string;
  readonly operations: readonly ApiPageOperation[];
}

/** An operation of the page; its anchor is its ID. */
interface ApiPageOperation {
  readonly id: string;
  readonly title: string;
  readonly summary: string;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
}

interface Media {
  readonly example?: unknown;
  readonly schema: Schema;
  readonly 'x-line'?: Schema;
  readonly 'x-event-data'?: Schema;
}

interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  /** Requests that the orchestrator sends, by name and method. */
  readonly webhooks?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
  };
}

interface Endpoint extends Operation {
  readonly path: string;
  readonly method: string;
}

/** Returns the page of a document that `openApiDocument` has written. */
export function apiPage(openApi: JsonObject): ApiPage {
  const document = openApi as unknown as Document;
  const { info, tags, components } = document;
  const endpoints = endpointsOf(document.paths);
  const webhooks = endpointsOf(document.webhooks ?? {});
  const groups = tags.map(({ name }) =>
    groupOf(
      `tag-${name}`,
      name,
      endpoints.filter((one) => one.tags.includes(name)).map((one) => entryOf(one, document)),
    ),
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) =>
    detailsOf({
      id: schemaId(name),
      search: name,
      summary: `<code>${escaped(name)}</code>`,
      body: noteOf(schema) + shapeOf(schema),
    }),
  );
  const links = [
    ...tags.map(({ name }) => [`tag-${name}`, name] as const),
    ...(webhooks.length === 0 ? [] : [['webhooks', 'webhooks'] as const]),
    ['schemas', 'schemas'] as const,
  ];
  return {
    title: `${info.title} ${info.version}`,
    style: API_REFERENCE_STYLE,
    script: API_REFERENCE_SCRIPT,
    operations: [...endpoints, ...webhooks].map(({ operationId: id, method, path, summary }) => ({
      id,
      title: `${method.toUpperCase()} ${path}`,
      summary,
    })),
    body: [
      `<h1>${escaped(info.title)}</h1>`,
      `<p>Version ${escaped(info.version)}. ${prose(info.description)}</p>`,
      '<div class="api-search"><input id="api-search" type="search" placeholder="Filter by path, name, parameter or error code" ' +
        'aria-label="Filter the operations and schemas"></div>',
      `<ul class="api-tags">${links.map(([id, name]) => `<li><a href="#${escaped(id)}">${escaped(name)}</a></li>`).join('')}</ul>`,
      '<p id="api-none" class="api-none">Nothing matches.</p>',
      ...groups,
      ...(webhooks.length === 0
        ? []
        : [
            groupOf(
              'webhooks',
              'webhooks',
              webhooks.map((one) => entryOf(one, document)),
            ),
          ]),
      groupOf('schemas', 'schemas', schemas),
    ].join('\n'),
  };
}

const endpointsOf = (paths: Document['paths']): readonly Endpoint[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Endpoint => ({ ...operation, path, method })),
  );

/** Returns the page as a document of its own. */
export const apiPageDocument = ({ title, style, script, body }: ApiPage): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${standaloneStyle(style)}</style>
</head>
<body>
${body}
<script>${script}</script>
</body>
</html>
`;

/** Returns the text of the `style` element of the document of its own. */
export const standaloneStyle = (style: string): string => `${API_PAGE_THEME}${style}`;

const groupOf = (id: string, name: string, entries: readonly string[]): string =>
  `<section class="api-group" id="${escaped(id)}"><h2>${escaped(name)}</h2>\n${entries.join('\n')}\n</section>`;

interface Details {
  readonly id: string;
  /** Words that the filter finds. */
  readonly search: string;
  readonly summary: string;
  readonly body: string;
}

const detailsOf = ({ id, search, summary, body }: Details): string =>
  `<details class="api-entry" id="${escaped(id)}" data-search="${escaped(search.toLowerCase())}"><summary>${summary}</summary>` +
  `<div class="api-body">${body}</div></details>`;

function entryOf(endpoint: Endpoint, { components }: Document): string {
  const { operationId, method, path, summary, description, parameters = [], requestBody } = endpoint;
  const responses = Object.entries(endpoint.responses).map(([status, response]) => {
    const shared = response.$ref === undefined ? response : (components.responses[nameOf(response.$ref)] ?? response);
    return { status, ...shared };
  });
  const body = Object.values(requestBody?.content ?? {})[0];
  const members = body === undefined ? {} : followed(body.schema, components.schemas);
  return detailsOf({
    id: operationId,
    search: [
      operationId,
      method,
      path,
      summary,
      ...parameters.map(({ name }) => name),
      ...Object.keys(members.properties ?? {}),
      ...responses.map(({ status, description: what = '' }) => `${status} ${what}`),
    ].join(' '),
    summary:
      `<span class="api-method api-method-${escaped(method)}">${escaped(method.toUpperCase())}</span><code>${escaped(path)}</code>` +
      `<span class="api-what">${prose(summary)}</span>`,
    body: [
      `<p>${prose(description)} Operation <code>${escaped(operationId)}</code>.</p>`,
      ...(parameters.length === 0 ? [] : [`<h4>Parameters</h4>${listOf(parameters.map(parameterItem))}`]),
      ...(body === undefined
        ? []
        : [
            `<h4>Body${requestBody?.required ? '' : ' (optional)'}</h4>${noteOf(members)}${shapeOf(body.schema)}`,
            // The members of a shared schema stand here too, because a reader of the operation needs them first.
            ...(members === body.schema ? [] : [shapeMembers(members)]),
            exampleOf(body),
          ]),
      '<h4>Answers</h4>',
      listOf(responses.map(responseItem)),
    ].join('\n'),
  });
}

const parameterItem = ({ name, in: place, required, description, schema }: Parameter): string =>
  memberItem({
    name,
    schema,
    isRequired: required === true,
    place: `in ${place === 'path' || place === 'query' ? `the ${place}` : `a ${place}`}`,
    description,
  });

function responseItem({ status, description = '', content = {}, headers = {} }: Response & { status: string }): string {
  const isProblem = Object.keys(content).some((type) => type.startsWith('application/problem+json'));
  const bodies = Object.entries(content).flatMap(([type, media]) => {
    if (isProblem) return [];
    const parts = [
      `<span class="api-type">${escaped(type)}</span> ${typeOf(media.schema)}${shapeMembers(media.schema)}`,
      exampleOf(media),
      ...(media['x-line'] === undefined
        ? []
        : [`<span class="api-note">each line: ${typeOf(media['x-line'])}</span>${shapeMembers(media['x-line'])}`]),
      ...(media['x-event-data'] === undefined
        ? []
        : [
            `<span class="api-note">data of each event: ${typeOf(media['x-event-data'])}</span>${shapeMembers(media['x-event-data'])}`,
          ]),
    ];
    return [`<span class="api-note">${parts.join('')}</span>`];
  });
  const own = Object.entries(headers)
    .filter(([, header]) => header.$ref === undefined)
    .map(
      ([name, header]) =>
        `<span class="api-note">header <code>${escaped(name)}</code>: ${prose(header.description ?? '')}</span>`,
    );
  return `<li><code>${escaped(status)}</code> ${prose(description)}${bodies.join('')}${own.join('')}</li>`;
}

/** Returns the example of a body; nothing for one without. */
function exampleOf({ example }: { readonly example?: unknown }): string {
  if (example === undefined) return '';
  const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2);
  return `<span class="api-note">example</span><pre><code>${escaped(text)}</code></pre>`;
}

interface Member {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly place?: string;
  readonly description?: string | undefined;
}

function memberItem({ name, schema, isRequired, place, description }: Member): string {
  const note = description ?? descriptionOf(schema);
  return [
    `<li><code>${escaped(name)}</code> <span class="api-type">${typeOf(schema)}${place === undefined ? '' : `, ${place}`}</span>`,
    isRequired ? ' <span class="api-required">required</span>' : '',
    note === '' ? '' : `<span class="api-note">${prose(note)}</span>`,
    shapeMembers(schema),
    '</li>',
  ].join('');
}

const listOf = (items: readonly string[]): string => `<ul class="api-members">${items.join('')}</ul>`;

/** Returns the type of a schema and its members. */
const shapeOf = (schema: Schema): string => `<span class="api-type">${typeOf(schema)}</span>${shapeMembers(schema)}`;

const noteOf = ({ description }: Schema): string => (description === undefined ? '' : `<p>${prose(description)}</p>`);

/** Returns the description of a schema, or of the only branch besides null. */
function descriptionOf({ description, anyOf = [] }: Schema): string {
  if (description !== undefined) return description;
  return anyOf.map((branch) => branch.description ?? '').find((text) => text !== '') ?? '';
}

/** Returns the members of the objects in a schema, without following references. */
function shapeMembers({ properties, required = [], items, anyOf = [], allOf = [], ...rest }: Schema): string {
  const own = Object.entries(properties ?? {}).map(([name, schema]) =>
    memberItem({ name, schema, isRequired: required.includes(name) }),
  );
  const inner = [
    ...(items === undefined ? [] : [items]),
    ...anyOf,
    ...allOf,
    ...Object.values(rest.patternProperties ?? {}),
    ...(typeof rest.additionalProperties === 'object' ? [rest.additionalProperties] : []),
  ];
  return `${own.length === 0 ? '' : listOf(own)}${inner.map(shapeMembers).join('')}`;
}

/** Returns the shared schema that a schema refers to, or the schema itself. */
const followed = (schema: Schema, schemas: Readonly<Record<string, Schema>>): Schema =>
  schema.$ref === undefined ? schema : (schemas[nameOf(schema.$ref)] ?? schema);

/** Returns a type in words, with links to shared schemas. */
function typeOf(schema: Schema): string {
  const { $ref, anyOf, allOf, items, patternProperties, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = nameOf($ref);
    return `<a href="#${escaped(schemaId(name))}">${escaped(name)}</a>`;
  }
  if (schema.enum !== undefined) return schema.enum.map(literalOf).join(' | ');
  if (schema.const !== undefined) return literalOf(schema.const);
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ');
  if (allOf !== undefined) return allOf.map(typeOf).join(' and ');
  if (schema.type === 'array') return `array of ${items === undefined ? 'values' : typeOf(items)}${rulesOf(schema)}`;
  const value = Object.values(patternProperties ?? {})[0] ?? additionalProperties;
  if (schema.type === 'object' && typeof value === 'object') return `map to ${typeOf(value)}${rulesOf(schema)}`;
  return `${escaped(schema.type ?? 'any')}${rulesOf(schema)}`;
}

const literalOf = (value: unknown): string => `<code>${escaped(JSON.stringify(value))}</code>`;

/** Returns the rules of a schema beyond its type. */
function rulesOf(schema: Schema): string {
  const { format, pattern } = schema;
  const rules = [
    ...(format === undefined ? [] : [escaped(format)]),
    ...rangeOf(schema.minimum, schema.maximum, ''),
    ...rangeOf(schema.minLength, schema.maxLength, ' characters'),
    ...rangeOf(schema.minItems, schema.maxItems, ' items'),
    ...rangeOf(schema.minProperties, schema.maxProperties, ' members'),
    ...(pattern === undefined ? [] : [`<code>${escaped(pattern)}</code>`]),
  ];
  return rules.length === 0 ? '' : ` <span class="api-rule">(${rules.join(', ')})</span>`;
}

function rangeOf(least: number | undefined, most: number | undefined, unit: string): readonly string[] {
  if (least === undefined && most === undefined) return [];
  if (least === undefined) return [`at most ${most}${unit}`];
  return [most === undefined ? `at least ${least}${unit}` : `${least} to ${most}${unit}`];
}

const nameOf = (reference: string): string => reference.split('/').at(-1) ?? reference;

const schemaId = (name: string): string => `schema-${name}`;

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? '');

/** Returns a description as HTML: text in back quotes becomes code. */
const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
