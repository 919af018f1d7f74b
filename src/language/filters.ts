/** The filters of expressions: what each takes and gives. All are pure, and each result is bounded. */
import { suggestion } from './nearest.js';
import { quoted } from './printable.js';

/** Value between two filters. */
export type FilterValue = string | readonly string[];

type FilterType = 'text' | 'list';
type ArgumentType = 'text' | 'some text' | 'count';

interface Filter {
  readonly takes: FilterType;
  readonly gives: FilterType;
  readonly arguments: readonly ArgumentType[];
  /** How it is written, for messages. */
  readonly example: string;
  /** Called with a value and arguments of its types. */
  apply(value: FilterValue, given: readonly string[]): FilterValue;
}

/** Maximum characters of a result. */
const MAX_FILTERED = 65_536;
/** Maximum filters of one expression. */
export const MAX_FILTERS = 16;
const MAX_COUNT = 1_000_000;

type OfText = (text: string, ...given: readonly string[]) => FilterValue;
type OfList = (items: readonly string[], ...given: readonly string[]) => FilterValue;

const ofText = (
  apply: OfText,
  types: readonly ArgumentType[],
  example: string,
  gives: FilterType = 'text',
): Filter => ({
  takes: 'text',
  gives,
  arguments: types,
  example,
  apply: (value, given) => apply(String(value), ...given),
});

const ofList = (apply: OfList, types: readonly ArgumentType[], example: string): Filter => ({
  takes: 'list',
  gives: 'text',
  arguments: types,
  example,
  apply: (value, given) => apply(typeof value === 'string' ? [value] : value, ...given),
});

/** Filter that replaces a missing value. The other filters never see one. */
export const DEFAULT = 'default';

/** Names as in Liquid, where it has the filter. */
const FILTERS: Readonly<Record<string, Filter>> = {
  [DEFAULT]: ofText((text) => text, ['text'], 'default: "none"'),
  upcase: ofText((text) => text.toUpperCase(), [], 'upcase'),
  downcase: ofText((text) => text.toLowerCase(), [], 'downcase'),
  capitalize: ofText((text) => text.replace(/^./u, (first) => first.toUpperCase()), [], 'capitalize'),
  strip: ofText((text) => text.trim(), [], 'strip'),
  append: ofText((text, end = '') => text + end, ['text'], 'append: ".lan"'),
  prepend: ofText((text, start = '') => start + text, ['text'], 'prepend: "www."'),
  replace: ofText(replace, ['some text', 'text'], 'replace: "_", "-"'),
  remove: ofText((text, part = '') => replace(text, part, ''), ['some text'], 'remove: ".lan"'),
  split: ofText((text, separator = '') => text.split(separator), ['some text'], 'split: ","', 'list'),
  first: ofList((items) => items[0] ?? '', [], 'first'),
  last: ofList((items) => items.at(-1) ?? '', [], 'last'),
  join: ofList((items, separator = '') => joined(items, separator), ['text'], 'join: " "'),
  indent: ofText(indent, ['count'], 'indent: 4'),
  shell_quote: ofText((text) => `'${text.replaceAll("'", `'\\''`)}'`, [], 'shell_quote'),
  to_json: ofText((text) => JSON.stringify(text), [], 'to_json'),
  spread: ofText(spread, ['count'], 'spread: 60'),
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

/** Applies a filter to a value and arguments that `filterProblem` accepts. Throws `FilteredTooLong`. */
export function applyFilter(name: string, value: FilterValue, given: readonly string[]): FilterValue {
  const filter = FILTERS[name];
  if (filter === undefined) throw new RangeError(`there is no filter ${name}`);
  const result = filter.apply(value, given);
  if (typeof result === 'string') bounded(result.length);
  return result;
}

/** A filter as it is written: literal arguments as they are, and null for the name of a value. */
export interface WrittenFilter {
  readonly name: string;
  readonly given: readonly ({ readonly text: string; readonly isNumber: boolean } | null)[];
}

/** Returns the type that a filter gives for a type, or a message about the mistake. */
export function filterType({ name, given }: WrittenFilter, type: FilterType): { gives: FilterType } | string {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (filter === undefined) return unknownFilter(name);
  const write = `write | ${filter.example}`;
  if (given.length !== filter.arguments.length) {
    const wanted = filter.arguments.length;
    const rule = wanted === 0 ? 'takes no argument' : `takes ${wanted === 1 ? 'one argument' : `${wanted} arguments`}`;
    return `the filter "${name}" ${rule}; ${write}`;
  }
  if (filter.takes !== type) {
    return type === 'text'
      ? `the filter "${name}" takes a list, and this is a text; make a list of it first, such as with | split: ","`
      : `the filter "${name}" takes a text, and this is a list; make a text of it first, with | join: " ", first or last`;
  }
  for (const [index, wanted] of filter.arguments.entries()) {
    const argument = given[index];
    if (wanted === 'count' && !isCount(argument))
      return `the filter "${name}" takes a whole number from 1 to ${MAX_COUNT}, without quotes; ${write}`;
    if (wanted !== 'count' && argument?.isNumber) return `the filter "${name}" takes a text, in quotes; ${write}`;
    if (wanted === 'some text' && (argument === null || argument?.text === ''))
      return `the filter "${name}" takes a text in quotes that is not empty; ${write}`;
  }
  return { gives: filter.gives };
}

function isCount(argument: WrittenFilter['given'][number] | undefined): boolean {
  const count = argument?.isNumber ? Number(argument.text) : Number.NaN;
  return Number.isInteger(count) && count >= 1 && count <= MAX_COUNT;
}

function unknownFilter(name: string): string {
  const meant = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
  const known = Object.keys(FILTERS).join(', ');
  if (meant !== undefined) return `unknown filter ${quoted(name)}; here it is called "${meant}"`;
  return `unknown filter ${quoted(name)}; known: ${known}${suggestion(name, Object.keys(FILTERS))}`;
}
