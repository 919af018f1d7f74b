/** The fault of a request without a session. */
import { Fault } from '../../src/kernel/fault.js';

/** Returns the fault of a request without a valid session. */
export const unauthenticated = (): Fault =>
  new Fault('unauthenticated', 'the request has no valid session token', { hint: 'log in with: orch login' });
