/** The keywords of JSON Schema that the language reads out of TypeBox schemas. */
import type { TSchema } from 'typebox';

export interface ShapeSchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly TSchema[];
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | TSchema;
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: TSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A TypeBox schema is JSON Schema at run time; its static type only does not say so. */
export const shapeOf = (schema: TSchema): ShapeSchema => schema as ShapeSchema;

export const memberNames = (schema: TSchema): readonly string[] => Object.keys(shapeOf(schema).properties ?? {});

/** The fixed values that a schema allows, or null when it is not a choice. */
export function choicesOf({ enum: several, const: single }: ShapeSchema): readonly unknown[] | null {
  if (several !== undefined) return several;
  return single === undefined ? null : [single];
}

/** The branches of a union, unions inside it included; a schema that is none is its own only branch. */
export function branchesOf(schema: TSchema): readonly TSchema[] {
  const { anyOf } = shapeOf(schema);
  return anyOf === undefined ? [schema] : anyOf.flatMap(branchesOf);
}

/** The JSON types that a single branch takes; empty when it takes any. */
export function typesOf(schema: TSchema): readonly string[] {
  const shape = shapeOf(schema);
  if (shape.type !== undefined) return [shape.type];
  const choices = choicesOf(shape);
  return choices === null ? [] : [...new Set(choices.map((value) => (value === null ? 'null' : typeof value)))];
}
