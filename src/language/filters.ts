/** The filters of expressions: what each takes and gives. All are pure, and each result is bounded. */
import {
  bounded,
  divide,
  exact,
  fieldOfEach,
  indent,
  inOrder,
  isAtLeast,
  joined,
  numberOf,
  remainder,
  replace,
  sizeOf,
  split,
  spread,
  yamlOf,
} from './filter-functions.js';
import { suggestion } from './nearest.js';
import { quoted } from './printable.js';
import {
  BOOLEAN,
  holdsSecret,
  isList,
  isScalar,
  NUMBER,
  nounOf,
  TEXT,
  textOf,
  type Value,
  type ValueType,
  workOn,
} from './values.js';
import type { Work } from './work.js';

type FilterType = 'text' | 'list' | 'number' | 'any';
type ArgumentType = 'text' | 'some text' | 'count' | 'number' | 'divisor' | 'field' | 'same';

interface Filter {
  readonly takes: FilterType;
  readonly arguments: readonly ArgumentType[];
  /** How it is written, for messages. */
  readonly example: string;
  /** Returns the type of the result for a type that it takes, or a message about a type that it does not take after all. */
  gives(type: ValueType, given: readonly TypedArgument[]): ValueType | string;
  /** Called with a value and arguments of its types. */
  apply(value: Value, given: readonly string[], work: Work): Value;
}

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

const ofNumber = (
  apply: (number: number, given: number) => number,
  types: readonly ArgumentType[],
  example: string,
): Filter => ({
  takes: 'number',
  arguments: types,
  example,
  gives: () => NUMBER,
  apply: (value, [given]) => exact(apply(Number(value), Number(given))),
});

const ofAny = (
  apply: (value: Value, ...given: readonly string[]) => Value,
  types: readonly ArgumentType[],
  example: string,
  gives: Filter['gives'],
): Filter => ({ takes: 'any', arguments: types, example, gives, apply: (value, given) => apply(value, ...given) });

