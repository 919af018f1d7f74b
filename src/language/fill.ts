/** Compiles bodies once and fills their expressions for each agent. Records which parts of the texts are secrets. */
import type { TSchema } from 'typebox';
import { finish, type Steps } from '../kernel/steps.js';
import { escapePointer } from '../kernel/validator.js';
import { type Body, TRIGGER_FIELDS } from '../resources/kind.js';
import { hasExpression, isOneExpression, parseText, type TextParts } from './expression.js';
import type { FileDigests } from './files-beside.js';
import { type FillContext, type FilledText, fillText, report, TOO_LONG, valueFor } from './filling.js';
import type { KnownKind } from './kind-set.js';
import type { Expression } from './parse-expression.js';
import { memberSchema, takesOnlyText } from './shape-schema.js';
import { renderTemplate } from './templates/render-template.js';
import type { CompiledTemplate } from './templates/template.js';
import { SecretName, textOf } from './values.js';

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
    case 'text':
      return inserted(fillText(compiled.parts, filling, path), filling, path);
    case 'template':
      return finish(rendered(compiled.template, filling, path));
    case 'value': {
      const value = valueFor(compiled.expression, filling, path);
      if (value === null) return '';
      if (value instanceof SecretName) return fill({ type: 'text', parts: [compiled.expression] }, filling, path);
      filling.room.left -= textOf(value).length;
      if (filling.room.left >= 0) return value;
      report(filling, 'expression_error', path, TOO_LONG);
      return '';
    }
  }
}

/** Fills in a whole body, in steps where a template is rendered. */
export function* fillBody({ value, rendersTemplate }: CompiledBody, filling: FillContext): Steps<unknown> {
  if (!rendersTemplate || value.type !== 'map') return fill(value, filling);
  const members: [string, unknown][] = [];
  for (const [name, member] of value.members) {
    const path = `/${escapePointer(name)}`;
    const isTemplate = member.type === 'template';
    members.push([name, isTemplate ? yield* rendered(member.template, filling, path) : fill(member, filling, path)]);
  }
  return Object.fromEntries(members);
}

function* rendered(template: CompiledTemplate, filling: FillContext, path: string): Steps<string> {
  return inserted(yield* renderTemplate(template, filling, path), filling, path);
}

/** Returns the text after it has noted its secret parts. */
function inserted({ text, spans }: FilledText, { taint }: FillContext, path: string): string {
  if (spans.length > 0) taint.set(path, spans);
  return text;
}

/** A value prepared for filling. Agents share its constants, which must not be changed. */
type Compiled =
  | { readonly type: 'constant'; readonly value: unknown }
  | { readonly type: 'text'; readonly parts: TextParts }
  | { readonly type: 'template'; readonly template: CompiledTemplate }
  /** A text that is one expression and nothing else, whose value keeps its type. */
  | { readonly type: 'value'; readonly expression: Expression }
  | { readonly type: 'list'; readonly items: readonly Compiled[] }
  | { readonly type: 'map'; readonly members: readonly Member[] };

type Member = readonly [name: string, value: Compiled];

/** The parts of a module that its bodies refer to. */
export interface ModuleTexts extends Templates {
  /** SHA-256 of the files beside the module, by path. */
  readonly files: FileDigests;
}

export interface CompiledBody {
  readonly value: Compiled;
  /** True when a text differs from the module's after filling, so that the body is validated again. */
  readonly unsettled: boolean;
  /** True when a template is rendered for it. */
  readonly rendersTemplate: boolean;
}

/** Templates of a module, by id. */
export interface Templates {
  /** Texts of those without an engine. */
  readonly plain: ReadonlyMap<string, string>;
  readonly rendered: ReadonlyMap<string, CompiledTemplate>;
}

/**
 * Compiles a body: drops nulls, replaces a template by its `content`, adds the digest of a file beside the module, and leaves
 * lists of triggers to the caller.
 */
export function compileBody(body: Body, kind: KnownKind, { plain, rendered, files }: ModuleTexts): CompiledBody {
  let [unsettled, rendersTemplate] = [false, false];
  const members = Object.entries(body).flatMap(([name, value]): readonly Member[] => {
    if (value === null || TRIGGER_FIELDS.some((field) => field === name && kind.triggers.includes(field))) return [];
    const isTemplate = kind.templated && name === 'template';
    const template = isTemplate ? rendered.get(String(value)) : undefined;
    if (template !== undefined) {
      unsettled = true;
      rendersTemplate = true;
      return [['content', { type: 'template', template }]];
    }
    if (kind.sourced && name === 'source') {
      return [
        [name, constant(value)],
        ['sha256', constant(files[String(value)] ?? '')],
      ];
    }
    const [field, written] = isTemplate ? ['content', plain.get(String(value)) ?? ''] : [name, value];
    unsettled ||= mentions(written);
    return [[field, compile(written, memberSchema(kind.kind.schema, field))]];
  });
  return { value: mapOf(members), unsettled, rendersTemplate };
}

/** Compiles any value whose texts may hold expressions. @param schema of the value with the expressions filled in */
export const compileValue = (value: unknown, schema: TSchema): CompiledBody => ({
  value: compile(value, schema),
  unsettled: mentions(value),
  rendersTemplate: false,
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
  return mapOf(given.map(([name, member]) => [name, compile(member, memberSchema(schema, name))] as const));
}

function mapOf(members: readonly Member[]): Compiled {
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
