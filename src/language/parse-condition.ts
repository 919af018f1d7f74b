/** Parses conditions, such as `tags.env == "prod" and not attributes.distro == "debian"`. */
import { ATTRIBUTE_NAMES } from './known-attributes.js';
import {
  type Dialect,
  type Expression,
  type Literal,
  OPEN,
  parseExpression,
  parseLiteral,
  type Reference,
  referencesOf,
} from './parse-expression.js';
import { quoted, shortened } from './printable.js';

export const COMPARISONS = ['==', '!=', '<=', '>=', '<', '>', 'contains'] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** Stands for a value that is missing. */
export const NIL = 'nil';

export type Operand = Expression | Literal | typeof NIL;

export type Condition =
  | { readonly type: 'value'; readonly operand: Operand }
  | { readonly type: 'not'; readonly of: Condition }
  | { readonly type: 'and' | 'or'; readonly of: readonly Condition[] }
  | { readonly type: 'compare'; readonly left: Operand; readonly by: Comparison; readonly right: Operand };

/** Maximum characters of a condition. */
export const MAX_CONDITION = 2_048;

/** Returns the values that a condition names. */
export function referencesOfCondition(condition: Condition): readonly Reference[] {
  switch (condition.type) {
    case 'value':
      return referencesOfOperand(condition.operand);
    case 'compare':
      return [...referencesOfOperand(condition.left), ...referencesOfOperand(condition.right)];
    case 'not':
      return referencesOfCondition(condition.of);
    default:
      return condition.of.flatMap(referencesOfCondition);
  }
}

const referencesOfOperand = (operand: Operand): readonly Reference[] =>
  operand !== NIL && 'reference' in operand ? referencesOf(operand) : [];

/** Thrown inside this file only. */
class Mistake extends Error {}

/** Parses a condition. Returns a message about the first mistake. */
export function parseCondition(source: string, dialect?: Dialect): Condition | string {
  if (source.length > MAX_CONDITION) return `a condition has at most ${MAX_CONDITION} characters`;
  if (source.trim() === '') return 'a condition is missing, such as tags.env == "prod"';
  const unquoted = source.replaceAll(/"[^"]*"|'[^']*'/g, '');
  if (unquoted.includes('{{')) {
    return `a condition is an expression as a whole; leave out ${unquoted.includes(OPEN) ? OPEN : '{{'} and }}`;
  }
  try {
    const parser = new Parser(tokensOf(source), dialect);
    return parser.whole();
  } catch (error) {
    if (error instanceof Mistake) return error.message;
    throw error;
  }
}

interface Token {
  readonly type: 'operand' | 'word' | 'comparison' | 'open' | 'close';
  readonly text: string;
}

