/** Puts the parts of this room together. */
import type { Core } from '../core/core.js';
import { ChallengeStore } from './challenge-store.js';
import { FailedLogins } from './failed-logins.js';
import { Login } from './login.js';
import { Operators } from './operators.js';
import { RateLimiter } from './rate-limiter.js';
import { Sessions } from './sessions.js';

export interface AuthOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'randomBytes' | 'uow'> {
  /** Life of a session in milliseconds; asked at each login. */
  readonly sessionLifetimeMs: () => number;
  /** Failed challenges and verifications a minute and network. */
  readonly loginsPerMinute: number;
  /** Failed verifications a minute, network and key. */
  readonly failedLoginsPerMinute: number;
  /** SHA-256 of the SPKI of the certificate that clients see, 32 bytes; null over plain HTTP on loopback. */
  readonly serverSpki: () => Uint8Array | null;
}

export interface Auth {
  readonly login: Login;
  readonly sessions: Sessions;
  readonly operators: Operators;
  /** `flush` is to be called once a minute, `flush(true)` at the end; likewise `sessions.prune`. */
  readonly failures: FailedLogins;
}

export function createAuth(options: AuthOptions): Auth {
  const { clock, loginsPerMinute, failedLoginsPerMinute, sessionLifetimeMs } = options;
  const sessions = new Sessions({ ...options, lifetimeMs: sessionLifetimeMs });
  const failures = new FailedLogins(options);
  const login = new Login({
    ...options,
    sessions,
    failures,
    challenges: new ChallengeStore(clock),
    failedRequests: new RateLimiter({ clock, limit: loginsPerMinute, what: 'failed login requests from this address' }),
    rejections: new RateLimiter({ clock, limit: failedLoginsPerMinute, what: 'failed logins with this key' }),
  });
  const operators = new Operators({ ...options, sessions });
  return { login, sessions, operators, failures };
}
