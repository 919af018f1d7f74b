/** Selectors of agents, in the grammar of Kubernetes label selectors. */

import { Fault } from '../kernel/fault.js';
import { isTagKey, TAG_KEY_RULE } from '../kernel/ids.js';
import { type AgentLabels, labelOf, showClause } from './clause.js';
import { quoted } from './printable.js';
import type { AttributeClause } from './schema.js';

export type SelectorTerm =
  | { readonly key: string; readonly operator: 'in' | 'not in'; readonly values: ReadonlySet<string> }
  | { readonly key: string; readonly operator: 'exists' | 'does not exist' };

export interface Selector {
  /** Original text. */
  readonly text: string;
  /**
   * Terms that must all match; empty for `*`. A key is a built-in attribute, `tag.` and the name of a tag, or, in a machine
   * selector alone, `node_id`.
   */
  readonly terms: readonly SelectorTerm[];
  /** Selectors of which one must match as well [default: none has to]. */
  readonly within?: readonly Selector[];
}

const ATTRIBUTES: ReadonlySet<string> = new Set(['arch', 'distro', 'init_system', 'platform', 'version']);

/** Maximum length of a selector in characters. */
const MAX_LENGTH = 4096;

/**
 * Parses a selector. Throws `invalid_selector` with the position of the mistake in `data.position`, from 1; it is one past
 * the end when something is missing there.
 */
export function parseSelector(text: string): Selector {
  if (text.length > MAX_LENGTH)
    throw selectorFault(text, MAX_LENGTH, `a selector has at most ${MAX_LENGTH} characters`);
  const reader = new SelectorReader(text);
  const star = reader.accept('*');
  if (star) {
    if (reader.next.type !== 'end') throw reader.expected('nothing else beside "*"');
    return { text, terms: [] };
  }
  const terms = [readTerm(reader)];
  while (reader.next.type !== 'end') {
    reader.accept(',');
    terms.push(readTerm(reader));
  }
  return { text, terms };
}

/**
 * Returns the selector of an assignment, which matches within its scope alone: machines that one of several selectors of grants
 * matches; null or absent for all. Throws `invalid_selector`.
 */
export const scopedSelector = (selector: string, scope: readonly string[] | null | undefined): Selector => ({
  ...parseSelector(selector),
  ...(scope != null && { within: scope.map(parseMachineSelector) }),
});

/**
 * Parses a selector of grants: its keys are tags and `node_id`, because an agent reports its attributes itself. Throws
 * `invalid_selector`.
 */
export function parseMachineSelector(text: string): Selector {
  const { terms } = parseSelector(text);
  const own = terms.find(({ key }) => !key.startsWith('tag.'));
  if (own !== undefined) {
    throw new Fault(
      'invalid_selector',
      `selector ${quoted(text)} names ${own.key}, which a machine reports about itself`,
      { hint: 'select the machines of a grant by tags, or by node_id' },
    );
  }
  return { text, terms: terms.map((term) => (term.key === 'tag.node_id' ? { ...term, key: 'node_id' } : term)) };
}

/** Returns true when every term matches the agent. */
export const matches = ({ terms, within }: Selector, agent: AgentLabels): boolean =>
  terms.every((term) => holds(term, labelOf(agent, term.key))) &&
  (within === undefined || within.some((one) => matches(one, agent)));

/** Returns the selector that matches the agents of a clause. */
export const selectorOfClause = (clause: AttributeClause): Selector => ({
  text: showClause(clause),
  terms: Object.entries(clause).map(([key, value]) => ({ key, operator: 'in', values: new Set([value]) })),
});

/** Returns true when every agent that matches all terms of `narrow` certainly matches `wide`, whatever its labels. */
export const isWithin = (narrow: Selector, wide: Selector): boolean =>
  wide.terms.every((term) => narrow.terms.some((own) => own.key === term.key && implies(own, term)));

/** Returns true when every value, and a missing one, for which `narrow` holds makes `wide` hold. */
function implies(narrow: SelectorTerm, wide: SelectorTerm): boolean {
  switch (narrow.operator) {
    case 'in':
      return [...narrow.values].every((value) => holds(wide, value));
    case 'does not exist':
      return holds(wide, undefined);
    case 'exists':
      return wide.operator === 'exists';
    case 'not in':
      return wide.operator === 'not in' && [...wide.values].every((value) => narrow.values.has(value));
  }
}

/** A missing key differs from every value. */
function holds(term: SelectorTerm, value: string | undefined): boolean {
  switch (term.operator) {
    case 'exists':
      return value !== undefined;
    case 'does not exist':
      return value === undefined;
    case 'in':
      return value !== undefined && term.values.has(value);
    case 'not in':
      return value === undefined || !term.values.has(value);
  }
}

