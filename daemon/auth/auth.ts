/** Creates and connects the parts of authentication: logins, sessions and operators. */
import type { Core } from '../core/core.js';
import { ChallengeStore } from './challenge-store.js';
import { FailedLogins } from './failed-logins.js';
import { Login } from './login.js';
import { Operators } from './operators.js';
import { RateLimiter } from './rate-limiter.js';
import { SessionEvents } from './session-events.js';
import { Sessions } from './sessions.js';

export interface Auth {
  readonly login: Login;
  readonly sessions: Sessions;
  readonly operators: Operators;
  /** Stores the counts of logins that share an audit event: call it once a minute, and with true at shutdown. */
  readonly flush: (everything?: boolean) => Promise<void>;
}

/** Rotations of one operator's key within a minute: each leaves a record of the earlier key. */
const ROTATIONS = 30;

/**
 * Creates the parts. Login limits are read once, the lifetime of a session at each login.
 * @param serverSpki returns the SHA-256 of the SPKI of the certificate that clients see, 32 bytes; null over plain
 * HTTP on loopback
 */
export function createAuth(
  core: Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'randomBytes' | 'settings' | 'uow'>,
  { serverSpki }: { readonly serverSpki: () => Uint8Array | null },
): Auth {
  const { clock, settings } = core;
  const sessionEvents = new SessionEvents(core);
  const sessions = new Sessions({
    ...core,
    sessionEvents,
    lifetimeMs: () => settings().session_token_expiry_secs * 1000,
  });
  const failures = new FailedLogins(core);
  const limiter = (limit: number, what: string) => new RateLimiter({ clock, limit, what });
  const login = new Login({
    ...core,
    serverSpki,
    sessions,
    failures,
    sessionEvents,
    challenges: new ChallengeStore(clock),
    failedRequests: limiter(settings()['limits.login_per_minute'], 'failed login requests from this address'),
    rejections: limiter(settings()['limits.failed_login_per_minute'], 'failed logins with this key'),
  });
  const rotations = limiter(ROTATIONS, 'rotations of this operator');
  return {
    login,
    sessions,
    operators: new Operators({ ...core, sessions, rotations }),
    flush: async (everything) => {
      await failures.flush(everything);
      await sessionEvents.flush(everything);
    },
  };
}
