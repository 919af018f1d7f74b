/** What a store that was put back to an earlier state must not bring back to life. */
import { revokeUnusedTokens } from '../auth/operator-store.js';
import { deleteAllSessions } from '../auth/sessions.js';
import type { Queryable } from '../database/schema.js';
import { beginEpoch } from '../engine/epoch.js';
import { ACTIVE_STATES } from '../engine/operation-state.js';
import { countOperations } from '../engine/operation-store.js';
import { countPendingDeliveries } from '../notify/delivery-store.js';

export interface Anew {
  readonly epoch: number;
  /** Logins that are over: their operators may have logged out, or been removed, since. */
  readonly sessions: number;
  /** Enrolment tokens that are revoked: they may have been used up or revoked since. */
  readonly tokens: number;
  /** Applies that were under way. They are not sent again; the agents are asked what became of them. */
  readonly operations: number;
  /** Deliveries of notifications that were waiting: they are sent, perhaps for the second time. */
  readonly deliveries: number;
}

/** @param others epochs of stores that had the same agents */
export async function beginAnew(
  tx: Queryable,
  { now, others }: { readonly now: number; readonly others: readonly number[] },
): Promise<Anew> {
  return {
    epoch: await beginEpoch(tx, { now, others }),
    sessions: await deleteAllSessions(tx),
    tokens: await revokeUnusedTokens(tx, now),
    operations: await countOperations(tx, { states: ACTIVE_STATES }),
    deliveries: await countPendingDeliveries(tx),
  };
}
