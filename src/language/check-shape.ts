/** Compares located data with a schema and says in plain words, with its place, everything that does not fit. */
import type { TSchema } from 'typebox';
import { canonicalJson } from '../kernel/json.js';
import { escapePointer } from '../kernel/validator.js';
import { checkText } from './check-text.js';
import { hasExpression } from './expression.js';
import { dataOf, type Located, type LocatedList, type LocatedMap } from './located.js';
import { meantInstead } from './meant-key.js';
import type { MistakeList, Place } from './mistake.js';
import { suggestion } from './nearest.js';
import { quoted, shortened } from './printable.js';
import { branchesOf, choicesOf, type ShapeSchema, shapeOf, typesOf } from './shape-schema.js';
import { reportWrongType, typeOf } from './wrong-type.js';

export interface ShapeContext {
  readonly mistakes: MistakeList;
  /** JSON pointer of the value. */
  readonly path: string;
  /** What the value is called in messages, such as `"owner"` or `item 2 of "depends_on"`. */
  readonly label: string;
  /** Texts with an expression are checked when it is filled in. */
  readonly expressions: boolean;
  /** Where a key belongs that is unknown in this object, as a sentence; null when nobody knows. */
  readonly elsewhere?: (key: string, shape: ShapeSchema) => string | null;
}

/** Reports everything about a value that the schema does not allow. */
export function checkShape(schema: TSchema, node: Located, context: ShapeContext): void {
  const branches = branchesOf(schema);
  const branch = branches.find((candidate) => accepts(candidate, node));
  if (branch === undefined) {
    reportWrongType(branches, node, context);
    return;
  }
  // Unions of the language differ by type: at most one branch fits, and it alone is worth describing.
  const shape = shapeOf(branch);
  if (node.type === 'map') checkMap(shape, node, context);
  else if (node.type === 'list') checkList(shape, node, context);
  else checkScalar(shape, node, context);
}

function accepts(schema: TSchema, node: Located): boolean {
  const types = typesOf(schema);
  const found = typeOf(node);
  return types.length === 0 || types.includes(found) || (found === 'integer' && types.includes('number'));
}

function checkMap(shape: ShapeSchema, node: LocatedMap, context: ShapeContext): void {
  const { mistakes, path } = context;
  // The known keys are listed once for each mapping.
  let isListed = false;
  for (const [name, { key, value }] of node.members) {
    const at = `${path}/${escapePointer(name)}`;
    const schema = memberSchema(shape, name);
    if (schema === true) continue;
    if (schema !== false) checkShape(schema, value, { ...context, path: at, label: quoted(name) });
    else isListed = reportUnknown(shape, name, { ...context, path: at, node, key, isListed });
  }
  for (const name of shape.required ?? []) {
    if (node.members.has(name)) continue;
    mistakes.error('missing_key', `"${name}" is required in ${titleOf(shape, context)}`, `${path}/${name}`, node);
  }
}

/** The schema of a member, or whether members without one are allowed. */
function memberSchema(shape: ShapeSchema, name: string): TSchema | boolean {
  const { properties = {}, patternProperties = {}, additionalProperties = true } = shape;
  if (Object.hasOwn(properties, name)) return properties[name] ?? false;
  const pattern = Object.keys(patternProperties).find((candidate) => new RegExp(candidate, 'u').test(name));
  return pattern === undefined ? additionalProperties : (patternProperties[pattern] ?? false);
}

interface UnknownKey extends ShapeContext {
  readonly node: LocatedMap;
  readonly key: Place;
  /** The known keys of the mapping have been listed already. */
  readonly isListed: boolean;
}

/** Returns whether the known keys have been listed. */
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
  // Of the known keys, those that are not given yet are meant more likely.
  const missing = known.filter((candidate) => !node.members.has(candidate));
  const meant =
    meantInstead(shape.title ?? label.replaceAll('"', ''), name, known) ||
    suggestion(name, missing) ||
    suggestion(name, known);
  const list = meant === '' && !isListed ? `; known: ${listKeys(shape)}` : '';
  mistakes.error('unknown_key', `unknown key ${quoted(name)}${meant}${list}`, path, key);
  return isListed || list !== '';
}

/** The keys of a mapping, with the form of those that have a pattern. */
function listKeys({ properties = {}, patternProperties = {} }: ShapeSchema): string {
  const tags = Object.keys(patternProperties).some((pattern) => pattern.startsWith('^tag')) ? ['tag.NAME'] : [];
  return [...Object.keys(properties), ...tags].join(', ');
}

const titleOf = (shape: ShapeSchema, { label }: ShapeContext): string =>
  shape.title === undefined ? label : nounOf(shape.title);

/** A schema's title as a part of a sentence: `Variant` is `a variant`. */
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
