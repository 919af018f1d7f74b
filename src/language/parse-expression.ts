/** Parses the source of an expression: the name of a value, and filters. */
import { PACKAGE_NAME } from '../kernel/facts.js';
import { isSecretName, isTagKey } from '../kernel/ids.js';
import { DEFAULT, MAX_FILTERS } from './filters.js';
import { suggestion } from './nearest.js';
import { quoted, shortened } from './printable.js';
import { isSound } from './values.js';

const NAMESPACES = ['secrets', 'tags', 'attributes', 'facts', 'agent', 'each', 'inputs', 'shared'] as const;
const AGENT_FIELDS = ['name', 'node_id'] as const;

/** Start of an expression. */
export const OPEN = '$' + '{{';
export const CLOSE = '}}';

/** Where an expression stands. */
export interface Dialect {
  /** Start of an expression there, for messages. */
  readonly open: string;
  /** True where loops and parameters give names of their own. */
  readonly hasLocals: boolean;
}

const IN_TEXTS: Dialect = { open: OPEN, hasLocals: false };
export const IN_TEMPLATES: Dialect = { open: '{{', hasLocals: true };

/** Returns how a reference is written. */
export const written = ({ from, name }: Reference): string => (from === 'local' ? name : `${from}.${name}`);

/** The value that an expression names. */
export type Reference =
  | { readonly from: 'secrets' | 'tags' | 'shared'; readonly name: string }
  | { readonly from: 'agent'; readonly name: (typeof AGENT_FIELDS)[number] }
  | PathReference;

/**
 * The element of a loop (`key`, or `value` and the names of fields inside it), an input, a fact of the agent, or a name that a
 * template gives, and the names of fields inside it.
 */
export interface PathReference {
  readonly from: 'each' | 'inputs' | 'attributes' | 'facts' | 'local';
  /** The path as it is written. */
  readonly name: string;
  readonly path: readonly string[];
}

/** A value that is written as it is. */
export interface Literal {
  readonly literal: string | number | boolean;
}

/** A filter with its arguments. */
export interface FilterCall {
  readonly name: string;
  readonly given: readonly (Literal | Reference)[];
}

export interface Expression {
  readonly reference: Reference;
  readonly filters: readonly FilterCall[];
}

/** Returns all values that an expression names, also in arguments. */
export const referencesOf = ({ reference, filters }: Expression): readonly Reference[] => [
  reference,
  ...filters.flatMap(({ given }) => given.filter((argument) => 'from' in argument)),
];

/** Maximum characters in which quotes are matched, because a hostile text has many expressions. */
const MAX_SOURCE = 1_024;

/**
 * Returns the offset of the braces that close the expression which begins at `open`, or -1. Braces in the quotes of an
 * argument do not close it, unless these quotes are never closed.
 */
export function closingOf(text: string, open: number): number {
  const first = text.indexOf(CLOSE, open + OPEN.length);
  const bar = text.slice(open, open + MAX_SOURCE).indexOf('|');
  return bar === -1 || first < open + bar ? first : closedBy(text, CLOSE, open, open + bar);
}

/** Returns the offset of what closes something that begins at `open`, where quotes count from `from`; -1 without an end. */
export function closedBy(text: string, close: string, open: number, from: number): number {
  const end = indexOutsideQuotes(text.slice(open, open + MAX_SOURCE), close, from - open);
  return end === -1 ? text.indexOf(close, from) : open + end;
}

/** Parses the source of an expression, without braces and without blanks around. Returns a message about a mistake. */
export function parseExpression(source: string, dialect = IN_TEXTS): Expression | string {
  const { open } = dialect;
  if (source === '') return `an expression names a value, such as ${open} tags.KEY }}`;
  // A tag key may contain a bar.
  const plain = parseReference(source, dialect);
  const bar = source.indexOf('|');
  if (typeof plain !== 'string') return { reference: plain, filters: [] };
  if (bar === -1) return operatorMend(source, dialect) ?? plain;
  if (source[bar + 1] === '|')
    return `"||" is no operator here; ${defaultMend(source.slice(0, bar), source.slice(bar + 2), open)}`;
  const reference = parseReference(source.slice(0, bar).trim(), dialect);
  if (typeof reference === 'string') return reference;
  const filters = source.slice(bar + 1);
  const calls = splitOutsideQuotes(filters, '|');
  if (!closesQuotes(filters)) return 'a quote in this expression is never closed';
  if (calls.length > MAX_FILTERS) return `an expression has at most ${MAX_FILTERS} filters`;
  if (reference.from === 'secrets') return secretMend(reference.name, open);
  return withFilters(reference, calls, dialect);
}

