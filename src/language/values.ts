/** Values of expressions and loops, and their types. */
import { quoted } from './printable.js';

export type Value = string | number | boolean | SecretName | readonly Value[] | ValueMap;

/** The name of a secret in the place of its value, which is filled in only where the expression stands. */
export class SecretName {
  readonly secret: string;

  constructor(secret: string) {
    this.secret = secret;
  }
}

export interface ValueMap {
  readonly [name: string]: Value;
}

/** Type of a value. `unknown` is that of the elements of an empty list, which no value has. */
export type ValueType =
  | { readonly type: 'text' | 'number' | 'boolean' | 'secret' | 'unknown' }
  | { readonly type: 'list'; readonly of: ValueType }
  | MapType;

export interface MapType {
  readonly type: 'map';
  readonly fields: ReadonlyMap<string, FieldType>;
  /** Type of the members of a mapping with names of any kind; null for one with fields. */
  readonly of: ValueType | null;
  /** True if a module declares the fields, so that it has no others. */
  readonly isDeclared: boolean;
}

export interface FieldType {
  readonly type: ValueType;
  /** True for a field that some of the maps do not have. */
  readonly optional: boolean;
}

export const TEXT: ValueType = { type: 'text' };
export const NUMBER: ValueType = { type: 'number' };
export const BOOLEAN: ValueType = { type: 'boolean' };
export const SECRET: ValueType = { type: 'secret' };
export const UNKNOWN: ValueType = { type: 'unknown' };

const NOUNS: Readonly<Record<ValueType['type'], string>> = {
  text: 'a text',
  number: 'a number',
  boolean: 'true or false',
  secret: 'a secret',
  unknown: 'nothing',
  list: 'a list',
  map: 'a mapping',
};

export const nounOf = ({ type }: ValueType): string => NOUNS[type];

export const isScalar = ({ type }: ValueType): boolean =>
  type === 'text' || type === 'number' || type === 'boolean' || type === 'unknown';

/** Returns the text of a value that is no list and no mapping, as it is inserted into a text; else its JSON. */
export const textOf = (value: Value): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));

export const isMap = (value: Value): value is ValueMap =>
  typeof value === 'object' && !isList(value) && !(value instanceof SecretName);

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

/** Returns true for a type of which a part is a secret. */
export function holdsSecret(type: ValueType): boolean {
  if (type.type === 'list') return holdsSecret(type.of);
  if (type.type !== 'map') return type.type === 'secret';
  return (
    (type.of !== null && holdsSecret(type.of)) || [...type.fields.values()].some((field) => holdsSecret(field.type))
  );
}

/** Returns the names of the secrets in a value. */
export function secretsInValue(value: Value): readonly string[] {
  if (value instanceof SecretName) return [value.secret];
  return typeof value === 'object' ? Object.values(value).flatMap(secretsInValue) : [];
}

/** A mistake in a value, at a JSON pointer inside it. */
interface ValueProblem {
  readonly path: readonly string[];
  readonly message: string;
}

/** Returns the type of data from a module, or the first mistake in it. */
export function inferType(data: unknown, path: readonly string[] = []): ValueType | { readonly problem: ValueProblem } {
  const wrong = (message: string) => ({ problem: { path, message } });
  if (typeof data === 'string') return TEXT;
  if (typeof data === 'boolean') return BOOLEAN;
  if (typeof data === 'number') return isSound(data) ? NUMBER : wrong(`the number ${data} is too large`);
  if (typeof data !== 'object' || data === null) {
    return wrong('a value is missing; write "" for an empty text, or leave the key out');
  }
  const fields = new Map<string, FieldType>();
  let of: ValueType = UNKNOWN;
  for (const [name, member] of Object.entries(data)) {
    const type = inferType(member, [...path, name]);
    if ('problem' in type) return type;
    fields.set(name, { type, optional: false });
    if (!Array.isArray(data)) continue;
    const both = commonType(of, type);
    if (both === null) {
      const message =
        type.type === of.type
          ? `the fields of this have other types than before, or they are more than ${MAX_FIELDS} different ones`
          : `this is ${nounOf(type)}, and the element before it is ${nounOf(of)}; all have one type`;
      return { problem: { path: [...path, name], message } };
    }
    of = both;
  }
  return Array.isArray(data) ? { type: 'list', of } : mapType(fields);
}

const mapType = (fields: MapType['fields']): MapType => ({ type: 'map', fields, of: null, isDeclared: false });

/** Returns true for a number that is exact. */
export const isSound = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));

/** Returns the type of the elements of a list, or of the members of a mapping; null if these differ in it. */
export function elementType(type: ValueType): ValueType | null {
  if (type.type === 'list') return type.of;
  if (type.type !== 'map') return null;
  if (type.of !== null) return type.of;
  const members = [...type.fields.values()].map((field) => field.type);
  return members.reduce<ValueType | null>((of, member) => (of === null ? null : commonType(of, member)), UNKNOWN);
}

/** Maximum different fields of the mappings in a list, because each one is compared with those of all before it. */
const MAX_FIELDS = 256;

/** Returns the type that values of both types have, or null. A field that one of them lacks becomes optional. */
export function commonType(a: ValueType, b: ValueType): ValueType | null {
  if (a.type === 'unknown') return b;
  if (b.type === 'unknown' || a === b) return a;
  if (a.type === 'list' && b.type === 'list') {
    const of = commonType(a.of, b.of);
    return of === null ? null : { type: 'list', of };
  }
  if (a.type !== 'map' || b.type !== 'map') return a.type === b.type ? a : null;
  if (a.isDeclared || b.isDeclared) return null;
  const fields = new Map<string, FieldType>();
  for (const name of new Set([...a.fields.keys(), ...b.fields.keys()])) {
    const [left, right] = [a.fields.get(name), b.fields.get(name)];
    const type = commonType(left?.type ?? UNKNOWN, right?.type ?? UNKNOWN);
    if (type === null) return null;
    fields.set(name, { type, optional: left?.optional !== false || right?.optional !== false });
  }
  return fields.size > MAX_FIELDS ? null : mapType(fields);
}

/** Formats names for a message: `"a", "b"`, with an ellipsis for more than ten. */
export function listed(names: Iterable<string>): string {
  const all = [...names];
  return [...all.slice(0, 10).map(quoted), ...(all.length > 10 ? ['…'] : [])].join(', ');
}

/** Compares texts by their code points. */
export function byCodePoint(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  const at = left.findIndex((character, index) => character !== right[index]);
  if (at === -1) return left.length - right.length;
  return (left[at]?.codePointAt(0) ?? 0) - (right[at]?.codePointAt(0) ?? -1);
}

/** Characters of a text that cost a filter as much as one part of a list or mapping, which it may sort or write out. */
const PART = 16;

/** Returns how much a filter or a comparison has to look at, in characters. */
export function workOn(value: Value): number {
  if (typeof value === 'string') return 1 + value.length;
  if (typeof value !== 'object') return 1;
  return Object.values(value).reduce((sum: number, member: Value) => sum + PART + workOn(member), 1);
}
