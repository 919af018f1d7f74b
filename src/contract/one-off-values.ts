/** Values of inputs that a request brings with it, for its plan, its apply or its rollout alone. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { ONE_OFF_LIMITS } from './run-targets.js';

const { words, wordLength, files, fileLength } = ONE_OFF_LIMITS;

const members = {
  set: Type.Array(Type.String({ maxLength: wordLength }), {
    maxItems: words,
    description:
      'Single values as `MODULE:INPUT=VALUE`, such as `nginx:workers=8`, above those of `files`. The type of the input decides how the text is read; lists, maps and objects are YAML',
  }),
  files: Type.Array(
    closed({
      name: Type.String({ minLength: 1, maxLength: 4096, description: 'Name for messages, such as prod.values.yaml' }),
      content: Type.String({ maxLength: fileLength, description: 'YAML of a value set' }),
    }),
    { maxItems: files, description: 'Value sets, of which the most specific clause wins' },
  ),
};

/** One-off values as they were given. */
export const OneOffValuesSchema = closed(members, {
  description: 'The values that the request brought with it',
});
export type OneOffTexts = Type.Static<typeof OneOffValuesSchema>;

/** One-off values of a request. */
export const OneOffRequestSchema = closed(
  { set: optional(members.set), files: optional(members.files) },
  {
    description:
      'Values of inputs for this request alone, above value sets and assignments. Secret inputs and unknown modules or inputs are refused. After an apply with them the agents are behind, and automatic applies stop there until an apply without them',
  },
);

/** Member of the requests that plan and apply. */
export const oneOffBody = { values: optional(OneOffRequestSchema) };

/** Member of an agent that a change reaches. */
export const ownValues = {
  own_values: Type.Optional(
    Type.Boolean({
      description:
        'True for an agent whose last apply brought values with it, which automatic applies leave alone; absent for others',
    }),
  ),
};

/** Member of operations and rollouts that brought values with them. */
export const valueInputs = {
  value_inputs: optional(
    Type.Array(Type.String(), {
      description:
        'Inputs and shared values that the request gave values of its own, such as `nginx.workers` and `shared.domain`; absent for none',
    }),
  ),
};
