/** Keeps an answer that goes on for long from outliving the session that asked for it. */
import { type Authenticate, requireSession } from './access.js';

/** How long a session that has ended may go unnoticed, in milliseconds. */
const RECHECK_MS = 1000;

/** To be called before each piece of the answer. Throws `unauthenticated` soon after the session has ended. */
export function sessionGuard(authenticate: Authenticate, token: string): () => Promise<void> {
  let checked = performance.now();
  return async () => {
    if (performance.now() - checked < RECHECK_MS) return;
    requireSession(await authenticate(token));
    checked = performance.now();
  };
}
