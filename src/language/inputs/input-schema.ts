/** The schema of an input, for one level of it and for editors. */
import * as Type from 'typebox';
import { closed } from '../../kernel/schema.js';
import { INPUT_NAME_PATTERN, INPUT_TYPES } from './input.js';

/** Maximum inputs of a module, and fields of an object. */
export const MAX_INPUTS = 256;

const count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));

/** Returns the schema of an input. @param inner schemas of `of` and `fields` */
const inputSchema = (inner: { readonly of: Type.TSchema; readonly fields: Type.TSchema }) =>
  closed(
    {
      type: Type.Enum(INPUT_TYPES, { description: 'Type of the value' }),
      description: Type.Optional(Type.String({ maxLength: 4_096, description: 'What it is for, for people' })),
      default: Type.Optional(Type.Unknown({ description: 'Value for agents that have no other' })),
      optional: Type.Optional(Type.Boolean({ description: 'True if it may have no value, which equals nil' })),
      secret: Type.Optional(
        Type.Boolean({ description: 'True for a string that is the name of a secret: {secret: NAME}' }),
      ),
      merge: Type.Optional(Type.Boolean({ description: 'True to merge the values of several places by one level' })),
      enum: Type.Optional(
        Type.Array(Type.Union([Type.String(), Type.Number()]), {
          minItems: 1,
          maxItems: MAX_INPUTS,
          uniqueItems: true,
          description: 'The values that are possible',
        }),
      ),
      pattern: Type.Optional(
        Type.String({ description: 'Regular expression in the syntax of RE2 that a text must match' }),
      ),
      minimum: Type.Optional(Type.Number({ description: 'Smallest number' })),
      maximum: Type.Optional(Type.Number({ description: 'Largest number' })),
      min_items: count('Smallest number of elements or members'),
      max_items: count('Largest number of elements or members'),
      of: Type.Optional(inner.of),
      fields: Type.Optional(inner.fields),
    },
    { title: 'Input', description: 'A value that a module takes from outside' },
  );

/** Inputs whose types `readInputs` checks. */
const ANY_INPUTS = Type.Object({});

/** Schema of one level. */
export const LEVEL = inputSchema({ of: Type.Unknown(), fields: ANY_INPUTS });

/** JSON Schemas of `inputs` and of an input, for editors. @param ref of the second */
export function inputJsonSchemas(ref: string): { readonly inputs: Type.TSchema; readonly input: Type.TSchema } {
  const inner = Type.Ref(ref);
  const patternProperties = { [INPUT_NAME_PATTERN]: inner };
  const inputs = closed({}, { patternProperties, maxProperties: MAX_INPUTS });
  return { inputs, input: inputSchema({ of: inner, fields: inputs }) };
}
