/** The JSON Schema of modules by another validator than our own, and what editors show of it. */
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Diagnostic } from '../../src/language/diagnostic.js';
import { parseModule } from '../../src/language/parse-module.js';
import { moduleJsonSchema } from '../../src/language/schema.js';
import { branchesOf, type ShapeSchema, shapeOf, typesOf } from '../../src/language/shape-schema.js';
import { CATALOGUE, MODULE_KINDS } from '../../src/resources/catalogue.js';
import { TRIGGER_FIELDS } from '../../src/resources/kind.js';

/** The mistakes that a JSON Schema can see; the others are those of ids, places and the text itself. */
const OF_THE_SHAPE: ReadonlySet<Diagnostic['code']> = new Set([
  ...(['unknown_key', 'missing_key', 'wrong_type', 'unquoted', 'misplaced_key'] as const),
  ...(['kind_missing', 'kind_ambiguous', 'unknown_kind', 'resource_missing', 'resource_ambiguous'] as const),
  ...(['check_missing', 'check_ambiguous'] as const),
]);

const validate = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true }).compile(
  moduleJsonSchema(),
);

/** Whether the schema takes a text, and the keywords that refuse it. */
function judge(source: string): { readonly accepted: boolean; readonly by: readonly string[] } {
  const accepted = validate(parse(source));
  return { accepted, by: (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`) };
}

const texts = ['parse', 'kinds'].flatMap((folder) => {
  const directory = new URL(`cases/${folder}/`, import.meta.url);
  return readdirSync(directory)
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => ({ name: `${folder}/${name}`, given: parse(readFileSync(new URL(name, directory), 'utf8')) }))
    .filter(({ given }) => typeof given.input === 'string' && given.kinds === undefined)
    .map(({ name, given }) => ({ name, source: String(given.input), ...parseModule(String(given.input)) }));
});
const valid = texts.filter(({ definition }) => definition !== null);
const misshapen = texts.filter(({ diagnostics }) =>
  diagnostics.some(({ severity, code }) => severity === 'error' && OF_THE_SHAPE.has(code)),
);

describe('the JSON Schema of modules', () => {
  it('has every kind', () => {
    const text = JSON.stringify(moduleJsonSchema());
    expect([...MODULE_KINDS.keys()].filter((kind) => !text.includes(`"${kind}":`))).toEqual([]);
  });

  it.each(valid)('accepts $name', ({ source }) => expect(judge(source)).toEqual({ accepted: true, by: [] }));

  it.each(misshapen)('refuses $name', ({ source }) => expect(judge(source).accepted).toBe(false));

  it('has many of both to judge', () => {
    expect(valid.length).toBeGreaterThan(50);
    expect(misshapen.length).toBeGreaterThan(40);
  });
});

/** A member of a body with everything in it that restricts it, expressions and null aside. */
function* membersOf(schema: object, path = ''): Generator<{ readonly path: string; readonly shape: ShapeSchema }> {
  for (const [name, member] of Object.entries(shapeOf(schema).properties ?? {})) {
    for (const branch of branchesOf(member)) {
      if (typesOf(branch).join() === 'null') continue;
      yield { path: `${path}/${name}`, shape: { ...shapeOf(member), ...shapeOf(branch) } };
      yield* membersOf(branch, `${path}/${name}`);
    }
  }
}

describe.each([...CATALOGUE.values()])('the body of $kind', ({ schema }) => {
  const members = [...membersOf(schema)];

  it('is closed', () => expect(shapeOf(schema).additionalProperties).toBe(false));

  it('describes every field for people', () => {
    const bare = members.filter(({ shape: { description = '' } }) => description.length < 8 || /\.$/.test(description));
    expect(bare.map(({ path }) => path)).toEqual([]);
  });

  it('has unions only of different types, so that a mistake is one of a single branch', () => {
    const doubled = Object.entries(shapeOf(schema).properties ?? {}).filter(([, member]) => {
      const types = branchesOf(member).flatMap(typesOf);
      return new Set(types).size < types.length;
    });
    expect(doubled.map(([name]) => name)).toEqual([]);
  });

  it('takes no empty name of another resource or of a template', () => {
    const names: readonly string[] = ['template', ...TRIGGER_FIELDS];
    const empty = members
      .filter(({ path }) => names.includes(path.slice(1)))
      .filter(({ shape }) => ((shape.items ? shapeOf(shape.items) : shape).minLength ?? 0) < 1);
    expect(empty.map(({ path }) => path)).toEqual([]);
  });
});
