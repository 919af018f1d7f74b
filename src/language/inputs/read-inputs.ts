/** Reads the `inputs` of a module and reports every mistake in them. */
import * as Type from 'typebox';
import { SECRET_NAME_PATTERN } from '../../kernel/ids.js';
import { type Pattern, readPattern } from '../../kernel/pattern.js';
import { closed } from '../../kernel/schema.js';
import { escapePointer } from '../../kernel/validator.js';
import { checkShape } from '../check-shape.js';
import { MistakeList, type Place } from '../diagnostic.js';
import { dataOf, items, type Located, member, placeAt, scalarAt } from '../located.js';
import { quoted } from '../printable.js';
import { INSTEAD } from '../shape-schema.js';
import { BOOLEAN, type FieldType, NUMBER, SECRET, TEXT, UNKNOWN, type Value, type ValueType } from '../values.js';
import { INPUT_NAME_PATTERN, INPUT_TYPES, type Input, type Inputs, type InputType } from './input.js';
import { LEVEL, MAX_INPUTS } from './input-schema.js';
import { settle } from './settle.js';

/** Maximum types inside each other. */
const MAX_DEPTH = 8;

/** The types that take each key, besides those that every type takes. */
const TYPES_OF_KEYS: Readonly<Record<string, readonly InputType[]>> = {
  secret: ['string'],
  pattern: ['string'],
  enum: ['string', 'integer', 'number'],
  minimum: ['integer', 'number'],
  maximum: ['integer', 'number'],
  min_items: ['list', 'map'],
  max_items: ['list', 'map'],
  merge: ['list', 'map', 'object'],
  of: ['list', 'map'],
  fields: ['object'],
};

/** How other languages call the types. */
const OTHER_TYPES: Readonly<Record<string, InputType>> = {
  ...{ text: 'string', str: 'string', int: 'integer', float: 'number', double: 'number', bool: 'boolean' },
  ...{ array: 'list', set: 'list', tuple: 'list', dict: 'map', mapping: 'map', hash: 'map', struct: 'object' },
};

/** Keys that have a meaning only for an input or a field, which has a name. */
const NAMED_KEYS = ['default', 'optional', 'merge'] as const;

/** Returns the inputs without a mistake of their own; null for each of the others. */
export function readInputs(node: Located | undefined, mistakes: MistakeList): ReadonlyMap<string, Input | null> {
  return readLevel(node, { mistakes, path: '/inputs', depth: 1 });
}

interface Reading {
  readonly mistakes: MistakeList;
  readonly path: string;
  /** 1 for an input, more for what is inside it. */
  readonly depth: number;
}

function readLevel(node: Located | undefined, { mistakes, path, depth }: Reading): ReadonlyMap<string, Input | null> {
  const inputs = new Map<string, Input | null>();
  if (node?.type !== 'map') return inputs;
  for (const [name, { key, value }] of node.members) {
    const at = `${path}/${escapePointer(name)}`;
    if (!new RegExp(INPUT_NAME_PATTERN).test(name)) {
      const message = `the name ${quoted(name)} has letters, digits, "_" and "-", and begins with a letter or "_"`;
      mistakes.error('input_invalid', message, at, key);
      continue;
    }
    inputs.set(name, readInput(value, name, { mistakes, path: at, depth }));
  }
  if (inputs.size > MAX_INPUTS) {
    mistakes.error(
      'input_invalid',
      `there are ${inputs.size} names here, and at most ${MAX_INPUTS} are allowed`,
      path,
      node,
    );
  }
  return inputs;
}

/** @param name null for the elements of a list or a map */
function readInput(node: Located, name: string | null, reading: Reading): Input | null {
  const own = new MistakeList();
  const input = inputOf(node, name, { ...reading, mistakes: own });
  reading.mistakes.addAll(own.found);
  return own.failed ? null : input;
}

