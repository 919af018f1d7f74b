/** Keeps an answer that goes on for long from outliving the session that asked for it. */
import type { ServerResponse } from 'node:http';
import type { Fault } from '../../src/kernel/fault.js';
import { type Authenticate, sessionOver } from './access.js';
import type { Exchange } from './exchange.js';

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
