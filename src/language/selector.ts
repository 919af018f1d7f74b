/** Selectors: one line of text that tells which agents are meant, in the grammar of Kubernetes label selectors. */
import { isTagKey, TAG_KEY_RULE } from '../kernel/identifiers.js';
import { type AgentLabels, labelOf } from './clause.js';
import { quoted } from './printable.js';
import { SelectorReader, selectorFault } from './selector-reader.js';

export type SelectorTerm =
  | { readonly key: string; readonly operator: 'in' | 'not in'; readonly values: ReadonlySet<string> }
  | { readonly key: string; readonly operator: 'exists' | 'does not exist' };

export interface Selector {
  /** As it was written. */
  readonly text: string;
  /** All must hold; none for `*`. A key is a built-in attribute, or `tag.` and the name of a tag. */
  readonly terms: readonly SelectorTerm[];
}

const ATTRIBUTES: ReadonlySet<string> = new Set(['arch', 'distro', 'init_system', 'platform', 'version']);

/** Most characters of a selector. */
const MAX_LENGTH = 4096;

/**
 * Reads a selector. Throws `invalid_selector`, whose `data.position` is the character, from 1, where the mistake is;
 * one past the last character when something is missing at the end.
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

/** True when every term holds for the agent. */
export const matches = ({ terms }: Selector, agent: AgentLabels): boolean =>
  terms.every((term) => holds(term, labelOf(agent, term.key)));

/** A key that the agent does not have is unlike every value. */
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

/** A value may be empty: `key=` means that the tag is there without a value. */
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
