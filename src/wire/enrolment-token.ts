/** Enrolment tokens as text: `orch-enroll-v1.<id>.<secret>.<orchestrator's key>`, the last two 32 bytes each in base64url. */
import type { PublicKeyHex } from '../kernel/ids.js';

interface EnrolmentToken {
  /** ULID; the only part that may be logged. */
  readonly id: string;
  readonly secret: Buffer;
  /** Key of the issuing orchestrator, the only one that may see the token; its form is checked, not its validity. */
  readonly orchestratorKey: PublicKeyHex;
}

const PREFIX = 'orch-enroll-v1';
const BYTES = '[A-Za-z0-9_-]{43}';

export const ENROLMENT_TOKEN_PATTERN = `^${PREFIX}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}\\.${BYTES}\\.${BYTES}$`;

/** Verdicts about a token that an agent shows. */
export const TOKEN_VERDICTS = ['accepted', 'unknown', 'expired', 'used_up', 'revoked'] as const;
export type TokenVerdict = (typeof TOKEN_VERDICTS)[number];

/** Why a token was not accepted, as text after "the enrolment token was not accepted: ". */
export const REFUSAL_TEXT: Readonly<Record<Exclude<TokenVerdict, 'accepted'>, string>> = {
  unknown: 'the orchestrator does not know it',
  expired: 'it has expired',
  used_up: 'it has no uses left',
  revoked: 'it was revoked',
};

export const formatEnrolmentToken = ({ id, secret, orchestratorKey }: EnrolmentToken): string =>
  [PREFIX, id, secret.toString('base64url'), Buffer.from(orchestratorKey, 'hex').toString('base64url')].join('.');

/** Parses a token; returns null for other text. */
export function parseEnrolmentToken(text: string): EnrolmentToken | null {
  if (!new RegExp(ENROLMENT_TOKEN_PATTERN).test(text)) return null;
  const [, id = '', secret = '', key = ''] = text.split('.');
  const token = {
    id,
    secret: Buffer.from(secret, 'base64url'),
    orchestratorKey: Buffer.from(key, 'base64url').toString('hex') as PublicKeyHex,
  };
  // The last character of 32 bytes has two unused bits; only one spelling is valid.
  return formatEnrolmentToken(token) === text ? token : null;
}
