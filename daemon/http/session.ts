/** The session of a request. */
import type { Operator } from '../../src/contract/operators.js';

export interface Session {
  readonly operator: Operator;
  /** Unix time in seconds. */
  readonly expiresAt: number;
}
