/** The session of a request. */
import type { Operator } from '../../src/contract/operators.js';
import type { Rights } from '../core/rights.js';

export interface Session {
  readonly operator: Operator;
  readonly rights: Rights;
  /** Unix time in seconds. */
  readonly expiresAt: number;
}
