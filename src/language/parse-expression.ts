/** Parses the source of an expression: the name of a value, and filters. */
import { isSecretName, isTagKey } from '../kernel/ids.js';
import { DEFAULT, filterType, MAX_FILTERS } from './filters.js';
import { suggestion } from './nearest.js';
import { quoted, shortened } from './printable.js';

const NAMESPACES = ['secrets', 'tags', 'attributes', 'agent'] as const;
const AGENT_FIELDS = ['name', 'node_id'] as const;

/** Start of an expression. */
export const OPEN = '$' + '{{';
export const CLOSE = '}}';

/** The value that an expression names. */
export type Reference =
  | { readonly from: 'secrets' | 'tags' | 'attributes'; readonly name: string }
  | { readonly from: 'agent'; readonly name: (typeof AGENT_FIELDS)[number] };

/** A filter with its arguments: literal texts, and values. */
interface FilterCall {
  readonly name: string;
  readonly given: readonly (string | Reference)[];
}

export interface Expression {
  readonly reference: Reference;
  readonly filters: readonly FilterCall[];
}

/** Returns all values that an expression names, also in arguments. */
export const referencesOf = ({ reference, filters }: Expression): readonly Reference[] => [
  reference,
  ...filters.flatMap(({ given }) => given.filter((argument) => typeof argument !== 'string')),
];

/** Maximum characters in which quotes are matched, because a hostile text has many expressions. */
const MAX_SOURCE = 1_024;

/**
 * Returns the offset of the braces that close the expression which begins at `open`, or -1. Braces in the quotes of an
 * argument do not close it, unless these quotes are never closed.
 */
export function closingOf(text: string, open: number): number {
  const first = text.indexOf(CLOSE, open + OPEN.length);
  const source = text.slice(open, open + MAX_SOURCE);
  const bar = source.indexOf('|');
  if (bar === -1 || first < open + bar) return first;
  const end = indexOutsideQuotes(source, CLOSE, bar);
  return end === -1 ? first : open + end;
}

/** Parses the source of an expression, without braces and without blanks around. Returns a message about a mistake. */
export function parseExpression(source: string): Expression | string {
  if (source === '') return `an expression names a value, such as ${OPEN} tags.KEY }}`;
  // A tag key may contain a bar.
  const plain = parseReference(source);
  const bar = source.indexOf('|');
  if (typeof plain !== 'string') return { reference: plain, filters: [] };
  if (bar === -1) return operatorMend(source) ?? plain;
  if (source[bar + 1] === '|')
    return `"||" is no operator here; ${defaultMend(source.slice(0, bar), source.slice(bar + 2))}`;
  const reference = parseReference(source.slice(0, bar).trim());
  if (typeof reference === 'string') return reference;
  const filters = source.slice(bar + 1);
  const written = splitOutsideQuotes(filters, '|');
  if (!closesQuotes(filters)) return 'a quote in this expression is never closed';
  if (written.length > MAX_FILTERS) return `an expression has at most ${MAX_FILTERS} filters`;
  if (reference.from === 'secrets') return secretMend(reference.name);
  return withFilters(reference, written);
}

const secretMend = (name: string): string =>
  `filters cannot take a secret; write ${OPEN} secrets.${name} }} alone, and store the secret in the form that you need`;

function withFilters(reference: Reference, written: readonly string[]): Expression | string {
  const filters: FilterCall[] = [];
  let type: 'text' | 'list' = 'text';
  for (const source of written) {
    const call = parseFilter(source.trim());
    if (typeof call === 'string') return call;
    const literals = call.given.map((argument) => ('text' in argument ? argument : null));
    const typed = filterType({ name: call.name, given: literals }, type);
    if (typeof typed === 'string') return typed;
    type = typed.gives;
    const given = call.given.map((argument) => ('text' in argument ? argument.text : argument));
    filters.push({ name: call.name, given });
  }
  if (type === 'list') return 'this gives a list, which cannot be inserted; end with | join: " ", first or last';
  return { reference, filters };
}

