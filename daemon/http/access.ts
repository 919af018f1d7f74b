/** Who calls, and whether they may: the part of a login that travels with each request. */
import type { ServerResponse } from 'node:http';
import type { Operator } from '../../src/contract/operators.js';
import type { Access } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Exchange } from './exchange.js';

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

const sessionOver = (): Fault =>
  new Fault('unauthenticated', 'the session is unknown or over', { hint: 'log in again' });

/** How often the session is looked at, in milliseconds, whether anything is sent or not. */
const RECHECK_MS = 400;
/** How long the client has to take the reason, in milliseconds. */
const LAST_WORDS_MS = 300;

export interface SessionGuard {
  /** Why the answer has to end now; null while the session goes on. */
  readonly ended: Fault | null;
  stop(): void;
}

/**
 * Watches the session of a request until its answer is complete. When the session ends, the handler is cancelled as by a client
 * that goes away, and a client that does not take the end of its answer is cut off.
 */
export function guardSession(exchange: Exchange, response: ServerResponse, authenticate: Authenticate): SessionGuard {
  let ended: Fault | null = null;
  let isLooking = false;
  const look = async () => {
    if (isLooking) return;
    isLooking = true;
    try {
      if ((await authenticate(exchange.token ?? '')) !== null) return;
      stop();
      ended = sessionOver();
      exchange.cancellation.cancel(ended);
      setTimeout(() => response.destroy(), LAST_WORDS_MS).unref();
    } catch {
      // A store that cannot be read now ends no session: it is looked at again.
    } finally {
      isLooking = false;
    }
  };
  const timer = setInterval(look, RECHECK_MS);
  const stop = () => clearInterval(timer);
  response.once('close', stop);
  return {
    get ended() {
      return ended;
    },
    stop,
  };
}
