/** Parses expressions in texts, such as `${{ secrets.NAME }}`, and lists the secrets they name. */
import { isSecretName, isTagKey } from '../kernel/ids.js';
import { suggestion } from './nearest.js';
import { quoted } from './printable.js';

const NAMESPACES = ['secrets', 'tags', 'attributes', 'agent'] as const;
const AGENT_FIELDS = ['name', 'node_id'] as const;

/** The value that an expression names. */
export type Reference =
  | { readonly from: 'secrets' | 'tags' | 'attributes'; readonly name: string }
  | { readonly from: 'agent'; readonly name: (typeof AGENT_FIELDS)[number] };

/** Literal parts and references of a text, in order. */
export type TextParts = readonly (string | Reference)[];

interface ExpressionProblem {
  /** Offset of the `${{` in the text. */
  readonly offset: number;
  readonly message: string;
}

interface ParsedText {
  readonly parts: TextParts;
  readonly problems: readonly ExpressionProblem[];
}

/** Start of an expression. */
export const OPEN = '$' + '{{';

/** Returns true when a text contains an expression, escaped or not, so that filling changes it. */
export const hasExpression = (text: string): boolean => text.includes(OPEN);

/** Splits a text at its expressions. `$${{` becomes a literal `${{`; an invalid expression is dropped and reported. */
export function parseText(text: string): ParsedText {
  const parts: (string | Reference)[] = [];
  const problems: ExpressionProblem[] = [];
  let literal = '';
  let from = 0;
  for (let open = text.indexOf(OPEN); open !== -1; open = text.indexOf(OPEN, from)) {
    if (open > from && text[open - 1] === '$') {
      literal += text.slice(from, open - 1) + OPEN;
      from = open + OPEN.length;
      continue;
    }
    literal += text.slice(from, open);
    const close = text.indexOf('}}', open);
    if (close === -1) {
      problems.push({
        offset: open,
        message: `this ${OPEN} is never closed; end it with }}, or write $${OPEN} for the text itself`,
      });
      return { parts: literal === '' ? parts : [...parts, literal], problems };
    }
    const reference = parseReference(text.slice(open + OPEN.length, close).trim());
    if (typeof reference === 'string') {
      problems.push({ offset: open, message: reference });
    } else {
      if (literal !== '') parts.push(literal);
      parts.push(reference);
      literal = '';
    }
    from = close + 2;
  }
  literal += text.slice(from);
  if (literal !== '') parts.push(literal);
  return { parts, problems };
}

/** Returns the reference of an expression, or a message about its mistake. */
function parseReference(source: string): Reference | string {
  if (source === '') return `an expression names a value, such as ${OPEN} tags.KEY }}`;
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

/** Returns the names of all secrets in the texts of a value. One agent may need fewer. */
export const secretNames = (value: unknown): ReadonlySet<string> =>
  new Set(referencesIn(value).flatMap(({ from, name }) => (from === 'secrets' ? [name] : [])));

/** Returns the references of all expressions in the texts of a value. */
export function referencesIn(value: unknown): readonly Reference[] {
  if (typeof value === 'string') {
    return hasExpression(value) ? parseText(value).parts.filter((part) => typeof part !== 'string') : [];
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(referencesIn) : [];
}
