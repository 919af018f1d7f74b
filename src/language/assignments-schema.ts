/** The shape of a file that declares assignments. */
import * as Type from 'typebox';
import { MODULE_NAME_PATTERN } from '../kernel/identifiers.js';

const AssignmentSchema = Type.Object(
  {
    name: Type.String({ pattern: MODULE_NAME_PATTERN }),
    modules: Type.Array(Type.String({ pattern: MODULE_NAME_PATTERN }), {
      maxItems: 1000,
      uniqueItems: true,
    }),
    selector: Type.String({ minLength: 1, maxLength: 4096 }),
    description: Type.Optional(Type.Union([Type.String({ maxLength: 4096 }), Type.Null()])),
  },
  { additionalProperties: false, title: 'Assignment' },
);

export const AssignmentsFileSchema = Type.Object(
  { assignments: Type.Array(AssignmentSchema, { maxItems: 10_000 }) },
  { additionalProperties: false, title: 'File of assignments' },
);
export type AssignmentsFile = Type.Static<typeof AssignmentsFileSchema>;
export type DeclaredAssignment = AssignmentsFile['assignments'][number];
