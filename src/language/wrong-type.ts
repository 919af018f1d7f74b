/** A value of another type than the schema wants: what was expected, what is there, and what to write instead. */
import type { TSchema } from 'typebox';
import { problemOf } from './check-text.js';
import { hasExpression } from './expression.js';
import type { Located, LocatedScalar } from './located.js';
import type { MistakeList } from './mistake.js';
import { quoted, shortened } from './printable.js';
import { branchesOf, shapeOf, typesOf } from './shape-schema.js';

const NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  object: 'a mapping',
  array: 'a list',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'empty',
};

/** The JSON Schema type of a value. */
export function typeOf(node: Located): string {
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

/** Reports that none of a schema's branches takes a value of this type. */
export function reportWrongType(branches: readonly TSchema[], node: Located, context: WrongTypeContext): void {
  const { mistakes, path, label } = context;
  const text = branches.find((branch) => typesOf(branch).includes('string'));
  if (text !== undefined && node.type === 'scalar' && node.value !== null) {
    mistakes.error('unquoted', unquoted(text, node, label), path, node);
    return;
  }
  // That a member may also be empty is no help to somebody who wrote something.
  const wanted = [...new Set(branches.flatMap(typesOf))].filter((type) => type !== 'null');
  const names = wanted.map((type) => NAMES[type] ?? type).join(' or ');
  const message = `${label} must be ${names}, but ${foundAs(node)}${advice(branches, wanted, node)}`;
  mistakes.error('wrong_type', message, path, node);
}

function foundAs(node: Located): string {
  if (node.type !== 'scalar') return node.type === 'map' ? 'this is a mapping' : 'this is a list';
  if (node.value === null) return node.raw === '' ? 'nothing is given' : `this is ${shortened(node.raw)}`;
  return typeof node.value === 'string' ? `this is the string ${quoted(node.value)}` : `this is ${shortened(node.raw)}`;
}

/** A bare `0644` where a text belongs: YAML makes a number of it. */
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

function advice(branches: readonly TSchema[], wanted: readonly string[], node: Located): string {
  if (node.type === 'map' && wanted.includes('array') && [...node.members.keys()].some((key) => /^-\S/.test(key))) {
    return '; a list item begins with "- ", with a space';
  }
  if (node.type === 'map' || node.type === 'list') return '';
  const { value, raw } = node;
  if (branches.some((branch) => listTakes(branch, node))) return `; write [${shortened(raw)}]`;
  if (typeof value !== 'string') return '';
  if (wanted.includes('object') && /^[\w-]+:\S/.test(value)) return '; behind a key stands ": ", with a space';
  if (hasExpression(value)) return '; what an expression gives is always text';
  const spoken = value.toLowerCase();
  if (wanted.includes('boolean') && Object.hasOwn(SPOKEN, spoken))
    return `; write ${SPOKEN[spoken]}${withoutQuotes(raw)}`;
  const number = wanted.includes('integer') || wanted.includes('number');
  return number && /^-?\d{1,15}$/.test(value) ? `; write ${Number(value)} without quotes` : '';
}

/** Somebody who wrote a bare `yes` has no quotes to leave out. */
const withoutQuotes = (raw: string): string => (/^["']/.test(raw) ? ' without quotes' : '');

/** True for a list that could have the value as its only item. */
function listTakes(schema: TSchema, node: Located): boolean {
  const { type, items } = shapeOf(schema);
  return (
    type === 'array' && items !== undefined && branchesOf(items).some((item) => typesOf(item).includes(typeOf(node)))
  );
}
