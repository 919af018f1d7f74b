/** Parses templates with an engine. */
import { finish, type Steps } from '../../kernel/steps.js';
import { parseCondition } from '../parse-condition.js';
import {
  type Expression,
  IN_TEMPLATES,
  type Literal,
  parseExpression,
  parseLiteral,
  type Reference,
} from '../parse-expression.js';
import { quoted, shortened } from '../printable.js';
import { otherTag, unknownTag } from './habits.js';
import { type Branch, FORLOOP, MAX_NESTING, type Part, type TemplateCall, type TemplateProblem } from './template.js';
import { TAGS_AT_ONCE, type Token, tokensOf } from './tokens.js';

interface ParsedTemplate {
  readonly parts: readonly Part[];
  readonly problems: readonly TemplateProblem[];
}

/** Parses a template. Reports each mistake, and leaves the part with it out. */
export const parseTemplate = (text: string): ParsedTemplate => finish(parseSteps(text));

/** Parses a template as `parseTemplate` does. Steps over some tags at a time. */
export function* parseSteps(text: string): Steps<ParsedTemplate> {
  const { tokens, problems } = yield* tokensOf(text);
  const parser = new Parser(tokens);
  const parts = yield* parser.whole();
  return { parts, problems: [...problems, ...parser.problems].sort((a, b) => a.offset - b.offset) };
}

type Tag = Extract<Token, { readonly type: 'tag' }>;

const NAME = /^[A-Za-z_]\w*$/;
/** Names that expressions give a meaning already. */
const TAKEN = [
  'inputs',
  'tags',
  'attributes',
  'facts',
  'agent',
  'shared',
  'secrets',
  'each',
  FORLOOP,
  'true',
  'false',
  'nil',
];

