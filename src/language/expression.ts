/** Finds the expressions in texts, such as `${{ secrets.NAME }}`, and lists the values they name. */
import {
  CLOSE,
  closingOf,
  type Expression,
  OPEN,
  parseExpression,
  type Reference,
  referencesOf,
} from './parse-expression.js';

/** Literal parts and expressions of a text, in order. */
export type TextParts = readonly (string | Expression)[];

interface ExpressionProblem {
  /** Offset of the `${{` in the text. */
  readonly offset: number;
  readonly message: string;
}

interface ParsedText {
  readonly parts: TextParts;
  /** The expressions of `parts`, each with the offset of its `${{` in the text. */
  readonly expressions: readonly { readonly offset: number; readonly expression: Expression }[];
  readonly problems: readonly ExpressionProblem[];
}

/** Returns true when a text contains an expression, escaped or not, so that filling changes it. */
export const hasExpression = (text: string): boolean => text.includes(OPEN);

/** Returns true for a text that is one expression and nothing else, even a wrong one, so that it takes the type of that. */
export function isOneExpression(text: string): boolean {
  if (!text.startsWith(OPEN) || !text.endsWith(CLOSE)) return false;
  return closingOf(text, 0) === text.length - CLOSE.length;
}

/** Splits a text at its expressions. `$${{` becomes a literal `${{`; an invalid expression is dropped and reported. */
export function parseText(text: string): ParsedText {
  const parts: (string | Expression)[] = [];
  const expressions: { offset: number; expression: Expression }[] = [];
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
    const close = closingOf(text, open);
    if (close === -1) {
      problems.push({
        offset: open,
        message: `this ${OPEN} is never closed; end it with }}, or write $${OPEN} for the text itself`,
      });
      return { parts: literal === '' ? parts : [...parts, literal], expressions, problems };
    }
    const expression = parseExpression(text.slice(open + OPEN.length, close).trim());
    if (typeof expression === 'string') {
      problems.push({ offset: open, message: expression });
    } else {
      if (literal !== '') parts.push(literal);
      parts.push(expression);
      expressions.push({ offset: open, expression });
      literal = '';
    }
    from = close + CLOSE.length;
  }
  literal += text.slice(from);
  if (literal !== '') parts.push(literal);
  return { parts, expressions, problems };
}

/** Returns the names of all secrets in the texts of a value. One agent may need fewer. */
export const secretNames = (value: unknown): ReadonlySet<string> =>
  new Set(referencesIn(value).flatMap(({ from, name }) => (from === 'secrets' ? [name] : [])));

/** Returns the references of all expressions in the texts of a value. */
export function referencesIn(value: unknown): readonly Reference[] {
  if (typeof value === 'string') {
    const parts = hasExpression(value) ? parseText(value).parts : [];
    return parts.flatMap((part) => (typeof part === 'string' ? [] : referencesOf(part)));
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(referencesIn) : [];
}
