/** The JSON Schema keywords of TypeBox schemas that the language reads. */
import type { TSchema } from 'typebox';

/** Schema keyword with the whole message for values of another type, which may be secret. */
export const INSTEAD = 'x-instead';

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
  /** Message for values of another type, which it does not show. */
  readonly [INSTEAD]?: string;
  readonly maximum?: number;
}

/** Returns a TypeBox schema as JSON Schema, which it is at run time. */
export const shapeOf = (schema: TSchema): ShapeSchema => schema as ShapeSchema;

export const memberNames = (schema: TSchema): readonly string[] => Object.keys(shapeOf(schema).properties ?? {});

/** Returns the fixed values of a choice, or null for other schemas. */
export function choicesOf({ enum: several, const: single }: ShapeSchema): readonly unknown[] | null {
  if (several !== undefined) return several;
  return single === undefined ? null : [single];
}

/** Returns the branches of a union and of unions inside it; any other schema is its own branch. */
export function branchesOf(schema: TSchema): readonly TSchema[] {
  const { anyOf } = shapeOf(schema);
  return anyOf === undefined ? [schema] : anyOf.flatMap(branchesOf);
}

/** Returns the JSON types of a branch; empty for any type. */
export function typesOf(schema: TSchema): readonly string[] {
  const shape = shapeOf(schema);
  if (shape.type !== undefined) return [shape.type];
  const choices = choicesOf(shape);
  return choices === null ? [] : [...new Set(choices.map((value) => (value === null ? 'null' : typeof value)))];
}

/** Returns the schema of a member of an object. Returns true for a member without one that is allowed, else false. */
export function schemaOfMember(shape: ShapeSchema, name: string): TSchema | boolean {
  const { properties = {}, patternProperties = {}, additionalProperties = true } = shape;
  if (Object.hasOwn(properties, name)) return properties[name] ?? false;
  const pattern = Object.keys(patternProperties).find((candidate) => new RegExp(candidate, 'u').test(name));
  return pattern === undefined ? additionalProperties : (patternProperties[pattern] ?? false);
}

/** Returns the schema of a member, or of the items of a list for a null `name`. Returns null if the schema does not define it. */
export function memberSchema(schema: TSchema | null, name: string | null): TSchema | null {
  for (const branch of schema === null ? [] : branchesOf(schema)) {
    const shape = shapeOf(branch);
    const found = name === null ? shape.items : schemaOfMember(shape, name);
    if (typeof found === 'object') return found;
  }
  return null;
}

/** Returns true for a schema that takes texts, and beside them at most null. */
export function takesOnlyText(schema: TSchema): boolean {
  const types = branchesOf(schema).flatMap(typesOf);
  return types.length > 0 && types.every((type) => type === 'string' || type === 'null');
}
