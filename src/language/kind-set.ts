/** The resource kinds that a module may use, prepared once for validation and resolution. */

import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import { type Validator, validator } from '../kernel/validator.js';
import { isAbsence, kindOfAbsence } from '../resources/absence-name.js';
import { type Body, type ResourceKind, TRIGGER_FIELDS, type TriggerField } from '../resources/kind.js';
import { isOneExpression } from './expression.js';
import { OPEN } from './parse-expression.js';
import { branchesOf, choicesOf, memberNames, memberSchema, shapeOf, takesOnlyText, typesOf } from './shape-schema.js';

export interface KnownKind {
  readonly kind: ResourceKind;
  /** Schema of the body as modules write it, with expressions allowed. */
  readonly schema: TSchema;
  readonly written: Validator<unknown>;
  /** Validates a body with every expression filled in. */
  readonly resolved: Validator<unknown>;
  readonly triggers: readonly TriggerField[];
  /** True when `template` may provide the `content`. */
  readonly templated: boolean;
  /** True when `source` may name a file beside the module that is the content. */
  readonly sourced: boolean;
  /** True when `source` may name a directory beside the module, whose files come with it. */
  readonly treed: boolean;
  /** True when `names` may list several in place of `name`. */
  readonly listed: boolean;
}

export type KindSet = ReadonlyMap<string, KnownKind>;

/** Returns the names of the kinds that stand below `resource`. */
export const kindNames = (kinds: KindSet): readonly string[] => [...kinds.keys()].filter((name) => !isAbsence(name));

/** Returns the names of the kinds that stand below `absent`. */
export const absenceNames = (kinds: KindSet): readonly string[] =>
  [...kinds.keys()].filter(isAbsence).map(kindOfAbsence);

/** Returns true for the name of a kind that stands below `resource`. */
export const isKind = (kinds: KindSet, name: string): boolean => kinds.has(name) && !isAbsence(name);

export function kindSet(catalogue: ReadonlyMap<string, ResourceKind>): KindSet {
  return new Map([...catalogue].map(([name, kind]) => [name, known(kind)]));
}

function known(kind: ResourceKind): KnownKind {
  const members = new Set(memberNames(kind.schema));
  const triggers = TRIGGER_FIELDS.filter((field) => members.has(field));
  const schema = admitExpressions(kind.schema, new Set(triggers));
  return {
    kind,
    schema,
    written: validator(schema),
    resolved: validator(kind.schema),
    triggers,
    templated: members.has('template') && members.has('content'),
    sourced: members.has('source') && members.has('sha256'),
    treed: members.has('source') && members.has('file_mode'),
    listed: kind.isListed === true,
  };
}

/** Returns true for a body member that holds ids or files of the module, in which expressions have no meaning. */
export const isReference = (member: string, { templated, sourced, treed, triggers }: KnownKind): boolean =>
  (templated && member === 'template') ||
  ((sourced || treed) && member === 'source') ||
  triggers.some((field) => field === member);

const expression = Type.String({
  pattern: '\\$\\{\\{',
  description: `Text with an expression such as ${OPEN} tags.KEY }}`,
});

const NONE: ReadonlySet<string> = new Set();

/**
 * Returns the schema with an expression allowed in place of every member and item, also inside objects and lists, and of
 * a text.
 * @param fixed members that hold none
 */
export function admitExpressions(schema: Type.TSchema, fixed = NONE): Type.TSchema {
  const { properties, patternProperties, items } = shapeOf(schema);
  if (restrictsText(schema)) return Type.Union([schema, expression]);
  const members = (of: Readonly<Record<string, Type.TSchema>>) =>
    Object.fromEntries(Object.entries(of).map(([name, one]) => [name, fixed.has(name) ? one : orExpression(one)]));
  return {
    ...schema,
    ...(properties && { properties: members(properties) }),
    ...(patternProperties && { patternProperties: members(patternProperties) }),
    ...(items && { items: orExpression(items) }),
  };
}

/** Returns the schema of a value or of an expression. A text without constraints holds every expression. */
function orExpression(schema: Type.TSchema): Type.TSchema {
  const { anyOf } = shapeOf(schema);
  if (anyOf === undefined) {
    if (takesEachText(schema) || restrictsText(schema)) return admitExpressions(schema);
    return Type.Union([admitExpressions(schema), expression]);
  }
  const branches = branchesOf(schema);
  const admitted = branches.map((branch) => (restrictsText(branch) ? branch : admitExpressions(branch)));
  return { ...schema, anyOf: branches.some(takesEachText) ? admitted : [...admitted, expression] };
}

function takesEachText(schema: Type.TSchema): boolean {
  const types = typesOf(schema);
  return types.length === 0 || (types.includes('string') && !restrictsText(schema));
}

function restrictsText(schema: Type.TSchema): boolean {
  const shape = shapeOf(schema);
  const choices = choicesOf(shape);
  if (choices !== null) return choices.some((choice) => typeof choice === 'string');
  return shape.type === 'string' && (shape.pattern !== undefined || shape.maxLength !== undefined);
}

/**
 * Returns a written body without the values that are one expression and no text, for code that knows the types of a body.
 * Their value is known only for an agent.
 */
export function settledBody({ kind }: KnownKind, body: Body): Body {
  return Object.fromEntries(settledMembers(body, kind.schema));
}

function settledMembers(record: object, schema: TSchema | null): readonly (readonly [string, unknown])[] {
  return Object.entries(record).flatMap(([name, value]): (readonly [string, unknown])[] => {
    const inner = memberSchema(schema, name);
    return isSettled(value, inner) ? [[name, settled(value, inner)]] : [];
  });
}

function settled(value: unknown, schema: TSchema | null): unknown {
  if (Array.isArray(value)) {
    const inner = memberSchema(schema, null);
    return value.filter((item) => isSettled(item, inner)).map((item) => settled(item, inner));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(settledMembers(value, schema));
}

const isSettled = (value: unknown, schema: TSchema | null): boolean =>
  typeof value !== 'string' || schema === null || takesOnlyText(schema) || !isOneExpression(value);