const secretMend = (name: string, open: string): string =>
  `filters cannot take a secret; write ${open} secrets.${name} }} alone, and store the secret in the form that you need`;

function withFilters(reference: Reference, calls: readonly string[], dialect: Dialect): Expression | string {
  const filters: FilterCall[] = [];
  for (const source of calls) {
    const call = parseFilter(source.trim(), dialect);
    if (typeof call === 'string') return call;
    filters.push(call);
  }
  return { reference, filters };
}

function parseFilter(source: string, dialect: Dialect): FilterCall | string {
  if (source === '') return 'a filter is missing after "|"';
  const [, name = '', rest = ''] = /^(\w*)\s*(.*)$/s.exec(source) ?? [];
  if (name === '')
    return `${quoted(source)} is not a filter; write the name of a filter after "|", such as | default: "none"`;
  if (rest === '') return { name, given: [] };
  if (!rest.startsWith(':')) return notAnArgument(name, rest);
  const given: (Literal | Reference)[] = [];
  for (const text of splitOutsideQuotes(rest.slice(1), ',')) {
    const argument = parseArgument(text.trim(), name, dialect);
    if (typeof argument === 'string') return argument;
    given.push(argument);
  }
  return { name, given };
}

function notAnArgument(name: string, rest: string): string {
  const inside = /^\((.*)\)$/s.exec(rest)?.[1]?.trim();
  if (inside !== undefined) {
    return `arguments follow a colon here, without parentheses; write | ${name}${inside === '' ? '' : `: ${shortened(inside)}`}`;
  }
  if (/^["']/.test(rest)) return `a colon is missing before the argument; write | ${name}: ${shortened(rest)}`;
  return `${quoted(rest)} after the filter "${name}" is not valid; arguments follow a colon, such as | default: "none"`;
}

function parseArgument(text: string, filter: string, dialect: Dialect): Literal | Reference | string {
  const literal = parseLiteral(text);
  if (literal !== null) return literal;
  if (text === '') return `an argument of the filter "${filter}" is missing`;
  const reference = parseReference(text, dialect);
  if (typeof reference === 'string') {
    return `${quoted(text)} is not an argument of the filter "${filter}"; write a text in quotes, or a value such as tags.KEY, attributes.KEY or agent.name`;
  }
  return reference.from === 'secrets' ? secretMend(reference.name, dialect.open) : reference;
}

/** Returns the value of a text in quotes, a number, `true` or `false`; null for other sources. */
export function parseLiteral(source: string): Literal | null {
  const text = /^(["'])(.*)\1$/s.exec(source)?.[2];
  if (text !== undefined && !text.includes(source[0] ?? '')) return { literal: text };
  if (/^-?\d{1,17}(\.\d{1,17})?$/.test(source) && isSound(Number(source))) return { literal: Number(source) };
  return source === 'true' || source === 'false' ? { literal: source === 'true' } : null;
}

/** Returns the first offset from `from` where `searched` stands outside quotes, or -1; also if a quote is never closed. */
function indexOutsideQuotes(text: string, searched: string, from: number): number {
  let quote = '';
  for (let at = from; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (quote !== '') quote = character === quote ? '' : quote;
    else if (text.startsWith(searched, at)) return at;
    else if (character === '"' || character === "'") quote = character;
  }
  return -1;
}

/** Splits a text at a character that stands in no quotes. */
function splitOutsideQuotes(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = indexOutsideQuotes(text, separator, 0); at !== -1; at = indexOutsideQuotes(text, separator, from)) {
    parts.push(text.slice(from, at));
    from = at + 1;
  }
  return [...parts, text.slice(from)];
}

/** Returns whether every quote of a text is closed. */
const closesQuotes = (text: string): boolean => !/["']/.test(text.replaceAll(/"[^"]*"|'[^']*'/g, ''));

/** Returns a message about an operator of another language, or null. */
function operatorMend(source: string, dialect: Dialect): string | null {
  const [, value = '', habit = '', rest = ''] = /^(\S+)\s+(or|\?\?|if)\s+(.*)$/s.exec(source) ?? [];
  if (habit === '' || typeof parseReference(value, dialect) === 'string') return null;
  const unknown = `"${habit}" is no operator here; `;
  return unknown + (habit === 'if' ? 'an expression has no conditions' : defaultMend(value, rest, dialect.open));
}

/** Returns how the value that replaces a missing one is written. */
function defaultMend(value: string, instead: string, open: string): string {
  const text = /^\s*("[^"]*"|'[^']*')\s*$/.exec(instead)?.[1] ?? '"…"';
  return `write ${open} ${shortened(value.trim())} | ${DEFAULT}: ${shortened(text)} }}`;
}

/** Beginnings of expressions that GitHub Actions and other programs write in the same braces. */
const FOREIGN: readonly string[] = ['env', 'github', 'gitea', 'vars', 'matrix', 'steps', 'needs', 'runner', 'job'];

/** Returns the reference that a source names, or a message about its mistake. */
function parseReference(source: string, { open, hasLocals }: Dialect): Reference | string {
  const dot = source.indexOf('.');
  const from = dot === -1 ? source : source.slice(0, dot);
  const name = dot === -1 ? '' : source.slice(dot + 1);
  if (!isNamespace(from)) {
    const path = source.split('.');
    if (hasLocals && path.every((part) => FIELD.test(part))) return { from: 'local', name: source, path };
    if (/^item\b/.test(source)) return 'the element of a loop is each.value here, and its key is each.key';
    const known = 'inputs.NAME, secrets.NAME, tags.KEY, attributes.KEY, facts.NAME, agent.name or agent.node_id';
    const foreign = FOREIGN.includes(from) ? `; what another program is to read is written "$${open}"` : '';
    return `${quoted(source)} is not an expression; use ${known}${suggestion(from, NAMESPACES)}${foreign}`;
  }
  if (from === 'agent') {
    if (isAgentField(name)) return { from, name };
    return name === ''
      ? `"agent" does not name a value; write ${open} agent.name }}`
      : `the agent has no ${quoted(name)}; use agent.name or agent.node_id${suggestion(name, AGENT_FIELDS)}`;
  }
  if (from === 'each') return parseElement(name, source);
  if (from === 'inputs' || from === 'attributes' || from === 'facts') return parsePath(from, name, open);
  const sound = from === 'secrets' ? isSecretName(name) : from === 'shared' ? FIELD.test(name) : isTagKey(name);
  return sound
    ? { from, name }
    : `${quoted(source)} does not name ${NOUNS[from]}; write ${open} ${from}.${EXAMPLES[from]} }}`;
}

/** Returns the reference to an element of a loop; `name` is what follows `each.`. */
function parseElement(name: string, source: string): Reference | string {
  const path = name.split('.');
  const known = 'write each.key, each.value, or each.value.FIELD for a field of it';
  if (path[0] !== 'value' && (path[0] !== 'key' || path.length > 1)) {
    return `${quoted(source)} names no value; ${known}${suggestion(path[0] ?? '', ['key', 'value'])}`;
  }
  return path.every((part) => FIELD.test(part)) ? { from: 'each', name, path } : noField(source);
}

/** Attribute whose members are the versions of packages. An agent reports those that its modules name. */
export const PACKAGES = 'packages';

/** Returns the names of a path. The name of a package may contain dots. */
export function pathOf(from: string, name: string): readonly string[] {
  const isPackage = from === 'attributes' && name.startsWith(`${PACKAGES}.`);
  return isPackage ? [PACKAGES, name.slice(PACKAGES.length + 1)] : name.split('.');
}

/** Returns the reference to an input or a fact; `name` is what follows `inputs.`. */
function parsePath(from: 'inputs' | 'attributes' | 'facts', name: string, open: string): Reference | string {
  if (name === '')
    return `"${from}" does not name a value; write ${open} ${from}.${from === 'attributes' ? 'KEY' : 'NAME'} }}`;
  const path = pathOf(from, name);
  if (from === 'attributes' && path[0] === PACKAGES) {
    return PACKAGE_NAME.test(path[1] ?? '') ? { from, name, path } : noPackage(`${from}.${name}`);
  }
  return path.every((part) => FIELD.test(part)) ? { from, name, path } : noField(`${from}.${name}`);
}

const noPackage = (source: string): string =>
  `${quoted(source)} does not name a package; write attributes.${PACKAGES}.NAME, such as attributes.${PACKAGES}.nginx`;

const FIELD = /^\w[\w-]*$/;

const noField = (source: string): string =>
  `${quoted(source)} names no value; the name of a field has letters, digits, "_" and "-"`;

const NOUNS = { secrets: 'a secret', tags: 'a tag', shared: 'a shared value' } as const;
const EXAMPLES = { secrets: 'NAME', tags: 'KEY', shared: 'NAME' } as const;

const isNamespace = (text: string): text is (typeof NAMESPACES)[number] => NAMESPACES.some((name) => name === text);
const isAgentField = (text: string): text is (typeof AGENT_FIELDS)[number] =>
  AGENT_FIELDS.some((name) => name === text);
