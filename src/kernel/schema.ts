/** Small schema builders that every room uses alike. */
import * as Type from 'typebox';

/** A value or null. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A member that may be left out; null means the same as leaving it out. */
export const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Marks members that null clears, for whoever reads the schema as data. */
export const NULL_CLEARS = 'x-null-clears';

/** A member of a change that may be left out, which leaves what is there; null clears it. */
export const clearable = <T extends Type.TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()], { [NULL_CLEARS]: true }));

/** An object that refuses unknown members. */
export const closed = <P extends Type.TProperties>(properties: P, options: Type.TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });
