/** Compiles bodies once and fills their expressions for each agent. Records which parts of the texts are secrets. */
import type { Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import { MAX_CONTENT_BYTES } from '../resources/host.js';
import { type Body, TRIGGER_FIELDS } from '../resources/kind.js';
import { type AgentLabels, ownMember } from './clause.js';
import { hasExpression, parseText, type TextParts } from './expression.js';
import { applyFilter, DEFAULT, FilteredTooLong, type FilterValue } from './filters.js';
import type { KnownKind } from './kind-set.js';
import type { Expression, Reference } from './parse-expression.js';

export interface AgentFacts extends AgentLabels {
  readonly node_id: string;
  readonly name: string;
}

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

export interface FillContext {
  readonly agent: AgentFacts;
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
    const value: FilledValue | null = typeof part === 'string' ? { value: part } : evaluate(part, filling, path);
    if (value === null) continue;
    if (value.span) spans.push({ start: text.length, end: text.length + value.value.length, ...value.span });
    text += value.value;
    filling.room.left -= value.value.length;
    if (text.length > MAX_CONTENT_BYTES || filling.room.left < 0) {
      tooLong(filling, path);
      return { text: '', spans: [] };
    }
  }
  return { text, spans };
}

interface FilledValue {
  readonly value: string;
  readonly span?: Pick<Span, 'secret' | 'tag'>;
}

/** Returns the value of an expression, or null after it has reported why there is none. */
function evaluate({ reference, filters }: Expression, filling: FillContext, path: string): FilledValue | null {
  if (filters.length === 0) return lookUp(reference, filling, path);
  let value: FilterValue | undefined = factOf(reference, filling.agent);
  for (const { name, given } of filters) {
    if (name === DEFAULT ? value !== undefined : value === undefined) continue;
    const texts = given.map((argument) =>
      typeof argument === 'string' ? argument : lookUp(argument, filling, path)?.value,
    );
    // The look-up has already reported the missing argument.
    if (!texts.every((text) => text !== undefined)) return null;
    try {
      value = name === DEFAULT ? texts[0] : applyFilter(name, value ?? '', texts);
    } catch (error) {
      if (!(error instanceof FilteredTooLong)) throw error;
      tooLong(filling, path);
      return null;
    }
  }
  return value === undefined ? lookUp(reference, filling, path) : { value: String(value) };
}

function lookUp(reference: Reference, { agent, secret, problems }: FillContext, path: string): FilledValue | null {
  const { from, name } = reference;
  if (from === 'secrets') {
    const found = secret(name);
    if (found !== null && 'value' in found) return { value: found.value, span: { secret: name, tag: found.tag } };
    const message = `${fieldOf(path)}: the secret "${name}" ${found?.refused ?? 'does not exist'}`;
    problems.push({ code: 'secret_unavailable', path, message });
    return null;
  }
  const value = factOf(reference, agent);
  if (value !== undefined) return { value };
  const noun = from === 'tags' ? 'tag' : 'attribute';
  const mend = name.includes('|') ? '; write a filter after " | ", with a space on both sides' : '';
  const message = `${fieldOf(path)}: the agent has no ${noun} "${name}"${mend}`;
  problems.push({ code: 'expression_error', path, message });
  return null;
}

/** Returns the value of a reference that is no secret; undefined if the agent has none. */
export function factOf({ from, name }: Reference, agent: AgentFacts): string | undefined {
  if (from === 'agent') return agent[name];
  return from === 'secrets' ? undefined : ownMember(agent[from], name);
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
  return { value: compile(Object.fromEntries(members)), unsettled: members.some(([, value]) => mentions(value)) };
}

/** Compiles any value whose texts may hold expressions. */
export const compileValue = (value: unknown): CompiledBody => ({ value: compile(value), unsettled: mentions(value) });

const constant = (value: unknown): Compiled => ({ type: 'constant', value });

function compile(value: unknown): Compiled {
  if (typeof value === 'string') return compileText(value);
  if (Array.isArray(value)) {
    const items = value.map(compile);
    return isConstant(items) ? constant(Object.freeze(items.map(constantOf))) : { type: 'list', items };
  }
  if (typeof value !== 'object' || value === null) return constant(value);
  const given = Object.entries(value).filter(([, member]) => member !== null);
  const members = given.map(([name, member]) => [name, compile(member)] as const);
  if (!isConstant(members.map(([, member]) => member))) return { type: 'map', members };
  return constant(Object.freeze(Object.fromEntries(members.map(([name, member]) => [name, constantOf(member)]))));
}

function compileText(text: string): Compiled {
  if (!hasExpression(text)) return constant(text);
  const { parts } = parseText(text);
  const literal = parts.every((part) => typeof part === 'string');
  return literal ? constant(parts.join('')) : { type: 'text', parts };
}

const isConstant = (parts: readonly Compiled[]): boolean => parts.every(({ type }) => type === 'constant');

const constantOf = (compiled: Compiled): unknown => (compiled.type === 'constant' ? compiled.value : undefined);

/** Returns true when some text of a value contains an expression, escaped or not. */
function mentions(value: unknown): boolean {
  if (typeof value === 'string') return hasExpression(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(mentions);
}