function readTerm(reader: SelectorReader): SelectorTerm {
  if (reader.accept('!')) return { key: readKey(reader), operator: 'does not exist' };
  const key = readKey(reader);
  if (reader.accept('=') || reader.accept('==')) return { key, operator: 'in', values: new Set([readValue(reader)]) };
  if (reader.accept('!=')) return { key, operator: 'not in', values: new Set([readValue(reader)]) };
  const { next } = reader;
  if (next.type !== 'word' || (next.text !== 'in' && next.text !== 'notin')) return { key, operator: 'exists' };
  reader.advance();
  return { key, operator: next.text === 'in' ? 'in' : 'not in', values: readSet(reader) };
}

function readKey(reader: SelectorReader): string {
  const { next } = reader;
  if (next.type !== 'word') throw reader.expected('a key');
  if (ATTRIBUTES.has(next.text)) {
    reader.advance();
    return next.text;
  }
  const name = next.text.startsWith('tag.') ? next.text.slice('tag.'.length) : next.text;
  if (!isTagKey(name)) throw reader.fail(`${quoted(next.text)} is not a key: ${TAG_KEY_RULE}`);
  reader.advance();
  return `tag.${name}`;
}

/** Reads a value, which may be empty: `key=` matches a tag without a value. */
function readValue(reader: SelectorReader): string {
  const { next } = reader;
  if (next.type === 'word') {
    reader.advance();
    return next.text;
  }
  if (next.type === ',' || next.type === 'end' || next.type === ')') return '';
  throw reader.expected('a value');
}

function readSet(reader: SelectorReader): ReadonlySet<string> {
  if (!reader.accept('(')) throw reader.expected('"(" and a list of values');
  if (reader.next.type === ')') throw reader.expected('a value');
  const values = new Set([readValue(reader)]);
  while (reader.accept(',')) values.add(readValue(reader));
  if (!reader.accept(')')) throw reader.expected('"," or ")"');
  return values;
}

const EXAMPLE = 'write terms such as "platform=linux, env in (prod,stage), !legacy", or "*" for every agent';

/** Reads the tokens of a selector one by one and reports mistakes with their position. */
class SelectorReader {
  readonly #text: string;
  readonly #tokens: readonly SelectorToken[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = selectorTokens(text);
  }

  get next(): SelectorToken {
    return this.#tokens[this.#at] ?? { type: 'end', text: '', offset: this.#text.length };
  }

  advance(): void {
    this.#at += 1;
  }

  accept(type: SelectorToken['type']): boolean {
    if (this.next.type !== type) return false;
    this.advance();
    return true;
  }

  fail(message: string): Fault {
    return selectorFault(this.#text, this.next.offset, message);
  }

  expected(what: string): Fault {
    const { type, text } = this.next;
    if (type === 'end')
      return this.fail(`${what} is expected ${this.#text.trim() === '' ? 'in an empty selector' : 'at the end'}`);
    const advice = type === 'unknown' && /["']/.test(text) ? '; values are written without quotes' : '';
    return this.fail(
      `${what} is expected instead of ${type === 'unknown' ? printableSign(text) : quoted(text)}${advice}`,
    );
  }
}

/** Quotes a sign for messages; a double quote gets single quotes. */
const printableSign = (text: string): string => (text === '"' ? "'\"'" : quoted(text));

function selectorFault(text: string, offset: number, message: string): Fault {
  const position = offset + 1;
  return new Fault('invalid_selector', `selector ${quoted(text)}, position ${position}: ${message}`, {
    hint: EXAMPLE,
    data: { position },
  });
}

interface SelectorToken {
  readonly type: 'word' | '=' | '==' | '!=' | '!' | ',' | '(' | ')' | '*' | 'unknown' | 'end';
  readonly text: string;
  /** Offset in the text, from 0. */
  readonly offset: number;
}

/** A word is a key or a value: anything but white space, control characters, quotes and the signs of the grammar. */
const TOKEN = /(?<word>[^\s\u0000-\u001f\u007f-\u009f"'`=!,()*<>]+)|(?<sign>==|!=|[=!,()*])|(?<unknown>\S)/gu;

const SIGNS = ['=', '==', '!=', '!', ',', '(', ')', '*'] as const;

function selectorTokens(text: string): readonly SelectorToken[] {
  const tokens: SelectorToken[] = [];
  for (const { 0: found, index, groups } of text.matchAll(TOKEN)) {
    const sign = SIGNS.find((candidate) => candidate === groups?.sign);
    tokens.push({ type: groups?.word !== undefined ? 'word' : (sign ?? 'unknown'), text: found, offset: index });
  }
  return tokens;
}