class Parser {
  readonly problems: TemplateProblem[] = [];
  private at = 0;
  private depth = 0;
  /** True when the rest is not read. */
  private isGivenUp = false;
  private readonly tokens: readonly Token[];

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens;
  }

  *whole(): Steps<readonly Part[]> {
    const parts: Part[] = [];
    for (;;) {
      parts.push(...(yield* this.parts([])));
      const tag = this.tag();
      if (tag === null) return parts;
      this.report(tag, `{% ${tag.name} %} stands outside of what it belongs to`);
      this.at += 1;
    }
  }

  /** Returns the parts up to a tag with one of the names, or to one that belongs to something around. */
  private *parts(until: readonly string[]): Steps<readonly Part[]> {
    const parts: Part[] = [];
    for (let token = this.tokens[this.at]; token !== undefined; token = this.tokens[this.at]) {
      if (token.type === 'tag' && (until.includes(token.name) || INNER.includes(token.name))) break;
      this.at += 1;
      if (this.at % TAGS_AT_ONCE === 0) yield;
      const part = yield* this.part(token);
      if (part !== null) parts.push(part);
    }
    return parts;
  }

  private *part(token: Token): Steps<Part | null> {
    if (token.type === 'text') return token;
    if (token.type === 'print') {
      const expression = this.expression(token.source, token.offset);
      return expression === null ? null : { type: 'print', offset: token.offset, expression };
    }
    switch (token.name) {
      case 'if':
        return yield* this.nested(token, () => this.conditions(token));
      case 'for':
        return yield* this.nested(token, () => this.loop(token));
      case 'render':
        return this.call(token);
      case 'raw':
      case 'endraw':
      case 'comment':
        return null;
      default:
        return this.report(token, unknownTag(token.name));
    }
  }

  private *nested(tag: Tag, read: () => Steps<Part | null>): Steps<Part | null> {
    this.depth += 1;
    if (this.depth > MAX_NESTING) {
      this.report(tag, `conditions and loops are at most ${MAX_NESTING} levels deep`);
      this.at = this.tokens.length;
      this.isGivenUp = true;
      return null;
    }
    const part = yield* read();
    this.depth -= 1;
    return part;
  }

  private *conditions(first: Tag): Steps<Part> {
    const branches: Branch[] = [];
    let otherwise: readonly Part[] = [];
    let tag: Tag | null = first;
    let hasElse = false;
    for (;;) {
      const { offset, name, rest } = tag;
      const condition = name === 'else' ? null : this.condition(rest, offset, name);
      const parts = yield* this.parts(['elsif', 'else', 'endif']);
      if (name === 'else') otherwise = parts;
      else if (condition !== null) branches.push({ offset, condition, parts });
      tag = this.tag();
      if (tag === null || (tag.name !== 'elsif' && tag.name !== 'else')) break;
      if (hasElse) this.report(tag, `{% ${tag.name} %} follows {% else %}, which is the last branch`);
      hasElse ||= tag.name === 'else';
      this.at += 1;
    }
    this.close(first, tag);
    return { type: 'if', branches, otherwise };
  }

  private condition(source: string, offset: number, name: string) {
    const parsed =
      source === ''
        ? `a condition is missing after "${name}", such as {% if inputs.tls %}`
        : parseCondition(source, IN_TEMPLATES);
    return typeof parsed === 'string' ? this.report({ offset }, parsed) : parsed;
  }

  private *loop(tag: Tag): Steps<Part | null> {
    const { offset, rest } = tag;
    const [, name = '', source = ''] = /^(.*?)\s+in\s+(.*)$/s.exec(rest) ?? [];
    const problem = nameProblem(name, rest);
    if (problem !== null) this.report(tag, problem);
    const expression = problem === null ? this.expression(source, offset) : null;
    const parts = yield* this.parts(['else', 'endfor']);
    let otherwise: readonly Part[] = [];
    let end = this.tag();
    if (end?.name === 'else') {
      this.at += 1;
      otherwise = yield* this.parts(['endfor']);
      end = this.tag();
    }
    this.close(tag, end);
    return expression === null ? null : { type: 'for', offset, name, source: expression, parts, otherwise };
  }

  private call({ offset, rest, isLine }: Tag): TemplateCall | null {
    const [, , id = '', , arguments_ = ''] = /^(["'])(.*?)\1\s*(,\s*(.*))?$/s.exec(rest) ?? [];
    if (id === '') {
      return this.report({ offset }, 'the id of a template of this module is missing; write {% render "ID" %}');
    }
    const given: { readonly name: string; readonly value: Literal | Reference }[] = [];
    for (const written of arguments_ === '' ? [] : splitArguments(arguments_)) {
      const [, name = '', source = ''] = /^\s*(\w+)\s*:\s*(.*?)\s*$/s.exec(written) ?? [];
      const value = this.argument(name, source, written, offset);
      if (value === null) return null;
      if (given.some((one) => one.name === name))
        return this.report({ offset }, `the parameter ${quoted(name)} is given twice`);
      given.push({ name, value });
    }
    return { type: 'render', offset, id, given, isLine };
  }

  private argument(name: string, source: string, written: string, offset: number): Literal | Reference | null {
    if (!NAME.test(name) || source === '') {
      return this.report(
        { offset },
        `${shortened(written.trim())} is no parameter; write {% render "ID", NAME: VALUE %}`,
      );
    }
    if (TAKEN.includes(name))
      return this.report({ offset }, `${quoted(name)} has a meaning of its own; choose another name`);
    const literal = parseLiteral(source);
    if (literal !== null) return literal;
    const expression = this.expression(source, offset);
    if (expression === null) return null;
    if (expression.filters.length > 0) {
      return this.report({ offset }, 'a parameter takes no filters; write them in the template that is rendered');
    }
    if (expression.reference.from !== 'secrets') return expression.reference;
    return this.report(
      { offset },
      `a parameter cannot be a secret; write {{ secrets.${expression.reference.name} }} in that template`,
    );
  }

  private expression(source: string, offset: number): Expression | null {
    const parsed = parseExpression(source, IN_TEMPLATES);
    return typeof parsed === 'string' ? this.report({ offset }, parsed) : parsed;
  }

  /** Passes the end of a tag, or reports that it is missing. */
  private close(opened: Tag, tag: Tag | null): void {
    if (tag?.name === `end${opened.name}`) this.at += 1;
    else {
      const instead = tag === null ? '' : `, and {% ${tag.name} %} stands in its place`;
      this.report(opened, `this {% ${opened.name} %} is never closed; end it with {% end${opened.name} %}${instead}`);
    }
  }

  private tag(): Tag | null {
    const token = this.tokens[this.at];
    return token?.type === 'tag' ? token : null;
  }

  private report({ offset }: { readonly offset: number }, message: string | null): null {
    if (message !== null && !this.isGivenUp) this.problems.push({ offset, message });
    return null;
  }
}

/** Tags that stand only inside or at the end of others. */
const INNER = ['elsif', 'else', 'endif', 'endfor'];

function nameProblem(name: string, rest: string): string | null {
  if (rest === '') return 'a list is missing after "for"; write {% for NAME in inputs.LIST %}';
  if (name === '') return `${shortened(rest)} is no loop; write {% for NAME in inputs.LIST %}`;
  const habit = otherTag(name, rest);
  if (habit !== null) return habit;
  if (!NAME.test(name)) return `${quoted(name)} is no name of an element; write {% for NAME in inputs.LIST %}`;
  return TAKEN.includes(name) ? `${quoted(name)} has a meaning of its own; choose another name for the element` : null;
}

/** Splits parameters at commas outside of quotes. */
const splitArguments = (source: string): readonly string[] => source.match(/(?:"[^"]*"|'[^']*'|[^,])+/g) ?? [];
