/** The filters of expressions: what each takes and gives. All are pure, and each result is bounded. */
import { suggestion } from './nearest.js';
import { quoted } from './printable.js';
import { BOOLEAN, holdsSecret, isList, isScalar, nounOf, TEXT, textOf, type Value, type ValueType } from './values.js';

type FilterType = 'text' | 'list' | 'any';
type ArgumentType = 'text' | 'some text' | 'count' | 'same';

interface Filter {
  readonly takes: FilterType;
  readonly arguments: readonly ArgumentType[];
  /** How it is written, for messages. */
  readonly example: string;
  /** Returns the type of the result for a type that it takes. */
  gives(type: ValueType): ValueType;
  /** Called with a value and arguments of its types. */
  apply(value: Value, given: readonly string[]): Value;
}

/** Maximum characters of a result. */
const MAX_FILTERED = 65_536;
/** Maximum filters of one expression. */
export const MAX_FILTERS = 16;
const MAX_COUNT = 1_000_000;

const TEXTS: ValueType = { type: 'list', of: TEXT };

const ofText = (
  apply: (text: string, ...given: readonly string[]) => Value,
  types: readonly ArgumentType[],
  example: string,
  gives: ValueType = TEXT,
): Filter => ({
  takes: 'text',
  arguments: types,
  example,
  gives: () => gives,
  apply: (value, given) => apply(textOf(value), ...given),
});

const ofList = (
  apply: (items: readonly Value[], ...given: readonly string[]) => Value,
  types: readonly ArgumentType[],
  example: string,
  gives: Filter['gives'],
): Filter => ({
  takes: 'list',
  arguments: types,
  example,
  gives,
  apply: (value, given) => apply(isList(value) ? value : [value], ...given),
});

const ofAny = (
  apply: (value: Value) => Value,
  types: readonly ArgumentType[],
  example: string,
  gives: Filter['gives'],
): Filter => ({ takes: 'any', arguments: types, example, gives, apply });

const same = (type: ValueType): ValueType => type;
/** Type of an element of a list; a text for an empty one. */
const element = (type: ValueType): ValueType => (type.type === 'list' && type.of.type !== 'unknown' ? type.of : TEXT);

/** Filter that replaces a missing value. The other filters never see one. */
export const DEFAULT = 'default';

