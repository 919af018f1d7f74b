/** The JSON Schema for editors is the definition that validates. */
import { describe, expect, it } from 'vitest';
import { validator } from '../../src/kernel/validator.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { moduleJsonSchema, moduleSchema, STANDARD_KINDS } from '../../src/language/schema.js';
import { MODULE_KINDS } from '../../src/resources/catalogue.js';

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Every schema inside a schema. */
function* schemasIn(value: unknown): Generator<Json> {
  if (Array.isArray(value)) for (const item of value) yield* schemasIn(item);
  if (!isObject(value)) return;
  if (typeof value.type === 'string') yield value;
  for (const member of Object.values(value)) yield* schemasIn(member);
}

describe('moduleJsonSchema', () => {
  const schema = moduleJsonSchema();

  it('says what it is', () => {
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'urn:orch:schema:module:v1',
      title: 'Module',
      required: ['name'],
    });
  });

  it('is plain JSON, closed everywhere, and knows every kind', () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
    const objects = [...schemasIn(schema)].filter(({ type }) => type === 'object');
    expect(objects.length).toBeGreaterThan(5);
    for (const object of objects) expect(object).toMatchObject({ additionalProperties: false });
    const choice = objects.find(({ title }) => title === 'Resource kind');
    expect(Object.keys(isObject(choice?.properties) ? choice.properties : {})).toEqual([...MODULE_KINDS.keys()]);
  });

  it.each([
    ['an expression for a mode', { mode: `${OPEN} tags.mode }}` }, true],
    ['a mode', { mode: '0644' }, true],
    ['a wrong mode', { mode: '9999' }, false],
    ['null', { mode: null }, true],
  ])('admits %s', (_, body, accepted) => {
    const { check } = validator(moduleSchema(STANDARD_KINDS));
    expect(check({ name: 'a', resources: [{ resource: { 'file-unix': { path: '/a', ...body } } }] })).toBe(accepted);
  });

  it('wants one of resource and variants, and one kind', () => {
    const { check } = validator(moduleSchema(STANDARD_KINDS));
    const resource = { 'file-unix': { path: '/a' } };
    const variants = [{ when: {}, resource }];
    const accepts = (entry: unknown) => check({ name: 'a', resources: [entry] });
    expect(accepts({ resource })).toBe(true);
    expect(accepts({ variants })).toBe(true);
    expect(accepts({ resource, variants })).toBe(false);
    expect(accepts({})).toBe(false);
    expect(accepts({ resource: {} })).toBe(false);
    expect(accepts({ resource: { ...resource, 'directory-unix': { path: '/a' } } })).toBe(false);
  });
});