interface Literal {
  readonly text: string;
  readonly isNumber: boolean;
}

interface ParsedCall {
  readonly name: string;
  readonly given: readonly (Literal | Reference)[];
}

function parseFilter(source: string): ParsedCall | string {
  if (source === '') return 'a filter is missing after "|"';
  const [, name = '', rest = ''] = /^(\w*)\s*(.*)$/s.exec(source) ?? [];
  if (name === '')
    return `${quoted(source)} is not a filter; write the name of a filter after "|", such as | default: "none"`;
  if (rest === '') return { name, given: [] };
  if (!rest.startsWith(':')) return notAnArgument(name, rest);
  const texts = splitOutsideQuotes(rest.slice(1), ',');
  const given: (Literal | Reference)[] = [];
  for (const text of texts.map((argument) => argument.trim())) {
    const argument = parseArgument(text, name);
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

function parseArgument(text: string, filter: string): Literal | Reference | string {
  const literal = /^(["'])(.*)\1$/s.exec(text)?.[2];
  if (literal !== undefined && !literal.includes(text[0] ?? '')) return { text: literal, isNumber: false };
  if (/^-?\d+(\.\d+)?$/.test(text)) return { text, isNumber: true };
  if (text === '') return `an argument of the filter "${filter}" is missing`;
  const reference = parseReference(text);
  if (typeof reference === 'string') {
    return `${quoted(text)} is not an argument of the filter "${filter}"; write a text in quotes, or a value such as tags.KEY, attributes.KEY or agent.name`;
  }
  return reference.from === 'secrets' ? secretMend(reference.name) : reference;
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
function operatorMend(source: string): string | null {
  const [, value = '', habit = '', rest = ''] = /^(\S+)\s+(or|\?\?|if)\s+(.*)$/s.exec(source) ?? [];
  if (habit === '' || typeof parseReference(value) === 'string') return null;
  const unknown = `"${habit}" is no operator here; `;
  return unknown + (habit === 'if' ? 'an expression has no conditions' : defaultMend(value, rest));
}

/** Returns how the value that replaces a missing one is written. */
function defaultMend(value: string, instead: string): string {
  const text = /^\s*("[^"]*"|'[^']*')\s*$/.exec(instead)?.[1] ?? '"…"';
  return `write ${OPEN} ${shortened(value.trim())} | ${DEFAULT}: ${shortened(text)} }}`;
}

/** Returns the reference that a source names, or a message about its mistake. */
function parseReference(source: string): Reference | string {
  const dot = source.indexOf('.');
  const from = dot === -1 ? source : source.slice(0, dot);
  const name = dot === -1 ? '' : source.slice(dot + 1);
  if (!isNamespace(from)) {
    const known = 'secrets.NAME, tags.KEY, attributes.KEY, agent.name or agent.node_id';
    return `${quoted(source)} is not an expression; use ${known}${suggestion(from, NAMESPACES)}`;
  }
  if (from === 'agent') {
    if (isAgentField(name)) return { from, name };
    return name === ''
      ? `"agent" does not name a value; write ${OPEN} agent.name }}`
      : `the agent has no ${quoted(name)}; use agent.name or agent.node_id${suggestion(name, AGENT_FIELDS)}`;
  }
  const sound = from === 'secrets' ? isSecretName(name) : isTagKey(name);
  return sound
    ? { from, name }
    : `${quoted(source)} does not name ${NOUNS[from]}; write ${OPEN} ${from}.${EXAMPLES[from]} }}`;
}

const NOUNS = { secrets: 'a secret', tags: 'a tag', attributes: 'an attribute' } as const;
const EXAMPLES = { secrets: 'NAME', tags: 'KEY', attributes: 'KEY' } as const;

const isNamespace = (text: string): text is (typeof NAMESPACES)[number] => NAMESPACES.some((name) => name === text);
const isAgentField = (text: string): text is (typeof AGENT_FIELDS)[number] =>
  AGENT_FIELDS.some((name) => name === text);
