/** Compares located data with a schema and reports every mismatch in plain words with its place. */
import type { TSchema } from 'typebox';
import { canonicalJson } from '../kernel/json.js';
import { escapePointer } from '../kernel/validator.js';
import type { MistakeList, Place } from './diagnostic.js';
import { hasExpression, isOneExpression } from './expression.js';
import { dataOf, type Located, type LocatedList, type LocatedMap, type LocatedScalar } from './located.js';
import { keyAdvice } from './meant-key.js';
import { suggestion } from './nearest.js';
import { nameHere } from './other-names.js';
import { quoted, shortened } from './printable.js';
import { branchesOf, choicesOf, INSTEAD, type ShapeSchema, schemaOfMember, shapeOf, typesOf } from './shape-schema.js';

interface ShapeContext {
  readonly mistakes: MistakeList;
  /** JSON pointer of the value. */
  readonly path: string;
  /** Name of the value in messages, such as `"owner"` or `item 2 of "depends_on"`. */
  readonly label: string;
  /** True to skip texts with an expression, which are checked after filling. */
  readonly expressions: boolean;
  /** Members of the value that hold no expressions, because ids are not filled in. */
  readonly fixed?: ReadonlySet<string>;
  /** Returns a sentence about the right place of an unknown key, or null. */
  readonly elsewhere?: (key: string, shape: ShapeSchema) => string | null;
}

/** Reports every mismatch of a value. */
export function checkShape(schema: TSchema, node: Located, context: ShapeContext): void {
  const branches = branchesOf(schema);
  if (context.expressions && isValueOfAnyType(node) && !branches.some((one) => typesOf(one).includes('string'))) return;
  const branch = branches.find((candidate) => accepts(candidate, node));
  if (branch === undefined) {
    reportWrongType(branches, node, context);
    return;
  }
  // Branches of the language's unions differ by type, so at most one fits.
  const shape = shapeOf(branch);
  if (node.type === 'map') checkMap(shape, node, context);
  else if (node.type === 'list') checkList(shape, node, context);
  else checkScalar(shape, node, context);
}

/** Returns true for an expression and nothing else; `checkExpressions` compares its type with the schema. */
const isValueOfAnyType = (node: Located): boolean =>
  node.type === 'scalar' && typeof node.value === 'string' && isOneExpression(node.value);

/** Keywords that say nothing about a value. */
const WORDS: ReadonlySet<string> = new Set(['type', 'title', 'description', 'default', 'examples']);

/** The JSON type that is all a schema asks for, by schema; null if it asks for more. */
const onlyTypes = new WeakMap<TSchema, string | null>();

function onlyType(schema: TSchema): string | null {
  const known = onlyTypes.get(schema);
  if (known !== undefined) return known;
  const { type } = shapeOf(schema);
  const found = type !== undefined && Object.keys(schema).every((key) => WORDS.has(key)) ? type : null;
  onlyTypes.set(schema, found);
  return found;
}

/** Tells at once of most scalars that nothing is wrong with them, because values may have thousands. */
function takes(schema: TSchema, node: Located): boolean {
  if (node.type !== 'scalar' || node.value === null) return false;
  const [found, wanted] = [typeOf(node), onlyType(schema)];
  return found === wanted || (found === 'integer' && wanted === 'number');
}

function accepts(schema: TSchema, node: Located): boolean {
  const types = typesOf(schema);
  const found = typeOf(node);
  return types.length === 0 || types.includes(found) || (found === 'integer' && types.includes('number'));
}

function checkMap(shape: ShapeSchema, node: LocatedMap, context: ShapeContext): void {
  const { mistakes, path } = context;
  const { fixed, ...inner } = context;
  // The known keys are listed once for each mapping.
  let isListed = false;
  for (const [name, { key, value }] of node.members) {
    const schema = schemaOfMember(shape, name);
    if (schema === true || (schema !== false && takes(schema, value))) continue;
    const at = `${path}/${escapePointer(name)}`;
    const expressions = context.expressions && fixed?.has(name) !== true;
    if (schema !== false) checkShape(schema, value, { ...inner, expressions, path: at, label: quoted(name) });
    else isListed = reportUnknown(shape, name, { ...context, path: at, node, key, isListed });
  }
  for (const name of shape.required ?? []) {
    if (node.members.has(name)) continue;
    mistakes.error('missing_key', `"${name}" is required in ${titleOf(shape, context)}`, `${path}/${name}`, node);
  }
}