/** Names as in Liquid, where it has the filter. */
const FILTERS: Readonly<Record<string, Filter>> = {
  [DEFAULT]: ofAny((value) => value, ['same'], 'default: "none"', same),
  upcase: ofText((text) => text.toUpperCase(), [], 'upcase'),
  downcase: ofText((text) => text.toLowerCase(), [], 'downcase'),
  capitalize: ofText((text) => text.replace(/^./u, (first) => first.toUpperCase()), [], 'capitalize'),
  strip: ofText((text) => text.trim(), [], 'strip'),
  append: ofText((text, end = '') => text + end, ['text'], 'append: ".lan"'),
  prepend: ofText((text, start = '') => start + text, ['text'], 'prepend: "www."'),
  replace: ofText(replace, ['some text', 'text'], 'replace: "_", "-"'),
  remove: ofText((text, part = '') => replace(text, part, ''), ['some text'], 'remove: ".lan"'),
  split: ofText(split, ['some text'], 'split: ","', TEXTS),
  first: ofList((items) => items[0] ?? '', [], 'first', element),
  last: ofList((items) => items.at(-1) ?? '', [], 'last', element),
  join: ofList(
    (items, separator = '') => joined(items.map(textOf), separator),
    ['text'],
    'join: " "',
    () => TEXT,
  ),
  indent: ofText(indent, ['count'], 'indent: 4'),
  shell_quote: ofText((text) => `'${text.replaceAll("'", `'\\''`)}'`, [], 'shell_quote'),
  to_json: ofAny(
    (value) => JSON.stringify(value),
    [],
    'to_json',
    () => TEXT,
  ),
  spread: ofText(spread, ['count'], 'spread: 60'),
  at_least_version: ofText(isAtLeast, ['some text'], 'at_least_version: "12.4"', BOOLEAN),
};

/** How another language or an earlier habit calls a filter. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  upper: 'upcase',
  lower: 'downcase',
  trim: 'strip',
  d: DEFAULT,
  quote: 'shell_quote',
  tojson: 'to_json',
  json: 'to_json',
};

/** Thrown by a filter whose result is too long. */
export class FilteredTooLong extends Error {}

function bounded(length: number): void {
  if (length > MAX_FILTERED) throw new FilteredTooLong();
}

/** Splits a text; an empty one has no parts. */
function split(text: string, separator = ''): readonly string[] {
  return text === '' ? [] : text.split(separator);
}

function replace(text: string, part = '', by = ''): string {
  return joined(text.split(part), by);
}

function joined(items: readonly string[], separator: string): string {
  bounded(items.reduce((sum, { length }) => sum + length, 0) + Math.max(0, items.length - 1) * separator.length);
  return items.join(separator);
}

/** Indents every line but the first, which stands where the expression stands. Empty lines stay empty. */
function indent(text: string, count = '0'): string {
  const lines = text.split('\n');
  bounded(text.length + lines.length * Number(count));
  const space = ' '.repeat(Number(count));
  return lines.map((line, index) => (index === 0 || line === '' ? line : space + line)).join('\n');
}

/**
 * Returns a whole number from 0 to below `count`, always the same for a text, and evenly spread over many texts: FNV-1a
 * of its UTF-16 units, whose bits the last step of MurmurHash3 mixes, because that of like texts differ in few.
 */
function spread(text: string, count = '1'): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return String(((hash ^ (hash >>> 16)) >>> 0) % Number(count));
}

/** Compares versions number by number: "12.10" is at least "12.4". Texts between the numbers do not count. */
function isAtLeast(version: string, wanted = ''): boolean {
  const [have, need] = [numbersOf(version), numbersOf(wanted)];
  for (const [index, number] of need.entries()) {
    const own = have[index] ?? 0n;
    if (own !== number) return own > number;
  }
  return true;
}

const numbersOf = (version: string): readonly bigint[] => (version.match(/\d+/g) ?? []).slice(0, 16).map(toNumber);

const toNumber = (digits: string): bigint => BigInt(digits.slice(0, 64));

/** Applies a filter to a value and arguments that `filterType` accepts. Throws `FilteredTooLong`. */
export function applyFilter(name: string, value: Value, given: readonly Value[]): Value {
  const filter = FILTERS[name];
  if (filter === undefined) throw new RangeError(`there is no filter ${name}`);
  const result = filter.apply(value, given.map(textOf));
  if (typeof result === 'string') bounded(result.length);
  return result;
}

/** An argument with its type; `literal` is absent for the name of a value. */
export interface TypedArgument {
  readonly type: ValueType;
  readonly literal?: string | number | boolean;
}

/** Returns the type that a filter gives for a type, or a message about the mistake. */
export function filterType(name: string, given: readonly TypedArgument[], type: ValueType): ValueType | string {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (filter === undefined) return unknownFilter(name);
  if (holdsSecret(type)) return 'filters cannot take a secret; store the secret in the form that you need';
  const write = `write | ${filter.example}`;
  if (given.length !== filter.arguments.length) {
    const wanted = filter.arguments.length;
    const rule = wanted === 0 ? 'takes no argument' : `takes ${wanted === 1 ? 'one argument' : `${wanted} arguments`}`;
    return `the filter "${name}" ${rule}; ${write}`;
  }
  if (filter.takes === 'list' && type.type !== 'list' && type.type !== 'unknown') {
    const mend = type.type === 'text' ? '; make a list of it first, such as with | split: ","' : '';
    return `the filter "${name}" takes a list, and this is ${nounOf(type)}${mend}`;
  }
  if (filter.takes === 'list' && type.type === 'list' && !isScalar(type.of)) {
    return `the filter "${name}" takes a list of texts, and the elements of this are ${nounOf(type.of)}`;
  }
  if (filter.takes === 'text' && !isScalar(type)) {
    const mend = type.type === 'list' ? '; make a text of it first, with | join: " ", first or last' : '';
    return `the filter "${name}" takes a text, and this is ${nounOf(type)}${mend}`;
  }
  for (const [index, wanted] of filter.arguments.entries()) {
    const argument = given[index];
    const problem = argument === undefined ? null : argumentProblem(wanted, argument, type);
    if (problem === null) continue;
    const isOther = wanted === 'same' && type.type !== 'text';
    return isOther ? `the filter "${name}" takes ${problem}` : `the filter "${name}" takes ${problem}; ${write}`;
  }
  return filter.gives(type);
}

/** Returns what a filter takes instead of an argument, or null for one that it takes. */
function argumentProblem(wanted: ArgumentType, { type, literal }: TypedArgument, value: ValueType): string | null {
  if (wanted === 'same') {
    if (type.type === value.type || value.type === 'unknown') return null;
    return value.type === 'text'
      ? 'a text, in quotes'
      : `${nounOf(value)} here, like the value, and this is ${nounOf(type)}`;
  }
  if (wanted === 'count') {
    const isCount = typeof literal === 'number' && Number.isInteger(literal) && literal >= 1 && literal <= MAX_COUNT;
    return isCount ? null : `a whole number from 1 to ${MAX_COUNT}, without quotes`;
  }
  if (wanted === 'some text')
    return typeof literal === 'string' && literal !== '' ? null : 'a text in quotes that is not empty';
  const isText = literal === undefined ? isScalar(type) : typeof literal === 'string';
  return isText ? null : 'a text, in quotes';
}

function unknownFilter(name: string): string {
  const meant = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
  const known = Object.keys(FILTERS).join(', ');
  if (meant !== undefined) return `unknown filter ${quoted(name)}; here it is called "${meant}"`;
  return `unknown filter ${quoted(name)}; known: ${known}${suggestion(name, Object.keys(FILTERS))}`;
}
