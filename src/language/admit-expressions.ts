/** Bodies as modules write them: a constrained text may be an expression instead, checked once it is filled in. */
import * as Type from 'typebox';
import { OPEN } from './expression.js';
import { choicesOf, shapeOf } from './shape-schema.js';

const expression = Type.String({
  pattern: '\\$\\{\\{',
  description: `Text with an expression such as ${OPEN} tags.KEY }}`,
});

/** The same schema, with an expression allowed wherever it restricts a text. Members of objects and lists included. */
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
