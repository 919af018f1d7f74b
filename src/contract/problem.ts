/** The error body of every failure: RFC 9457 problem details. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: '`urn:orch:problem:` and the code' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What happened and what to do' }),
    code: Type.String({ description: 'Stable snake_case name of the error' }),
    request_id: Type.Optional(Type.String()),
    errors: Type.Optional(
      Type.Array(
        closed({
          path: Type.String({ description: 'JSON pointer' }),
          message: Type.String(),
          line: Type.Optional(Type.Integer()),
          column: Type.Optional(Type.Integer()),
        }),
      ),
    ),
  },
  { description: 'RFC 9457 problem details; further members depend on the code' },
);

export type Problem = Type.Static<typeof ProblemSchema>;
