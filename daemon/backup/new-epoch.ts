/** `orch serve --new-epoch`: for a data directory that was put back by other means than `orch serve restore`. */
import type { Clock } from '../../src/kernel/clock.js';
import type { Logger } from '../../src/kernel/logger.js';
import { SYSTEM } from '../events/domain-event.js';
import type { UnitOfWork } from '../events/unit-of-work.js';
import { deleteMeta } from '../store/meta.js';
import { NOTE_KEY } from './backup-note.js';
import { type Anew, beginAnew } from './begin-anew.js';

export interface NewEpochOptions {
  readonly uow: UnitOfWork;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Before the engine reads the epoch. */
export async function newEpoch({ uow, clock, logger }: NewEpochOptions): Promise<void> {
  const anew = await uow.write(async (tx, emit): Promise<Anew> => {
    const begun = await beginAnew(tx, { now: clock.now(), others: [] });
    await deleteMeta(tx, NOTE_KEY);
    emit({
      type: 'orchestrator.restored',
      actor: SYSTEM,
      target: SYSTEM,
      summary: `A new epoch was begun: the data directory was put back by hand`,
      metadata: { by: 'new_epoch', ...begun },
    });
    return begun;
  });
  logger.warn('a new epoch was begun', { ...anew });
}
