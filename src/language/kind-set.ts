/** The resource kinds that a module may use, prepared once for validation and resolution. */

import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import { type Validator, validator } from '../kernel/validator.js';
import { type ResourceKind, TRIGGER_FIELDS, type TriggerField } from '../resources/kind.js';
import { OPEN } from './parse-expression.js';
import { choicesOf, memberNames, shapeOf } from './shape-schema.js';

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
}

export type KindSet = ReadonlyMap<string, KnownKind>;

export function kindSet(catalogue: ReadonlyMap<string, ResourceKind>): KindSet {
  return new Map([...catalogue].map(([name, kind]) => [name, known(kind)]));
}

function known(kind: ResourceKind): KnownKind {
  const members = new Set(memberNames(kind.schema));
  const schema = admitExpressions(kind.schema);
  return {
    kind,
    schema,
    written: validator(schema),
    resolved: validator(kind.schema),
    triggers: TRIGGER_FIELDS.filter((field) => members.has(field)),
    templated: members.has('template') && members.has('content'),
  };
}

/** Returns true for a body member that holds ids of the module, in which expressions have no meaning. */
export const isReference = (member: string, { templated, triggers }: KnownKind): boolean =>
  (templated && member === 'template') || triggers.some((field) => field === member);

const expression = Type.String({
  pattern: '\\$\\{\\{',
  description: `Text with an expression such as ${OPEN} tags.KEY }}`,
});

/** Returns the schema with an expression allowed in place of every constrained text, also in objects and lists. */
export function admitExpressions(schema: Type.TSchema): Type.TSchema {
  const shape = shapeOf(schema);
  if (shape.anyOf !== undefined) return { ...schema, anyOf: shape.anyOf.flatMap(branchesWith) };
  const { properties, patternProperties, items } = shape;
  return restrictsText(schema)
    ? Type.Union([schema, expression])
    : {
        ...schema,
        ...(properties && { properties: mapMembers(properties) }),
        ...(patternProperties && { patternProperties: mapMembers(patternProperties) }),
        ...(items && { items: admitExpressions(items) }),
      };
}

const branchesWith = (branch: Type.TSchema): readonly Type.TSchema[] =>
  restrictsText(branch) ? [branch, expression] : [admitExpressions(branch)];

const mapMembers = (members: Readonly<Record<string, Type.TSchema>>): Record<string, Type.TSchema> =>
  Object.fromEntries(Object.entries(members).map(([name, member]) => [name, admitExpressions(member)]));

function restrictsText(schema: Type.TSchema): boolean {
  const shape = shapeOf(schema);
  const choices = choicesOf(shape);
  if (choices !== null) return choices.some((choice) => typeof choice === 'string');
  return shape.type === 'string' && (shape.pattern !== undefined || shape.maxLength !== undefined);
}