const SYMBOL = /==|!=|<=|>=|<|>|\(|\)|&&|\|\||=|!/y;
const WORD = /(?:and|or|not|contains|in|is)(?![^\s()"'<>=!])/y;
/** Symbols of other languages. */
const MENDS: Readonly<Record<string, string>> = {
  '&&': '"&&" is written as "and" here',
  '||': '"||" is written as "or" here',
  '=': 'a comparison is written with "=="',
  '!': '"!" is written as "not" here',
};

/** Splits a condition at words, symbols and parentheses outside quotes. An operand keeps its filters. */
function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  let operand = '';
  const add = (type: Token['type'], text: string) => {
    if (operand.trim() !== '') tokens.push({ type: 'operand', text: operand.trim() });
    operand = '';
    if (text !== '') tokens.push({ type, text });
  };
  for (let at = 0; at < source.length; ) {
    const character = source[at] ?? '';
    if (character === '"' || character === "'") {
      const end = source.indexOf(character, at + 1);
      if (end === -1) throw new Mistake('a quote in this condition is never closed');
      operand += source.slice(at, end + 1);
      at = end + 1;
      continue;
    }
    SYMBOL.lastIndex = at;
    const symbol = SYMBOL.exec(source)?.[0];
    WORD.lastIndex = at;
    const isApart = at === 0 || /[\s()"'<>=!]/.test(source[at - 1] ?? '');
    const word = isApart ? WORD.exec(source)?.[0] : undefined;
    if (symbol !== undefined) {
      const mend = MENDS[symbol];
      if (mend !== undefined) throw new Mistake(mend);
      add(symbol === '(' ? 'open' : symbol === ')' ? 'close' : 'comparison', symbol);
    } else if (word !== undefined) {
      add(word === 'contains' ? 'comparison' : 'word', word);
    } else operand += character;
    at += (symbol ?? word ?? character).length;
  }
  add('operand', '');
  return tokens;
}

/** Maximum depth of parentheses and of `not`. */
const MAX_DEPTH = 32;

class Parser {
  private at = 0;
  private depth = 0;
  private readonly tokens: readonly Token[];
  private readonly dialect: Dialect | undefined;

  constructor(tokens: readonly Token[], dialect: Dialect | undefined) {
    this.tokens = tokens;
    this.dialect = dialect;
  }

  whole(): Condition {
    const condition = this.chain();
    const rest = this.tokens[this.at];
    if (rest === undefined) return condition;
    throw new Mistake(rest.type === 'close' ? 'this ")" closes nothing' : this.sideBySide(rest));
  }

  private chain(): Condition {
    const parts = [this.unary()];
    const word = this.joint();
    if (word === null) return parts[0] as Condition;
    while (this.joint() !== null) {
      if (this.joint() !== word) {
        throw new Mistake('"and" beside "or" can be read in two ways; write parentheses, such as a and (b or c)');
      }
      this.at += 1;
      parts.push(this.unary());
    }
    return { type: word, of: parts };
  }

  private joint(): 'and' | 'or' | null {
    const token = this.tokens[this.at];
    if (token?.type !== 'word') return null;
    return token.text === 'and' || token.text === 'or' ? token.text : null;
  }

  private unary(): Condition {
    this.depth += 1;
    if (this.depth > MAX_DEPTH) throw new Mistake(`a condition is at most ${MAX_DEPTH} levels deep`);
    const condition = this.primary();
    this.depth -= 1;
    return condition;
  }

  private primary(): Condition {
    const token = this.tokens[this.at];
    if (token?.type === 'word' && token.text === 'not') {
      this.at += 1;
      return { type: 'not', of: this.unary() };
    }
    if (token?.type === 'open') {
      this.at += 1;
      const inner = this.chain();
      const close = this.tokens[this.at];
      if (close === undefined) throw new Mistake('this "(" is never closed');
      if (close.type !== 'close') throw new Mistake(this.sideBySide(close));
      this.at += 1;
      return inner;
    }
    return this.comparison();
  }

  private comparison(): Condition {
    const left = this.operand();
    const by = this.tokens[this.at];
    if (by?.type !== 'comparison') return { type: 'value', operand: left };
    this.at += 1;
    const right = this.operand();
    if (right !== NIL && 'reference' in right && right.filters.length > 0) {
      throw new Mistake(
        `a filter after "${by.text}" is not possible; write the value with its filters before "${by.text}"`,
      );
    }
    const next = this.tokens[this.at];
    if (next?.type === 'comparison') throw new Mistake('one comparison follows another; join them with "and"');
    return { type: 'compare', left, by: comparisonOf(by.text), right };
  }

  private operand(): Operand {
    const token = this.tokens[this.at];
    if (token === undefined) throw new Mistake('a value is missing at the end of this condition');
    if (token.type !== 'operand') {
      if (token.type === 'word' && (token.text === 'is' || token.text === 'in')) throw new Mistake(habitOf(token.text));
      throw new Mistake(`a value is missing before "${token.text}"`);
    }
    this.at += 1;
    if (token.text === NIL) return NIL;
    const literal = parseLiteral(token.text);
    if (literal !== null) return literal;
    const expression = parseExpression(token.text, this.dialect);
    if (typeof expression === 'string') throw new Mistake(blankMend(token.text) ?? wordMend(token.text) ?? expression);
    return expression;
  }

  private sideBySide(token: Token): string {
    if (token.type === 'word') return habitOf(token.text);
    return `${quoted(token.text)} follows a value directly; join conditions with "and" or "or", and compare with "=="`;
  }
}

const comparisonOf = (text: string): Comparison => COMPARISONS.find((known) => known === text) ?? '==';

/** Returns a message about words of other languages, or about a joint in a wrong place. */
function habitOf(word: string): string {
  if (word === 'is') return '"is" is not known here; whether a value is there is asked with: tags.KEY != nil';
  if (word === 'in') return '"in" is turned around here; write: LIST contains VALUE, such as tags.roles contains "web"';
  return `"${word}" stands in a wrong place`;
}

/** Returns a message about operands with a blank between them, or null. */
function blankMend(text: string): string | null {
  const [, first = '', second = ''] = /^([^\s|]+)\s+([^\s|].*)$/s.exec(text) ?? [];
  if (first === '') return null;
  if (/^eq$|^ne$|^lt$|^gt$|^like$|^matches$/.test(second.split(/\s/)[0] ?? '')) {
    return `${quoted(second.split(/\s/)[0] ?? '')} is no operator here; compare with ==, !=, <, <=, >, >= or contains`;
  }
  return `${shortened(second)} follows ${shortened(first)} directly; join conditions with "and" or "or", and compare with "=="`;
}

/** Returns a message about a word without quotes and without a name before it, or null. */
function wordMend(text: string): string | null {
  if (!/^[\w-]+$/.test(text)) return null;
  if (/^\d+$/.test(text)) return `the number ${shortened(text)} is too large`;
  if (ATTRIBUTE_NAMES.includes(text)) return `${quoted(text)} names no value; write attributes.${text}`;
  return `${quoted(text)} names no value; write a text in quotes, or a value such as tags.KEY, attributes.KEY, agent.name`;
}
