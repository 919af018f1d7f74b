/** Takes up the applies that the store holds as under way when the orchestrator starts. */
import type { Core } from '../core/core.js';
import type { Epoch } from './epoch.js';
import type { Leases } from './leases.js';
import type { OperationDriver } from './operation-driver.js';
import { restore } from './operation-loader.js';
import type { OperationRecords } from './operation-records.js';
import { ACTIVE_STATES, transition } from './operation-state.js';
import { listOperationsInStates } from './operation-store.js';

export interface RecoveryOptions extends Pick<Core, 'clock' | 'db'> {
  readonly epoch: Epoch;
  readonly leases: Leases;
  readonly records: OperationRecords;
  readonly driver: OperationDriver;
}

export class Recovery {
  private readonly options: RecoveryOptions;

  constructor(options: RecoveryOptions) {
    this.options = options;
  }

  async run(): Promise<void> {
    const { db, clock, epoch, leases, records, driver } = this.options;
    await epoch.load(db);
    for (const row of await listOperationsInStates(db, ACTIVE_STATES)) {
      const operation = await restore(db, row, clock);
      const type = row.epoch < epoch.current ? 'put_back' : 'restarted';
      const next = transition(operation.state, { type });
      if (next !== operation.state) await records.saveState(operation, next);
      driver.adopt(operation, leases.restore(operation.nodeId, operation.id));
    }
  }
}
