/** Expressions in texts: `${{ secrets.NAME }}` and its like, filled in once per agent. */
import { isSecretName, isTagKey } from '../kernel/identifiers.js';
import { suggestion } from './nearest.js';
import { quoted } from './printable.js';

export const NAMESPACES = ['secrets', 'tags', 'attributes', 'agent'] as const;
const AGENT_FIELDS = ['name', 'node_id'] as const;

/** What an expression refers to. */
export type Reference =
  | { readonly from: 'secrets' | 'tags' | 'attributes'; readonly name: string }
  | { readonly from: 'agent'; readonly name: (typeof AGENT_FIELDS)[number] };

/** A text cut at its expressions: literal parts and references, in order. */
export type TextParts = readonly (string | Reference)[];

export interface ExpressionProblem {
  /** Offset of the `${{` in the text. */
  readonly offset: number;
  readonly message: string;
}

export interface ParsedText {
  readonly parts: TextParts;
  readonly problems: readonly ExpressionProblem[];
}

/** What an expression begins with. */
export const OPEN = '$' + '{{';

/** True when a text holds an expression or an escaped one, so that what it becomes is another text. */
export const hasExpression = (text: string): boolean => text.includes(OPEN);

/** Cuts a text at its expressions. `$${{` becomes a literal `${{`; a wrong expression is left out and reported. */
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

/** The reference that an expression names, or what is wrong with it. */
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
