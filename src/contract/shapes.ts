/** Schemas and parameters that many routes share. */
import * as Type from 'typebox';
import { PUBLIC_KEY_PATTERN } from '../kernel/ids.js';
import { closed, nullable, optional } from '../kernel/schema.js';

/** Unix seconds (UTC). */
export const Seconds = Type.Integer({ description: 'Unix time in seconds (UTC)' });
export const Ulid = Type.String({ pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' });
/** ID of a record, with its meaning. */
export const ulidOf = (description: string) => Type.String({ ...Ulid, description });
/** Lower-case hex of the first 16 bytes of SHA-256 of a raw public key. */
export const KeyId = Type.String({ pattern: '^[0-9a-f]{32}$' });
/** ID of an agent. */
export const NodeId = Type.String({
  ...KeyId,
  description: 'ID of the agent: the first 16 bytes of the SHA-256 of its public key, in hex',
});
/** ID of an operator. */
export const OperatorId = Type.String({
  ...KeyId,
  description: 'ID of the operator: the first 16 bytes of the SHA-256 of the public key, in hex',
});
/** Name of an agent. */
export const AgentName = nullable(Type.String({ description: 'Name of the agent; null for one without a name' }));
/** ID in a path. */
export const pathId = (description: string) => Type.String({ minLength: 1, maxLength: 64, description });
/** Name in a path. */
export const pathName = (description: string) => Type.String({ minLength: 1, maxLength: 128, description });
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

export const NodeParams = closed({ node_id: pathId('ID of the agent, as `listAgents` shows it') });

/** Declares the `limit` of a list: 0 means the default, larger values are clamped to the maximum, negative ones refused. */
export const limitOf = (standard: number, maximum: number) =>
  Type.Integer({ minimum: 0, default: standard, description: `Default ${standard}, also for 0; at most ${maximum}` });

/** Place of a page in a list that is paged by numbers. */
export const Offset = optional(Type.Integer({ minimum: 0, description: 'Number of records to skip. Default 0' }));

/** Members of an answer that is paged by numbers. */
export const pageMembers = {
  total: Type.Integer({ description: 'Number of all records that match' }),
  limit: Type.Integer({ description: 'Maximum number of records on this page' }),
  offset: Type.Integer({ description: 'Number of records before this page' }),
};

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
    title: Type.String({ description: 'Name of the error for people' }),
    status: Type.Integer({ description: 'HTTP status of the answer' }),
    detail: Type.String({ description: 'The failure and the next step' }),
    code: Type.String({ description: 'Stable snake_case name of the error' }),
    request_id: Type.Optional(
      Type.String({ description: 'ID of the request in the log of the orchestrator, as in `X-Request-Id`' }),
    ),
    retry_after: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Seconds after which another attempt makes sense, as in `Retry-After`' }),
    ),
    errors: Type.Optional(
      Type.Array(
        closed({
          path: Type.String({ description: 'JSON pointer' }),
          message: Type.String({ description: 'What is wrong there' }),
          line: Type.Optional(Type.Integer({ description: 'Line in the text of a module or value set, from 1' })),
          column: Type.Optional(Type.Integer({ description: 'Column in that line, from 1' })),
        }),
        { description: 'Each wrong place of the request' },
      ),
    ),
  },
  { description: 'RFC 9457 problem details; further members depend on the code' },
);

export type Problem = Type.Static<typeof ProblemSchema>;