const replacing = (types: readonly ArgumentType[], example: string): Filter => ({
  takes: 'text',
  arguments: types,
  example,
  gives: () => TEXT,
  apply: (value, [part = '', by = ''], work) => replace(textOf(value), part, by, work),
});

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
  replace: replacing(['some text', 'text'], 'replace: "_", "-"'),
  remove: replacing(['some text'], 'remove: ".lan"'),
  split: ofText(split, ['some text'], 'split: ","', TEXTS),
  first: ofList((items) => items[0] ?? '', [], 'first', element),
  last: ofList((items) => items.at(-1) ?? '', [], 'last', element),
  join: ofList(
    (items, separator = '') => joined(items.map(textOf), separator),
    ['text'],
    'join: " "',
    () => TEXT,
  ),
  sort: ofList((items) => [...items].sort(inOrder), [], 'sort', same),
  uniq: ofList((items) => [...new Set(items)], [], 'uniq', same),
  map: ofAny(fieldOfEach, ['field'], 'map: "address"', typeOfField),
  size: ofAny(sizeOf, [], 'size', typeOfSize),
  plus: ofNumber((number, other) => number + other, ['number'], 'plus: 1'),
  minus: ofNumber((number, other) => number - other, ['number'], 'minus: 1'),
  times: ofNumber((number, other) => number * other, ['number'], 'times: 2'),
  divided_by: ofNumber(divide, ['divisor'], 'divided_by: 2'),
  modulo: ofNumber(remainder, ['divisor'], 'modulo: 2'),
  round: ofNumber(Math.round, [], 'round'),
  floor: ofNumber(Math.floor, [], 'floor'),
  ceil: ofNumber(Math.ceil, [], 'ceil'),
  to_number: ofText(numberOf, [], 'to_number', NUMBER),
  indent: ofText(indent, ['count'], 'indent: 4'),
  shell_quote: ofText((text) => `'${text.replaceAll("'", `'\\''`)}'`, [], 'shell_quote'),
  to_json: ofAny(
    (value) => JSON.stringify(value),
    [],
    'to_json',
    () => TEXT,
  ),
  to_yaml: {
    takes: 'any',
    arguments: [],
    example: 'to_yaml',
    gives: () => TEXT,
    apply: (value, _, work) => {
      // Each level copies the text of those inside it, and patterns look at each text.
      work.read(2 * workOn(value));
      return yamlOf(value, '').replace(/^\n/, '');
    },
  },
  spread: ofText(spread, ['count'], 'spread: 60'),
  at_least_version: ofText(isAtLeast, ['some text'], 'at_least_version: "12.4"', BOOLEAN),
};

/** Filters that see the shape of a value only, or only one field, so that secrets in other parts stay out. */
const SHAPES: readonly string[] = ['size', 'map'];

/** How another language or an earlier habit calls a filter. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  upper: 'upcase',
  lower: 'downcase',
  trim: 'strip',
  d: DEFAULT,
  quote: 'shell_quote',
  tojson: 'to_json',
  json: 'to_json',
  yaml: 'to_yaml',
  to_nice_yaml: 'to_yaml',
  to_nice_json: 'to_json',
  length: 'size',
  count: 'size',
  unique: 'uniq',
  int: 'to_number',
  float: 'to_number',
  attribute: 'map',
};

const NOTHING: readonly string[] = [];

/** Applies a filter to a value and arguments that `filterType` accepts. Throws `EvaluationError`. */
export function applyFilter(name: string, value: Value, given: readonly Value[], work: Work): Value {
  const filter = FILTERS[name];
  if (filter === undefined) throw new RangeError(`there is no filter ${name}`);
  work.read(workOn(value));
  const result = filter.apply(value, given.length === 0 ? NOTHING : given.map(textOf), work);
  if (typeof result === 'string') bounded(result.length);
  work.read(workOn(result));
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
  const seesSecrets = !SHAPES.includes(name) || type.type === 'secret';
  if (seesSecrets && holdsSecret(type))
    return 'filters cannot take a secret; store the secret in the form that you need';
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
  if (filter.takes === 'number' && type.type !== 'number' && type.type !== 'unknown') {
    const mend = type.type === 'text' ? '; make a number of it first, with | to_number' : '';
    return `the filter "${name}" takes a number, and this is ${nounOf(type)}${mend}`;
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
  const gives = filter.gives(type, given);
  return typeof gives === 'string' || seesSecrets || !holdsSecret(gives) ? gives : 'a filter cannot give secrets';
}

/** Types of arguments that values of an agent may have. */
const GIVEN: readonly ArgumentType[] = ['same', 'text', 'number', 'divisor'];

/** Returns what a filter takes instead of an argument, or null for one that it takes. */
function argumentProblem(wanted: ArgumentType, { type, literal }: TypedArgument, value: ValueType): string | null {
  // The value of a fact of one's own is checked for each agent.
  if (literal === undefined && type.type === 'unknown' && GIVEN.includes(wanted)) return null;
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
  if (wanted === 'number' || wanted === 'divisor') {
    if (type.type !== 'number') return 'a number, without quotes';
    return wanted === 'divisor' && literal === 0 ? 'a number other than 0' : null;
  }
  if (wanted === 'field') return typeof literal === 'string' ? null : 'the name of a field, in quotes';
  const isText = literal === undefined ? isScalar(type) : typeof literal === 'string';
  return isText ? null : 'a text, in quotes';
}

/** Returns the type of a list of one field of each element. */
function typeOfField(type: ValueType, [field]: readonly TypedArgument[]): ValueType | string {
  if (type.type === 'unknown' || (type.type === 'list' && type.of.type === 'unknown'))
    return { type: 'list', of: TEXT };
  const name = String(field?.literal);
  if (type.type !== 'list' || type.of.type !== 'map') {
    const found = type.type === 'list' ? `the elements of this are ${nounOf(type.of)}` : `this is ${nounOf(type)}`;
    return `the filter "map" takes a list of mappings, and ${found}`;
  }
  const found = type.of.of === null ? type.of.fields.get(name) : { type: type.of.of, optional: true };
  if (found === undefined) return `no element has a field ${quoted(name)}${suggestion(name, type.of.fields.keys())}`;
  if (found.optional) return `some elements have no ${quoted(name)}, so "map" cannot take it; use a loop`;
  return { type: 'list', of: found.type };
}

function typeOfSize(type: ValueType): ValueType | string {
  if (type.type !== 'number' && type.type !== 'boolean') return NUMBER;
  return `the filter "size" takes a list, a mapping or a text, and this is ${nounOf(type)}`;
}

function unknownFilter(name: string): string {
  const meant = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
  const known = Object.keys(FILTERS).join(', ');
  if (meant !== undefined) return `unknown filter ${quoted(name)}; here it is called "${meant}"`;
  return `unknown filter ${quoted(name)}; known: ${known}${suggestion(name, Object.keys(FILTERS))}`;
}
