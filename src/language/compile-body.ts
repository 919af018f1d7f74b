/** A body prepared for many agents: what is the same for all of them is made once and shared. */
import { type Body, TRIGGER_FIELDS } from '../resources/kind.js';
import { hasExpression, parseText, type TextParts } from './expression.js';
import type { KnownKind } from './kind-set.js';

/** A value with blanks: constants are shared by every agent and must not be changed. */
export type Compiled =
  | { readonly type: 'constant'; readonly value: unknown }
  | { readonly type: 'text'; readonly parts: TextParts }
  | { readonly type: 'list'; readonly items: readonly Compiled[] }
  | { readonly type: 'map'; readonly members: readonly (readonly [string, Compiled])[] };

export interface CompiledBody {
  readonly value: Compiled;
  /** True when a text was or will be another one than in the module, so that the body is checked again. */
  readonly unsettled: boolean;
}

/** Compiles a body: nulls are dropped, a template becomes `content`, lists of triggers are left to the caller. */
export function compileBody(body: Body, kind: KnownKind, templates: ReadonlyMap<string, string>): CompiledBody {
  const members = Object.entries(body).flatMap(([name, value]): (readonly [string, unknown])[] => {
    if (value === null || TRIGGER_FIELDS.some((field) => field === name && kind.triggers.includes(field))) return [];
    if (!kind.templated || name !== 'template') return [[name, value]];
    return [['content', templates.get(String(value)) ?? '']];
  });
  return { value: compile(Object.fromEntries(members)), unsettled: members.some(([, value]) => mentions(value)) };
}

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

/** True when an expression, escaped or not, stands in some text of a value. */
function mentions(value: unknown): boolean {
  if (typeof value === 'string') return hasExpression(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(mentions);
}
