/** Maintenance windows over a store in a file, with a clock that the test moves. */

import { join } from 'node:path';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import type { OpenDatabase } from '../../daemon/database/database.js';
import { MaintenanceWatch } from '../../daemon/maintenance/maintenance-watch.js';
import { MaintenanceWindows } from '../../daemon/maintenance/maintenance-windows.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { ManualClock, newIds, openStore, temporaryDirectory } from './database.js';

export const ADA: RequestContext = {
  rights: ALL_RIGHTS,
  actor: { id: 'ada'.padEnd(32, '0'), name: 'ada', type: 'operator' },
  requestId: 'request-1',
  address: '192.0.2.7',
};

export const MINUTE = 60;
export const HOUR = 60 * MINUTE;

export interface MaintenanceBench {
  readonly db: OpenDatabase['db'];
  readonly clock: ManualClock;
  readonly windows: MaintenanceWindows;
  readonly events: RecordedEvent[];
  /** Ends the watch and begins another one on the same store, as a restart does. */
  restart(): Promise<void>;
  /** Ends the watch without another one. */
  stop(): Promise<void>;
  tick(): Promise<void>;
  isMaintenance(): boolean;
  /** The watch of now; a restart makes another. */
  watch(): MaintenanceWatch;
  /** Unix seconds. */
  now(): number;
  /** `TYPE REASON` of the events since the last call. */
  told(): readonly string[];
}

export async function openBench(): Promise<MaintenanceBench> {
  const clock = new ManualClock();
  const events: RecordedEvent[] = [];
  const newId = newIds(clock);
  const { db } = await openStore({ file: join(temporaryDirectory(), 'orch.db') });
  const uow = new TransactionalWriter({ db, clock, newId, publish: (event) => events.push(event) });
  const makeWatch = () => new MaintenanceWatch({ db, uow, clock, logger: silentLogger });
  let watch = makeWatch();
  let told = 0;
  const stop = () => watch.stop();
  const restart = async () => {
    await stop();
    watch = makeWatch();
    await watch.start();
    // From here on the test says when it looks.
    await watch.stop();
  };
  await restart();
  return {
    db,
    clock,
    events,
    windows: new MaintenanceWindows({ db, uow, clock, newId, onChanged: (rows) => watch.take(rows) }),
    restart,
    stop,
    tick: () => watch.tick(),
    isMaintenance: () => watch.isMaintenance(),
    watch: () => watch,
    now: () => Math.floor(clock.now() / 1000),
    told: () => {
      const fresh = events.slice(told);
      told = events.length;
      return fresh.map(({ type, target }) => `${type.replace('maintenance.', '')} ${target.name}`);
    },
  };
}