interface UnknownKey extends ShapeContext {
  readonly node: LocatedMap;
  readonly key: Place;
  /** True when an earlier message listed the known keys of the mapping. */
  readonly isListed: boolean;
}

/** Reports an unknown key and returns true when a message has listed the known keys. */
function reportUnknown(shape: ShapeSchema, name: string, context: UnknownKey): boolean {
  const { mistakes, path, label, node, key, elsewhere, isListed } = context;
  const advice = elsewhere?.(name, shape);
  if (advice) {
    mistakes.error('misplaced_key', advice, path, key);
    return isListed;
  }
  const known = Object.keys(shape.properties ?? {});
  const [glued] = /^[^:]+(?=:.)/.exec(name) ?? [];
  if (glued !== undefined && known.includes(glued)) {
    mistakes.error('unknown_key', `unknown key ${quoted(name)}; behind a key stands ": ", with a space`, path, key);
    return isListed;
  }
  // A key that is still missing is the most likely intention.
  const missing = known.filter((candidate) => !node.members.has(candidate));
  const meant =
    keyAdvice(shape.title ?? label.replaceAll('"', ''), name, known) ||
    suggestion(name, missing) ||
    suggestion(name, known);
  if (meant === '' && isCutByComma(node, name)) {
    const mend = 'within braces a comma begins the next key, so put a text that holds one in quotes';
    mistakes.error('unknown_key', `unknown key ${quoted(name)}; ${mend}`, path, key);
    return isListed;
  }
  const list = meant === '' && !isListed ? `; known: ${listKeys(shape)}` : '';
  mistakes.error('unknown_key', `unknown key ${quoted(name)}${meant}${list}`, path, key);
  return isListed || list !== '';
}

/** Tells if a key without a value is the rest of a text, as in `{name: a, b}`. */
function isCutByComma({ members }: LocatedMap, name: string): boolean {
  const all = [...members];
  const at = all.findIndex(([one]) => one === name);
  const [[, member] = [], [, before] = []] = [all[at], all[at - 1]];
  if (member?.value.type !== 'scalar' || member.value.raw !== '' || before?.value.type !== 'scalar') return false;
  return typeof before.value.value === 'string' && member.key.start - before.value.end === ', '.length;
}

/** Lists the keys of a mapping, including the form of keys with a pattern. */
function listKeys({ properties = {}, patternProperties = {} }: ShapeSchema): string {
  const tags = Object.keys(patternProperties).some((pattern) => pattern.startsWith('^tag')) ? ['tag.NAME'] : [];
  return [...Object.keys(properties), ...tags].join(', ');
}

const titleOf = (shape: ShapeSchema, { label }: ShapeContext): string =>
  shape.title === undefined ? label : nounOf(shape.title);

