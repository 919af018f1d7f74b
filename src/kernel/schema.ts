/** Small schema builders that every room uses alike. */
import * as Type from 'typebox';

/** A value or null. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A member that may be left out; null means the same as leaving it out. */
export const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** An object that refuses unknown members. */
export const closed = <P extends Type.TProperties>(properties: P, options: Type.TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });
