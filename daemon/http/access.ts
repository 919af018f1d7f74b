/** Who calls, and whether they may: the part of a login that travels with each request. */
import type { Operator } from '../../src/contract/operators.js';
import type { Access } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';

export interface Session {
  readonly operator: Operator;
  /** Unix time in seconds. */
  readonly expiresAt: number;
}

/** The session of a token, or null when there is none or it is over. */
export type Authenticate = (token: string) => Promise<Session | null>;

/** Throws `role_forbidden` or `admin_required` unless the operator's role suffices. */
export type Authorize = (access: Access, operator: Operator) => void;

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*) *$/i;

/** The token of an `Authorization` header. Throws `unauthenticated`. */
export function bearerToken(header: string | undefined): string {
  if (header === undefined) {
    throw new Fault('unauthenticated', 'this request needs a login', {
      hint: 'send the session token as "Authorization: Bearer TOKEN"',
    });
  }
  const token = BEARER.exec(header)?.[1];
  if (token !== undefined) return token;
  throw new Fault('unauthenticated', 'the Authorization header is not of the form "Bearer TOKEN"', {
    hint: 'send the session token as "Authorization: Bearer TOKEN"',
  });
}

/** Throws `unauthenticated` when there is no session. */
export function requireSession(session: Session | null): Session {
  if (session !== null) return session;
  throw sessionOver();
}

export const sessionOver = (): Fault =>
  new Fault('unauthenticated', 'the session is unknown or over', { hint: 'log in again' });