/** Converts a schema's title for a sentence: `Variant` becomes `a variant`. */
const nounOf = (title: string): string => {
  const noun = title.charAt(0).toLowerCase() + title.slice(1);
  return `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
};

function checkList(shape: ShapeSchema, node: LocatedList, context: ShapeContext): void {
  const { mistakes, path, label } = context;
  const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = shape;
  const count = node.items.length;
  if (count < minItems) {
    mistakes.error('invalid_value', `${label} needs at least ${counted(minItems)}`, path, node);
  } else if (count > maxItems) {
    mistakes.error('invalid_value', `${label} has ${counted(count)}, and at most ${maxItems} are allowed`, path, node);
  }
  if (shape.uniqueItems) checkUnique(node, context);
  if (items === undefined) return;
  for (const [index, item] of node.items.entries()) {
    if (takes(items, item)) continue;
    checkShape(items, item, { ...context, path: `${path}/${index}`, label: `item ${index + 1} of ${label}` });
  }
}

function checkUnique(node: LocatedList, { mistakes, path, label }: ShapeContext): void {
  const seen = new Set<string>();
  for (const [index, item] of node.items.entries()) {
    const text = canonicalJson(dataOf(item));
    if (seen.has(text))
      mistakes.error('invalid_value', `${label} has ${shortened(text)} twice`, `${path}/${index}`, item);
    seen.add(text);
  }
}

const counted = (count: number): string => (count === 1 ? 'one entry' : `${count} entries`);

function checkScalar(shape: ShapeSchema, node: Extract<Located, { type: 'scalar' }>, context: ShapeContext): void {
  const { value } = node;
  if (typeof value === 'string') {
    if (!context.expressions || !hasExpression(value)) checkText(shape, { text: value, place: node, ...context });
  } else if (typeof value === 'number') {
    checkNumber(shape, value, node, context);
  } else {
    const choices = choicesOf(shape);
    if (choices === null || choices.includes(value)) return;
    const allowed = choices.map((choice) => JSON.stringify(choice)).join(' or ');
    context.mistakes.error('invalid_value', `${context.label} must be ${allowed}`, context.path, node);
  }
}

function checkNumber(shape: ShapeSchema, value: number, node: Located, context: ShapeContext): void {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = shape;
  const choices = choicesOf(shape);
  const bad = (message: string) =>
    context.mistakes.error('invalid_value', `${context.label} ${message}, but this is ${value}`, context.path, node);
  if (choices !== null && !choices.includes(value)) bad(`must be one of ${choices.join(', ')}`);
  else if (value < minimum) bad(`must be at least ${minimum}`);
  else if (value > maximum) bad(`must be at most ${maximum}`);
}

interface TextToCheck {
  readonly text: string;
  readonly place: Place;
  readonly label: string;
  readonly path: string;
  readonly mistakes: MistakeList;
}

function checkText(shape: ShapeSchema, { text, place, label, path, mistakes }: TextToCheck): void {
  const message = problemOf(shape, text, label);
  if (message !== null) mistakes.error('invalid_value', message, path, place);
}

/** Returns the mistake of a text in choice, length or pattern, or null. */
function problemOf(shape: ShapeSchema, text: string, label: string): string | null {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, description } = shape;
  const choices = choicesOf(shape);
  if (choices !== null) return choices.includes(text) ? null : notAChoice(choices, text, label);
  if (text === '' && minLength > 0) return `${label} must not be empty`;
  if (text.length < minLength) return `${label} must have at least ${minLength} characters`;
  if (text.length > maxLength) return `${label} must have at most ${maxLength} characters`;
  if (pattern === undefined || new RegExp(pattern, 'u').test(text)) return null;
  const expected = description === undefined ? `text like ${pattern}` : lower(description);
  return `${label} cannot be ${quoted(text)}; expected: ${expected}`;
}

function notAChoice(choices: readonly unknown[], text: string, label: string): string {
  const names = choices.map(String);
  const list = names.map((name) => `"${name}"`).join(', ');
  const meant = nameHere(text, names);
  if (meant !== null) return `${label} cannot be ${quoted(text)}; here it is called "${meant}"`;
  return `${label} cannot be ${quoted(text)}; use ${names.length > 1 ? 'one of ' : ''}${list}${suggestion(text, names)}`;
}

const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

const NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  object: 'a mapping',
  array: 'a list',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'empty',
};

/** Formats JSON Schema types for a message, without null. */
export const namesOfTypes = (types: readonly string[]): string =>
  types.flatMap((type) => (type === 'null' ? [] : [NAMES[type] ?? type])).join(' or ');

/** Returns the JSON Schema type of a value. */
function typeOf(node: Located): string {
  if (node.type !== 'scalar') return node.type === 'map' ? 'object' : 'array';
  const { value } = node;
  if (value === null) return 'null';
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value;
}

interface WrongTypeContext {
  readonly mistakes: MistakeList;
  readonly path: string;
  readonly label: string;
}

/** Reports a value of the wrong type: the expected type, the given value, and what to write instead. */
function reportWrongType(branches: readonly TSchema[], node: Located, context: WrongTypeContext): void {
  const { mistakes, path, label } = context;
  const instead = branches.map((branch) => shapeOf(branch)[INSTEAD]).find((message) => message !== undefined);
  if (instead !== undefined) {
    mistakes.error('wrong_type', `${label} ${instead}`, path, node);
    return;
  }
  const text = branches.find((branch) => typesOf(branch).includes('string'));
  if (text !== undefined && node.type === 'scalar' && node.value !== null) {
    mistakes.error('unquoted', unquoted(text, node, label), path, node);
    return;
  }
  // `null` as an alternative does not help a person who wrote a value.
  const wanted = [...new Set(branches.flatMap(typesOf))].filter((type) => type !== 'null');
  const message = `${label} must be ${namesOfTypes(wanted)}, but ${foundAs(node)}${advice(branches, wanted, node, label)}`;
  mistakes.error('wrong_type', message, path, node);
}

function foundAs(node: Located): string {
  if (node.type !== 'scalar') return node.type === 'map' ? 'this is a mapping' : 'this is a list';
  if (node.value === null) return node.raw === '' ? 'nothing is given' : `this is ${shortened(node.raw)}`;
  return typeof node.value === 'string' ? `this is the string ${quoted(node.value)}` : `this is ${shortened(node.raw)}`;
}

/** Explains a value without quotes, such as `0644`, which YAML reads as a number. */
function unquoted(schema: TSchema, { raw, value }: LocatedScalar, label: string): string {
  const what = typeof value === 'boolean' ? `the value ${value}` : 'a number';
  const octal = /^0o[0-7]+$/.test(raw) ? `0${raw.slice(2)}` : raw;
  const fits = problemOf(shapeOf(schema), octal, label) === null;
  const key = /^"[\w.-]+"$/.test(label) ? `${label.slice(1, -1)}: ` : '';
  const write = fits ? `; write ${key}${quoted(octal)}` : '';
  return `${label} must be a string in quotes, because YAML reads ${shortened(raw)} as ${what}${write}`;
}

const SPOKEN: Readonly<Record<string, boolean>> = {
  yes: true,
  on: true,
  true: true,
  no: false,
  off: false,
  false: false,
};

function advice(branches: readonly TSchema[], wanted: readonly string[], node: Located, label: string): string {
  if (node.type === 'map' && wanted.includes('array') && [...node.members.keys()].some((key) => /^-\S/.test(key))) {
    return '; a list item begins with "- ", with a space';
  }
  if (node.type === 'map' && label === '"if"') return '; write a condition such as tags.env == "prod"';
  if (node.type === 'map' || node.type === 'list') return '';
  const { value, raw } = node;
  if (branches.some((branch) => listTakes(branch, node))) return `; write [${shortened(raw)}]`;
  if (typeof value !== 'string') return '';
  if (wanted.includes('object') && /^[\w-]+:\S/.test(value)) return '; behind a key stands ": ", with a space';
  if (hasExpression(value)) return '; with a text around it, an expression gives a text';
  // The body of a kind, which has no title.
  const required = branches.map(shapeOf).flatMap((one) => (one.title === undefined ? (one.required ?? []) : []));
  if (required.length === 1) return `; write {${required[0]}: ${shortened(raw)}}`;
  const spoken = value.toLowerCase();
  if (wanted.includes('boolean') && Object.hasOwn(SPOKEN, spoken))
    return `; write ${SPOKEN[spoken]}${withoutQuotes(raw)}`;
  const number = wanted.includes('integer') || wanted.includes('number');
  return number && /^-?\d{1,15}$/.test(value) ? `; write ${Number(value)} without quotes` : '';
}

/** Advises removing quotes only when there are some. */
const withoutQuotes = (raw: string): string => (/^["']/.test(raw) ? ' without quotes' : '');

/** Returns true for a list schema that accepts the value as its only item. */
function listTakes(schema: TSchema, node: Located): boolean {
  const { type, items } = shapeOf(schema);
  return (
    type === 'array' && items !== undefined && branchesOf(items).some((item) => typesOf(item).includes(typeOf(node)))
  );
}
