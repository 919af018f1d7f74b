/** `orch serve --new-epoch` and `--new-store`: for a store that knows less than the agents, and was not put back by `orch serve restore`. */

import { revokeUnusedTokens } from '../auth/operator-store.js';
import { deleteAllSessions } from '../auth/sessions.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import { deleteMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import { beginEpoch } from '../engine/epoch.js';
import { ACTIVE_STATES } from '../engine/operations/operation-state.js';
import { countOperations } from '../engine/operations/operation-store.js';
import { countPendingDeliveries } from '../notify/delivery-store.js';
import { NOTE_KEY } from './backup-note.js';

interface NewEpochOptions extends Pick<Core, 'clock' | 'logger' | 'uow'> {
  readonly by: 'new_epoch' | 'new_store';
}

const DAY = 24 * 60 * 60 * 1000;
const SUMMARIES = {
  new_epoch: 'A new epoch was begun: the data directory was put back by hand',
  new_store: 'A new store was begun beside the keys of before',
} as const;

/** Runs before the engine reads the epoch. */
export async function newEpoch({ uow, clock, logger, by }: NewEpochOptions): Promise<void> {
  const now = clock.now();
  // Which epochs the agents have seen is not known. Those of a lost store began at 1 and grew with each restore: far fewer than
  // days since 1970.
  const others = [Math.floor(now / DAY)];
  const anew = await uow.write(async (tx, emit): Promise<Anew> => {
    const begun = await beginAnew(tx, { now, others });
    await deleteMeta(tx, NOTE_KEY);
    emit({
      type: 'orchestrator.restored',
      actor: SYSTEM,
      target: SYSTEM,
      summary: SUMMARIES[by],
      metadata: { by, ...begun },
    });
    return begun;
  });
  logger.warn('a new epoch was begun', { ...anew });
}

/** What a store that was put back to an earlier state must not bring back to life. */
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