function inputOf(node: Located, name: string | null, reading: Reading): Input | null {
  const { mistakes, path, depth } = reading;
  const label = name === null ? '"of"' : quoted(name);
  const wrong = (key: string, message: string) =>
    mistakes.error(
      'input_invalid',
      message,
      key === '' ? path : `${path}/${key}`,
      placeAt(node, key === '' ? '' : `/${key}`),
    );
  if (node.type === 'scalar' && INPUT_TYPES.some((type) => type === node.value)) {
    wrong('', `${label} must be a mapping; write {type: ${node.value}}`);
    return null;
  }
  const strange = scalarAt(node, '/type');
  const meant = typeof strange?.value === 'string' ? OTHER_TYPES[strange.value.toLowerCase()] : undefined;
  if (strange !== undefined && meant !== undefined && strange.value !== meant) {
    wrong('type', `"type" cannot be ${quoted(String(strange.value))}; here it is called "${meant}"`);
    return null;
  }
  checkShape(LEVEL, node, { mistakes, path, label, expressions: false });
  const declared = scalarAt(node, '/type')?.value;
  const type = INPUT_TYPES.find((one) => one === declared);
  if (mistakes.failed || node.type !== 'map' || type === undefined) return null;
  for (const [key, types] of Object.entries(TYPES_OF_KEYS)) {
    if (!node.members.has(key) || types.includes(type)) continue;
    wrong(key, `"${key}" belongs to the type ${types.join(' or ')}, and this is ${articleOf(type)} ${type}`);
  }
  for (const key of name === null ? NAMED_KEYS : depth > 1 ? (['merge'] as const) : []) {
    if (node.members.has(key)) wrong(key, `"${key}" has no meaning here; write it where the name of the input is`);
  }
  const isSecret = scalarAt(node, '/secret')?.value === true;
  for (const key of isSecret ? ['enum', 'pattern'] : []) {
    if (node.members.has(key))
      wrong(key, `"${key}" cannot be checked, because the value of a secret is not known here`);
  }
  const isOptional = scalarAt(node, '/optional')?.value === true;
  if (isOptional && node.members.has('default'))
    wrong('default', 'with a default, there is always a value; leave out "optional" or "default"');
  const limits = limitsOf(node, type, wrong);
  const inner = innerOf(node, type, label, reading);
  if (mistakes.failed || inner === null) return null;
  const description = scalarAt(node, '/description')?.value;
  const input: Input = {
    declared: type,
    description: typeof description === 'string' ? description : null,
    type: isSecret ? SECRET : typeOf(type, inner),
    schema: schemaOf(node, type, { ...inner, isSecret }),
    isSecret,
    isOptional,
    isMerged: scalarAt(node, '/merge')?.value === true,
    standard: undefined,
    ...limits,
    ...inner,
  };
  const standard = member(node, 'default');
  if (standard === undefined) return input;
  const value: Value | null = settle(standard, input, { mistakes, path: `${path}/default`, label: '"default"' });
  return value === null ? null : { ...input, standard: { value, written: dataOf(standard) } };
}

const articleOf = (type: InputType): string => (/^[aeio]/.test(type) ? 'an' : 'a');

/** Reports a mistake at a key of an input. */
type Wrong = (key: string, message: string) => void;

function limitsOf(node: Located, type: InputType, wrong: Wrong): Pick<Input, 'pattern' | 'minItems' | 'maxItems'> {
  const numberAt = (key: string, standard: number): number => {
    const value = scalarAt(node, `/${key}`)?.value;
    return typeof value === 'number' ? value : standard;
  };
  if (numberAt('minimum', Number.NEGATIVE_INFINITY) > numberAt('maximum', Number.POSITIVE_INFINITY)) {
    wrong('minimum', '"minimum" is greater than "maximum", so that no value is possible');
  }
  const [minItems, maxItems] = [numberAt('min_items', 0), numberAt('max_items', Number.POSITIVE_INFINITY)];
  if (minItems > maxItems) wrong('min_items', '"min_items" is greater than "max_items", so that no value is possible');
  for (const [index, choice] of items(member(node, 'enum')).entries()) {
    const value = dataOf(choice);
    const fits =
      type === 'string'
        ? typeof value === 'string'
        : type === 'integer'
          ? Number.isInteger(value)
          : typeof value === 'number';
    if (!fits) wrong(`enum/${index}`, `this is no ${type}, which the input is`);
  }
  const source = scalarAt(node, '/pattern')?.value;
  const pattern: Pattern | string | null = typeof source === 'string' ? readPattern(source) : null;
  if (typeof pattern === 'string') wrong('pattern', pattern);
  return { pattern: typeof pattern === 'string' ? null : pattern, minItems, maxItems };
}

