/** `orch serve --new-epoch` and `--new-store`: for a store that knows less than the agents, and was not put back by `orch serve restore`. */
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import { deleteMeta } from '../database/meta.js';
import { NOTE_KEY } from './backup-note.js';
import { type Anew, beginAnew } from './begin-anew.js';

export interface NewEpochOptions extends Pick<Core, 'clock' | 'logger' | 'uow'> {
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
