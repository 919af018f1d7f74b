/** Authentication and authorisation of a request, and the session it belongs to. */
import type { ServerResponse } from 'node:http';
import type { Right } from '../../src/contract/rights.js';
import type { Access } from '../../src/contract/route.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { Exchange } from './exchange.js';
import type { Session } from './session.js';

/** Returns the session of a token, or null when it is unknown or expired. */
export type Authenticate = (token: string) => Promise<Session | null>;

/** Throws `role_forbidden`, `admin_required` or `not_granted` unless the operator may call routes with this access. */
export type Authorize = (access: Access, session: Session) => void;

/** Throws `agent_not_found` for a machine that the operator may not read, and `not_granted` without the right on it. */
export type AuthorizeOn = (right: Right, session: Session, nodeId: string) => Promise<void>;

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*) *$/i;

/** Returns the token of an `Authorization` header. Throws `unauthenticated`. */
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

/** Returns the session. Throws `unauthenticated` when there is none. */
export function requireSession(session: Session | null): Session {
  if (session !== null) return session;
  throw sessionOver();
}

const sessionOver = (): Fault =>
  new Fault('unauthenticated', 'the session is unknown or over', { hint: 'log in again' });

/** Interval of session checks in milliseconds, independent of traffic. */
const RECHECK_MS = 400;
/** Milliseconds in which the client must read the reason before its connection is closed. */
const LAST_WORDS_MS = 300;

export interface SessionGuard {
  /** Fault that ends the answer; null while the session is valid. */
  readonly ended: Fault | null;
  stop(): void;
}

/**
 * Watches the session of a request until its answer is complete. When the session ends, or `admit` refuses it, the handler is
 * cancelled as if the client had disconnected. A client that does not read the end of its answer is disconnected.
 * @param admit throws the fault with which the request would be refused now
 */
export function guardSession(
  exchange: Exchange,
  response: ServerResponse,
  admit: () => Promise<unknown>,
): SessionGuard {
  let ended: Fault | null = null;
  let isLooking = false;
  const look = async () => {
    if (isLooking) return;
    isLooking = true;
    try {
      await admit();
    } catch (error) {
      // A store that cannot be read right now ends no session; the next check retries.
      if (!isFault(error) || isFault(error, 'store_unavailable', 'shutting_down')) return;
      stop();
      ended = error;
      exchange.cancellation.cancel(error);
      setTimeout(() => response.destroy(), LAST_WORDS_MS).unref();
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
