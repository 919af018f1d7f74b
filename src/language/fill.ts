/** Compiles bodies once and fills their expressions for each agent. Records which parts of the texts are secrets. */
import type { TSchema } from 'typebox';
import type { Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import { MAX_CONTENT_BYTES } from '../resources/host.js';
import { type Body, TRIGGER_FIELDS } from '../resources/kind.js';
import { type Environment, evaluate, valueOfReference } from './evaluate.js';
import { hasExpression, isOneExpression, parseText, type TextParts } from './expression.js';
import { FilteredTooLong } from './filters.js';
import type { KnownKind } from './kind-set.js';
import type { Expression, Reference } from './parse-expression.js';
import { memberSchema, takesOnlyText } from './shape-schema.js';
import { SecretName, textOf, type Value } from './values.js';

/** A secret's value, and four hex digits that change with it. */
interface SecretValue {
  readonly value: string;
  readonly tag: string;
}

/** Reason why an agent does not get a secret, as the end of a sentence that begins with the secret's name. */
export interface SecretRefusal {
  readonly refused: string;
}

/** Returns a secret's value, the reason why this agent does not get it, or null for a secret that does not exist. */
export type SecretSource = (name: string) => SecretValue | SecretRefusal | null;

export interface FillProblem {
  readonly code: 'expression_error' | 'secret_unavailable';
  /** JSON pointer inside the body. */
  readonly path: string;
  readonly message: string;
}

export interface FillContext extends Environment {
  readonly secret: SecretSource;
  readonly problems: FillProblem[];
  /** Secret parts of texts, by JSON pointer inside the body. */
  readonly taint: Map<string, readonly Span[]>;
  /** Remaining characters that expressions of this resolution may produce. */
  readonly room: { left: number };
}

/** Returns the value with every expression filled in. Reports an expression without a value and leaves it empty. */
export function fill(compiled: Compiled, filling: FillContext, path = ''): unknown {
  switch (compiled.type) {
    case 'constant':
      return compiled.value;
    case 'list':
      return compiled.items.map((item, index) => fill(item, filling, `${path}/${index}`));
    case 'map': {
      const members = compiled.members.map(([name, value]) => [
        name,
        fill(value, filling, `${path}/${escapePointer(name)}`),
      ]);
      return Object.fromEntries(members);
    }
    case 'text': {
      const { text, spans } = fillText(compiled.parts, filling, path);
      if (spans.length > 0) filling.taint.set(path, spans);
      return text;
    }
    case 'value': {
      const value = valueFor(compiled.expression, filling, path);
      if (value === null) return '';
      if (value instanceof SecretName) return fill({ type: 'text', parts: [compiled.expression] }, filling, path);
      filling.room.left -= textOf(value).length;
      if (filling.room.left >= 0) return value;
      tooLong(filling, path);
      return '';
    }
  }
}

/** A text with its expressions filled in, and its secret parts in order. */
interface FilledText {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** Fills in a text in a single pass, so that expressions in inserted values stay text. */
export function fillText(parts: TextParts, filling: FillContext, path: string): FilledText {
  const spans: Span[] = [];
  let text = '';
  for (const part of parts) {
    let inserted: string;
    if (typeof part === 'string') inserted = part;
    else {
      const value =
        part.reference.from === 'secrets' ? new SecretName(part.reference.name) : valueFor(part, filling, path);
      if (value === null) continue;
      if (value instanceof SecretName) {
        const found = secretFor(value.secret, filling, path);
        if (found === null) continue;
        inserted = found.value;
        const [start, end] = [text.length, text.length + inserted.length];
        spans.push({ start, end, secret: value.secret, tag: found.tag });
      } else inserted = typeof value === 'string' ? value : textOf(value);
    }
    text += inserted;
    filling.room.left -= inserted.length;
    if (text.length > MAX_CONTENT_BYTES || filling.room.left < 0) {
      tooLong(filling, path);
      return { text: '', spans: [] };
    }
  }
  return { text, spans };
}

/** Returns the value of a secret, or null after it has reported why there is none. */
function secretFor(name: string, { secret, problems }: FillContext, path: string): SecretValue | null {
  const found = secret(name);
  if (found !== null && 'value' in found) return found;
  const message = `${fieldOf(path)}: the secret "${name}" ${found?.refused ?? 'does not exist'}`;
  problems.push({ code: 'secret_unavailable', path, message });
  return null;
}

/** Returns the value of an expression that names no secret, or null after it has reported why there is none. */
function valueFor(expression: Expression, filling: FillContext, path: string): Value | null {
  const plain = expression.filters.length === 0 ? valueOfReference(expression.reference, filling) : undefined;
  if (plain !== undefined) return plain;
  try {
    const evaluated = evaluate(expression, filling);
    if ('value' in evaluated) return evaluated.value;
    const message = `${fieldOf(path)}: ${missing(evaluated.missing)}`;
    filling.problems.push({ code: 'expression_error', path, message });
  } catch (error) {
    if (!(error instanceof FilteredTooLong)) throw error;
    tooLong(filling, path);
  }
  return null;
}

function missing({ from, name }: Reference): string {
  if (from === 'each') return `this element has no ${name.split('.').at(-1)}`;
  if (from === 'inputs') return `inputs.${name} has no value`;
  if (from === 'shared') return `the agent has no shared value "${name}"; set it below "shared" in a value set`;
  const mend = name.includes('|') ? '; write a filter after " | ", with a space on both sides' : '';
  return `the agent has no ${from === 'tags' ? 'tag' : 'attribute'} "${name}"${mend}`;
}

function tooLong({ problems }: FillContext, path: string): void {
  const message = `${fieldOf(path)}: the text is too long with its expressions filled in`;
  problems.push({ code: 'expression_error', path, message });
}

/** Returns the field of a JSON pointer, for messages. */
const fieldOf = (path: string): string => path.slice(1);

/** A value prepared for filling. Agents share its constants, which must not be changed. */
type Compiled =
  | { readonly type: 'constant'; readonly value: unknown }
  | { readonly type: 'text'; readonly parts: TextParts }
  /** A text that is one expression and nothing else, whose value keeps its type. */
  | { readonly type: 'value'; readonly expression: Expression }
  | { readonly type: 'list'; readonly items: readonly Compiled[] }
  | { readonly type: 'map'; readonly members: readonly (readonly [string, Compiled])[] };

export interface CompiledBody {
  readonly value: Compiled;
  /** True when a text differs from the module's after filling, so that the body is validated again. */
  readonly unsettled: boolean;
}

/** Compiles a body: drops nulls, replaces a template by its `content`, and leaves lists of triggers to the caller. */
export function compileBody(body: Body, kind: KnownKind, templates: ReadonlyMap<string, string>): CompiledBody {
  const members = Object.entries(body).flatMap(([name, value]): (readonly [string, unknown])[] => {
    if (value === null || TRIGGER_FIELDS.some((field) => field === name && kind.triggers.includes(field))) return [];
    if (!kind.templated || name !== 'template') return [[name, value]];
    return [['content', templates.get(String(value)) ?? '']];
  });
  const value = compile(Object.fromEntries(members), kind.kind.schema);
  return { value, unsettled: members.some(([, member]) => mentions(member)) };
}

/** Compiles any value whose texts may hold expressions. @param schema of the value with the expressions filled in */
export const compileValue = (value: unknown, schema: TSchema): CompiledBody => ({
  value: compile(value, schema),
  unsettled: mentions(value),
});

const constant = (value: unknown): Compiled => ({ type: 'constant', value });

function compile(value: unknown, schema: TSchema | null): Compiled {
  if (typeof value === 'string') return compileText(value, schema);
  if (Array.isArray(value)) {
    const items = value.map((item) => compile(item, memberSchema(schema, null)));
    return isConstant(items) ? constant(Object.freeze(items.map(constantOf))) : { type: 'list', items };
  }
  if (typeof value !== 'object' || value === null) return constant(value);
  const given = Object.entries(value).filter(([, member]) => member !== null);
  const members = given.map(([name, member]) => [name, compile(member, memberSchema(schema, name))] as const);
  if (!isConstant(members.map(([, member]) => member))) return { type: 'map', members };
  return constant(Object.freeze(Object.fromEntries(members.map(([name, member]) => [name, constantOf(member)]))));
}

function compileText(text: string, schema: TSchema | null): Compiled {
  if (!hasExpression(text)) return constant(text);
  const { parts } = parseText(text);
  const [first] = parts;
  if (first === undefined || parts.every((part) => typeof part === 'string')) return constant(parts.join(''));
  const isValue = isOneExpression(text) && schema !== null && !takesOnlyText(schema);
  if (isValue && typeof first !== 'string' && first.reference.from !== 'secrets') {
    return { type: 'value', expression: first };
  }
  return { type: 'text', parts };
}

const isConstant = (parts: readonly Compiled[]): boolean => parts.every(({ type }) => type === 'constant');

const constantOf = (compiled: Compiled): unknown => (compiled.type === 'constant' ? compiled.value : undefined);

/** Returns true when some text of a value contains an expression, escaped or not. */
function mentions(value: unknown): boolean {
  if (typeof value === 'string') return hasExpression(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(mentions);
}
