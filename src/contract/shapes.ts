/** Parts that many routes share. */
import * as Type from 'typebox';
import { PUBLIC_KEY_PATTERN } from '../kernel/identifiers.js';
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

/** Filter of lists of what operators did. */
export const OperatorFilter = optional(
  Type.String({
    description:
      'operator_id or username. A username means the operator who has it now, else the only one who ever had it; when ' +
      'several removed operators had it, the answer is `invalid_filter` with their IDs',
  }),
);

export const NodeParams = closed({ node_id: Type.String({ minLength: 1, maxLength: 64 }) });

/** `limit` of a list: 0 is the standard, more than the maximum is clamped to it, less than 0 is refused. */
export const limitOf = (standard: number, maximum: number) =>
  Type.Integer({ minimum: 0, default: standard, description: `Default ${standard}, also for 0; at most ${maximum}` });

/** Header of a list that is read page by page. */
export const NEXT_PAGE = { Link: 'The next page, `<URL>; rel="next"`; absent on the last one' } as const;

/** ID of the last record of the page before. */
export const Cursor = optional(
  Type.String({
    pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$',
    description: 'ID of the last record of the page before; the Link header holds it',
  }),
);

/** A limit within its bounds. */
export const clampLimit = (limit: number | null | undefined, standard: number, maximum: number): number =>
  Math.min(limit || standard, maximum);
