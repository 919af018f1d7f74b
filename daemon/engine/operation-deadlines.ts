/** Ends applies that have waited for too long, and tells those who wait for an agent that says nothing. */
import type { Core } from '../core/core.js';
import type { AgentLink } from '../fleet/connection-registry.js';
import type { EngineLimits } from './engine-limits.js';
import type { LiveOperation } from './live-operation.js';
import type { LiveOperations } from './live-operations.js';
import type { OperationDriver } from './operation-driver.js';
import type { OperationFeed } from './operation-feed.js';
import type { OperationRecords } from './operation-records.js';

export interface OperationDeadlinesOptions extends Pick<Core, 'clock'> {
  readonly limits: EngineLimits;
  readonly link: AgentLink;
  readonly live: LiveOperations;
  readonly records: OperationRecords;
  readonly feed: OperationFeed;
  readonly driver: OperationDriver;
}

export class OperationDeadlines {
  private readonly options: OperationDeadlinesOptions;

  constructor(options: OperationDeadlinesOptions) {
    this.options = options;
  }

  /** To be called in the lane of the agent. */
  async check(operation: LiveOperation): Promise<void> {
    const { clock, limits, link, live, records, feed, driver } = this.options;
    const now = clock.monotonic();
    const silence = now - operation.heard;
    if (!operation.isActive) {
      if (silence >= limits.workSilence) live.remove(operation);
      return;
    }
    if (operation.unsaved) await records.saveState(operation);
    if (now - operation.since >= this.patience(operation)) {
      // Should it have arrived after all, it is not to run unwatched.
      if (operation.state.state !== 'queued')
        link.send(operation.nodeId, [{ type: 'run_cancel', run_id: operation.id }]);
      await driver.apply(operation, { type: 'expired' });
      return;
    }
    const works = operation.state.state === 'running' && link.isConnected(operation.nodeId);
    if (silence >= (works ? limits.workSilence : limits.silence)) feed.tell(operation.id, 'silent');
  }

  /** How long an operation may stay in its state, in milliseconds since this process has known it. */
  private patience({ state }: LiveOperation): number {
    const { limits } = this.options;
    if (state.state === 'queued' || state.state === 'dispatched') return limits.dispatch;
    return state.state === 'recovering' ? limits.recovery : Number.POSITIVE_INFINITY;
  }
}
