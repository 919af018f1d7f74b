/** Schemas and parameters that many routes share. */
import * as Type from 'typebox';
import { PUBLIC_KEY_PATTERN } from '../kernel/ids.js';
import { closed, optional } from '../kernel/schema.js';

/** Unix seconds (UTC). */
export const Seconds = Type.Integer({ description: 'Unix time in seconds (UTC)' });
export const Ulid = Type.String({ pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' });
/** Lower-case hex of the first 16 bytes of SHA-256 of a raw public key. */
export const KeyId = Type.String({ pattern: '^[0-9a-f]{32}$' });
export const PublicKey = Type.String({
  pattern: PUBLIC_KEY_PATTERN,
  description: 'Raw 32-byte Ed25519 public key in hex',
});
export const StringMap = Type.Record(Type.String(), Type.String());

/** Filter by operator. */
export const OperatorFilter = optional(
  Type.String({
    description:
      'operator_id or username. A username means the operator who has it now, else the only one who ever had it; when ' +
      'several removed operators had it, the answer is `invalid_filter` with their IDs',
  }),
);

export const NodeParams = closed({ node_id: Type.String({ minLength: 1, maxLength: 64 }) });

/** Declares the `limit` of a list: 0 means the default, larger values are clamped to the maximum, negative ones refused. */
export const limitOf = (standard: number, maximum: number) =>
  Type.Integer({ minimum: 0, default: standard, description: `Default ${standard}, also for 0; at most ${maximum}` });

/** Header of a paged list. */
export const NEXT_PAGE = { Link: 'The next page, `<URL>; rel="next"`; absent on the last one' } as const;

/** Cursor of a paged list: ID of the last record on the previous page. */
export const Cursor = optional(
  Type.String({
    pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$',
    description: 'ID of the last record on the previous page, from the Link header',
  }),
);

/** Returns the limit within its bounds. */
export const clampLimit = (limit: number | null | undefined, standard: number, maximum: number): number =>
  Math.min(limit || standard, maximum);

/** The error body of every failure, by RFC 9457. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: '`urn:orch:problem:` and the code' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'The failure and the next step' }),
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
