/** Resumes stored applies that are in progress when the orchestrator starts, and enforces deadlines of applies. */
import { Fault, isFault } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import type { Core } from '../../core/core.js';
import { findAgent } from '../../fleet/agent-store.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import type { EngineLimits } from '../engine-limits.js';
import type { Epoch } from '../epoch.js';
import { sourcesOfOperation } from '../modules/source-store.js';
import type { Leases } from '../runs/leases.js';
import { sendable } from '../runs/run-content.js';
import type { RunContents } from '../runs/run-contents.js';
import { LiveOperation, type LiveOperations, outcomeOf } from './live-operations.js';
import type { OperationDriver } from './operation-driver.js';
import type { OperationFeed } from './operation-feed.js';
import type { OperationRecords } from './operation-records.js';
import { ACTIVE_STATES, type OperationState, parseState, transition } from './operation-state.js';
import {
  findOperation,
  listOperationResults,
  listOperationsInStates,
  type OperationRow,
  resultsOf,
} from './operation-store.js';

interface RecoveryOptions extends Pick<Core, 'clock' | 'db'> {
  readonly contents: RunContents;
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
    const { db, epoch, leases, driver } = this.options;
    await epoch.load(db);
    for (const row of await listOperationsInStates(db, ACTIVE_STATES)) {
      const operation = await restore(this.options, row);
      const type = row.epoch < epoch.current ? 'put_back' : 'restarted';
      const next = transition(operation.state, { type });
      if (next !== operation.state) await this.enter(operation, next);
      driver.adopt(operation, leases.restore(operation.nodeId, operation.id));
    }
  }

  /** Stores the state. On a full disk it is stored later, because the next start would come to the same state again. */
  private async enter(operation: LiveOperation, state: OperationState): Promise<void> {
    try {
      await this.options.records.saveState(operation, state);
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      operation.state = state;
      operation.unsaved = true;
    }
  }
}

/** Loads an operation whose agent still has something to report; returns null if it does not exist. */
export async function loadOperation(tools: Tools, operationId: string): Promise<LiveOperation | null> {
  const row = await findOperation(tools.db, operationId);
  return row === null ? null : restore(tools, row);
}

type Tools = Pick<RecoveryOptions, 'clock' | 'db' | 'contents'>;

/** Returns the operation of a row, with its stored results. */
async function restore({ db, clock, contents }: Tools, row: OperationRow): Promise<LiveOperation> {
  const { operation_id: id, node_id: nodeId } = row;
  if (!isNodeId(nodeId)) throw new Fault('internal', `operation ${id} is stored with the node ID "${nodeId}"`);
  if (row.content_id === null) throw new Fault('internal', `operation ${id} is stored without its content`);
  const content = await contents.get(db, row.content_id);
  const results = await listOperationResults(db, id);
  const agent = await findAgent(db, nodeId);
  return new LiveOperation({
    facts: {
      ...row,
      node_id: nodeId,
      sources: await sourcesOfOperation(db, id),
      endsTrial: agent !== null && agent.trial_operation_id !== null,
    },
    state: parseState(row),
    cancelledBy: row.cancelled_by,
    content,
    contentId: row.content_id,
    dispatch: sendable(content),
    size: null,
    isConfirmation: false,
    outcomes: results.flatMap((stored) => resultsOf(stored, content.resources).map(outcomeOf)),
    now: clock.monotonic(),
  });
}

interface OperationDeadlinesOptions extends Pick<Core, 'clock'> {
  readonly limits: EngineLimits;
  readonly link: AgentLink;
  readonly live: LiveOperations;
  readonly records: OperationRecords;
  readonly feed: OperationFeed;
  readonly driver: OperationDriver;
}

/** Ends applies whose deadline has passed, and notifies followers of silent agents. */
export class OperationDeadlines {
  private readonly options: OperationDeadlinesOptions;

  constructor(options: OperationDeadlinesOptions) {
    this.options = options;
  }

  /** Checks the deadlines of one operation. Must be called in the lane of the agent. */
  async check(operation: LiveOperation): Promise<void> {
    const { clock, limits, link, live, records, feed, driver } = this.options;
    const now = clock.monotonic();
    const silence = now - operation.lastMessageAt;
    if (!operation.isActive) {
      if (silence >= limits.workSilence) live.remove(operation);
      return;
    }
    if (operation.unsaved || operation.unstored.entries.length > 0) {
      await records.saveResults(operation);
      feed.publish(operation.id, 'changed');
    }
    if (now - operation.since >= this.timeoutOf(operation)) {
      // If it did arrive, it must not run unsupervised.
      if (operation.state.state !== 'queued')
        link.send(operation.nodeId, [{ type: 'run_cancel', run_id: operation.id }]);
      await driver.apply(operation, { type: 'expired' });
      return;
    }
    const works = operation.state.state === 'running' && link.isConnected(operation.nodeId);
    const limit = (works ? limits.workSilence : limits.silence) + (operation.facts.confirm_secs ?? 0) * 1000;
    if (silence >= limit) feed.publish(operation.id, 'silent');
  }

  /** Returns the timeout of the current state, in milliseconds since this process has known the operation. */
  private timeoutOf({ state }: LiveOperation): number {
    const { limits } = this.options;
    if (state.state === 'queued' || state.state === 'dispatched') return limits.dispatch;
    return state.state === 'recovering' ? limits.recovery : Number.POSITIVE_INFINITY;
  }
}
