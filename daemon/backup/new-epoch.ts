/** Begins a new epoch for a store that is behind its agents: after a restore, `orch serve --new-epoch` or `--new-store`. */
import type { EpochReset } from '../../src/programs/store.js';
import { AUDIT_HEAD_KEY, REPLACED_HEAD_KEY } from '../audit/audit-head.js';
import { revokeUnusedTokens } from '../auth/operator-store.js';
import { deleteAllSessions } from '../auth/sessions.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import { deleteMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import { holdUntilResumed } from '../engine/applies/hold-after-restore.js';
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
  new_epoch: 'A new epoch was begun: the data directory was restored by hand',
  new_store: 'A new store was begun beside the keys of before',
} as const;

const REASONS = {
  new_epoch: 'a new epoch was begun for a store that was restored',
  new_store: 'a new store was begun',
} as const;

/**
 * Begins a new epoch and emits `orchestrator.restored`, for a store that `orch serve restore` did not restore.
 * Called before the engine reads the epoch.
 */
export async function newEpoch({ uow, clock, logger, by }: NewEpochOptions): Promise<void> {
  const now = clock.now();
  // The epochs that the agents have seen are unknown. A lost store's epochs began at 1 and grew by restores, so they are
  // far below the number of days since 1970.
  const others = [Math.floor(now / DAY)];
  const anew = await uow.write(async (tx, emit): Promise<EpochReset> => {
    const begun = await resetForNewEpoch(tx, { now, others, reason: REASONS[by] });
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
  for (const id of anew.rollouts) {
    logger.warn('a rollout is halted', { rollout_id: id, hint: `it goes on with: orch rollouts resume ${id}` });
  }
  for (const name of anew.assignments) {
    const hint = `they go on with: orch assignments resume ${name}`;
    logger.warn('the automatic applies of an assignment wait', { assignment: name, hint });
  }
}

/**
 * Begins a new epoch, deletes all sessions, revokes unused tokens, and forgets that the store has an audit head. Returns the counts.
 * @param others epochs of other stores with the same agents, which the new epoch must exceed
 * @param reason why rollouts and automatic applies wait for an operator: they may have ended or been cancelled since
 */
export async function resetForNewEpoch(
  tx: Queryable,
  { now, others, reason }: { readonly now: number; readonly others: readonly number[]; readonly reason: string },
): Promise<EpochReset> {
  for (const key of [AUDIT_HEAD_KEY, REPLACED_HEAD_KEY]) await deleteMeta(tx, key);
  const epoch = await beginEpoch(tx, { now, others });
  return {
    epoch,
    sessions: await deleteAllSessions(tx),
    tokens: await revokeUnusedTokens(tx, now),
    operations: await countOperations(tx, { states: ACTIVE_STATES }),
    deliveries: await countPendingDeliveries(tx),
    ...(await holdUntilResumed(tx, { reason, revision: `epoch ${epoch}` })),
  };
}