/** Returns the types inside a list, map or object; null after a mistake was reported. */
function innerOf(
  node: Located,
  type: InputType,
  label: string,
  { mistakes, path, depth }: Reading,
): Pick<Input, 'of' | 'fields'> | null {
  const key = type === 'object' ? 'fields' : type === 'list' || type === 'map' ? 'of' : null;
  if (key === null) return { of: null, fields: null };
  const inside = member(node, key);
  const report = (message: string, place: Place) => mistakes.error('input_invalid', message, `${path}/${key}`, place);
  if (inside === undefined) {
    const example = key === 'of' ? 'of: {type: string}' : 'fields: {NAME: {type: string}}';
    report(`${articleOf(type)} ${type} needs "${key}", which says what is in it, such as ${example}`, node);
    return null;
  }
  if (depth >= MAX_DEPTH) {
    report(`at most ${MAX_DEPTH} types can be inside each other`, inside);
    return null;
  }
  const reading = { mistakes, path: `${path}/${key}`, depth: depth + 1 };
  if (key === 'of') {
    const of = readInput(inside, null, reading);
    return of === null ? null : { of, fields: null };
  }
  const fields = new Map<string, Input>();
  for (const [name, field] of readLevel(inside, reading)) if (field !== null) fields.set(name, field);
  if (inside.type === 'map' && inside.members.size === 0) report(`"fields" of ${label} is empty`, inside);
  return { of: null, fields };
}

const PLAIN_TYPES: Readonly<Record<Exclude<InputType, 'list' | 'map' | 'object'>, ValueType>> = {
  string: TEXT,
  integer: NUMBER,
  number: NUMBER,
  boolean: BOOLEAN,
};

function typeOf(type: InputType, { of, fields }: Pick<Input, 'of' | 'fields'>): ValueType {
  if (type === 'list') return { type: 'list', of: of?.type ?? UNKNOWN };
  if (type === 'map') return { type: 'map', fields: new Map(), of: of?.type ?? UNKNOWN, isDeclared: true };
  if (type === 'object') return { type: 'map', fields: fieldTypes(fields ?? new Map()), of: null, isDeclared: true };
  return PLAIN_TYPES[type];
}

/** Returns the types of inputs or fields in expressions. Those with a mistake of their own have the type `unknown`. */
export const fieldTypes = (inputs: ReadonlyMap<string, Input | null>): ReadonlyMap<string, FieldType> =>
  new Map(
    [...inputs].map(([name, input]) => [name, { type: input?.type ?? UNKNOWN, optional: input?.isOptional === true }]),
  );

const SECRET_SCHEMA = closed(
  { secret: Type.String({ pattern: SECRET_NAME_PATTERN, description: 'the name of a secret' }) },
  { title: 'Secret', [INSTEAD]: 'is a secret; write {secret: NAME}, and store its value with orch secrets set NAME' },
);

/** Returns the schema of the values of an input, without its pattern and its numbers of members. */
function schemaOf(node: Located, type: InputType, inner: Pick<Input, 'of' | 'fields' | 'isSecret'>): Type.TSchema {
  const { of, fields, isSecret } = inner;
  if (isSecret) return SECRET_SCHEMA;
  const choices = member(node, 'enum');
  if (choices?.type === 'list') return Type.Enum(choices.items.map(dataOf) as (string | number)[]);
  const bounds = Object.fromEntries(
    ['minimum', 'maximum'].flatMap((key) => {
      const bound = member(node, key);
      return bound === undefined ? [] : [[key, dataOf(bound)]];
    }),
  );
  if (type === 'string') return Type.String();
  if (type === 'integer') return Type.Integer(bounds);
  if (type === 'number') return Type.Number(bounds);
  if (type === 'boolean') return Type.Boolean();
  if (type === 'list') return Type.Array(of?.schema ?? Type.Unknown());
  if (type === 'map') return Type.Object({}, { additionalProperties: of?.schema ?? Type.Unknown() });
  const properties = [...(fields ?? [])].map(([name, field]) => {
    const isRequired = field.standard === undefined && !field.isOptional;
    return [name, isRequired ? field.schema : Type.Optional(field.schema)] as const;
  });
  return closed(Object.fromEntries(properties));
}

/** Returns inputs of which none has a mistake. */
export const soundInputs = (inputs: ReadonlyMap<string, Input | null>): Inputs =>
  new Map([...inputs].flatMap(([name, input]) => (input === null ? [] : [[name, input] as const])));
