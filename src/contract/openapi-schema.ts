/** Writes schemas as JSON Schema with references to the named ones. */
import type { TSchema } from 'typebox';
import type { JsonObject, JsonValue } from '../kernel/json.js';

export type WriteSchema = (schema: TSchema) => JsonObject;

export interface SchemaWriter {
  /** A reference for a named schema, the schema itself for another one. */
  readonly write: WriteSchema;
  /** The definition of every named schema, for `components`. */
  definitions(): JsonObject;
}

export function schemaWriter(named: Readonly<Record<string, TSchema>>): SchemaWriter {
  const names = new Map<unknown, string>(Object.entries(named).map(([name, schema]) => [schema, name]));
  const copy = (value: unknown): JsonValue => {
    const name = names.get(value);
    return name === undefined ? copyInside(value) : { $ref: `#/components/schemas/${name}` };
  };
  const copyInside = (value: unknown): JsonValue => {
    if (Array.isArray(value)) return value.map(copy);
    if (typeof value === 'object' && value !== null) return copyMembers(value);
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
  };
  const copyMembers = (value: object): JsonObject => ({
    ...Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copy(member)])),
    ...formatOf(value),
    ...typeOf(value),
  });
  return {
    write: (schema) => {
      const name = names.get(schema);
      return name === undefined ? copyMembers(schema) : { $ref: `#/components/schemas/${name}` };
    },
    definitions: () => Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, copyMembers(schema)])),
  };
}

const MOST_INT32 = 2 ** 31 - 1;

/** Generated clients take an integer without a format for 32 bits, which bytes and times do not fit into. */
function formatOf(schema: {
  readonly type?: unknown;
  readonly maximum?: unknown;
  readonly format?: unknown;
}): JsonObject {
  if (schema.type !== 'integer' || schema.format !== undefined) return {};
  const { maximum } = schema;
  return { format: typeof maximum === 'number' && maximum <= MOST_INT32 ? 'int32' : 'int64' };
}

/** Generated clients want to know what the values of an enumeration are. */
function typeOf(schema: { readonly type?: unknown; readonly enum?: unknown }): JsonObject {
  const isOfText = Array.isArray(schema.enum) && schema.enum.every((value) => typeof value === 'string');
  return isOfText && schema.type === undefined ? { type: 'string' } : {};
}
