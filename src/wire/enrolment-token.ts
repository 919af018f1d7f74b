/** Enrolment tokens as text: `orch-enroll-v1.<id>.<secret>.<orchestrator's key>`, the last two 32 bytes each in base64url. */
import type { PublicKeyHex } from '../kernel/ids.js';

export interface EnrolmentToken {
  /** ULID; the only part that may be logged. */
  readonly id: string;
  readonly secret: Buffer;
  /** Of the orchestrator that has made it, and that alone may see it. Its form is known, not whether it is fit for use. */
  readonly orchestratorKey: PublicKeyHex;
}

const PREFIX = 'orch-enroll-v1';
const BYTES = '[A-Za-z0-9_-]{43}';

export const ENROLMENT_TOKEN_PATTERN = `^${PREFIX}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}\\.${BYTES}\\.${BYTES}$`;

/** What becomes of a token that an agent shows. */
export const TOKEN_VERDICTS = ['accepted', 'unknown', 'expired', 'used_up', 'revoked'] as const;
export type TokenVerdict = (typeof TOKEN_VERDICTS)[number];

/** Why a token was not accepted, to go on behind "the enrolment token was not accepted: ". */
export const REFUSAL_TEXT: Readonly<Record<Exclude<TokenVerdict, 'accepted'>, string>> = {
  unknown: 'the orchestrator does not know it',
  expired: 'it has expired',
  used_up: 'it has no uses left',
  revoked: 'it was revoked',
};

export const formatEnrolmentToken = ({ id, secret, orchestratorKey }: EnrolmentToken): string =>
  [PREFIX, id, secret.toString('base64url'), Buffer.from(orchestratorKey, 'hex').toString('base64url')].join('.');

/** Null for what is no token. */
export function parseEnrolmentToken(text: string): EnrolmentToken | null {
  if (!new RegExp(ENROLMENT_TOKEN_PATTERN).test(text)) return null;
  const [, id = '', secret = '', key = ''] = text.split('.');
  const token = {
    id,
    secret: Buffer.from(secret, 'base64url'),
    orchestratorKey: Buffer.from(key, 'base64url').toString('hex') as PublicKeyHex,
  };
  // The last character of 32 bytes has two bits to spare: each token has one spelling.
  return formatEnrolmentToken(token) === text ? token : null;
}
