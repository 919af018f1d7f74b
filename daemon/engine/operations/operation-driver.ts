/** Moves applies from state to state: sends, cancels and ends them. */
import { isFault } from '../../../src/kernel/fault.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import { type AgentFeature, FEATURE_PURPOSES } from '../../../src/wire/features.js';
import type { Core } from '../../core/core.js';
import type { Party } from '../../core/domain-event.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import { type ApplyWindows, refuseOutsideWindow } from '../applies/apply-windows.js';
import type { AgentSessions } from '../runs/agent-sessions.js';
import type { ApplyLease } from '../runs/leases.js';
import type { EndedBy } from './apply-events.js';
import { type LiveOperation, type LiveOperations, needsUndoing } from './live-operations.js';
import type { OperationFeed } from './operation-feed.js';
import type { OperationRecords } from './operation-records.js';
import { isActive, type OperationEvent, transition } from './operation-state.js';

/** Returns why an apply was not sent to an agent that has been replaced by an older one. */
const tooOld = (feature: AgentFeature): string =>
  `the agent is too old to ${FEATURE_PURPOSES[feature]}; upgrade it, and apply again`;

interface OperationDriverOptions extends Pick<Core, 'logger'> {
  readonly link: AgentLink;
  readonly live: LiveOperations;
  readonly sessions: AgentSessions;
  readonly records: OperationRecords;
  readonly feed: OperationFeed;
  readonly windows: ApplyWindows;
  /** Called after an apply of a rollout has ended, or an interrupted one after all. */
  readonly onRolloutApply: (rolloutId: string, nodeId: NodeId) => void;
}

/** Async methods must be called in the lane of the agent. */
export class OperationDriver {
  private readonly options: OperationDriverOptions;
  private readonly leases = new Map<string, ApplyLease>();

  constructor(options: OperationDriverOptions) {
    this.options = options;
  }

  /** Takes over an active operation and owns the lease of its agent, which it releases at the end. */
  adopt(operation: LiveOperation, lease: ApplyLease): void {
    this.options.live.add(operation);
    this.leases.set(operation.id, lease);
  }

  /**
   * Sends an operation in state `dispatched`. If it cannot be sent now, the agent's next inventory reveals that it is missing.
   * Sends nothing on a new connection before its inventory, which would not name a run that arrived after the inventory was made.
   */
  send(operation: LiveOperation): void {
    const { link, sessions } = this.options;
    const messages = operation.messages();
    if (messages !== null && sessions.isReady(operation.nodeId) && this.missingFeature(operation) === null) {
      link.send(operation.nodeId, messages);
    }
  }

  /** Sends queued operations of the agent, if the agent is ready and owes no report of an older one. */
  async sendQueued(nodeId: NodeId): Promise<void> {
    const { live, sessions } = this.options;
    if (!sessions.isReady(nodeId) || live.late(nodeId) !== undefined) return;
    for (const operation of live.ofNode(nodeId)) {
      if (operation.state.state === 'queued') await this.sendOne(operation);
    }
  }

  /** Cancels an operation at the next resource boundary; one that was never sent ends at once. */
  async cancel(operation: LiveOperation, by: Party): Promise<void> {
    const { records, link } = this.options;
    if (operation.cancelledBy === null) await records.saveCancellation(operation, by);
    if (operation.state.state === 'queued') await this.apply(operation, { type: 'withdrawn' });
    else link.send(operation.nodeId, [{ type: 'run_cancel', run_id: operation.id }]);
  }

  /** Handles a lost connection. Drops interrupted operations, because the agent repeats their reports when it reconnects. */
  disconnected(nodeId: NodeId): void {
    const { live, sessions } = this.options;
    sessions.closed(nodeId);
    for (const operation of live.ofNode(nodeId)) if (!operation.isActive) live.remove(operation);
  }

  /** Ends all operations of an agent that was rejected or removed. */
  async revoked(nodeId: NodeId): Promise<void> {
    this.disconnected(nodeId);
    for (const operation of this.options.live.ofNode(nodeId)) await this.apply(operation, { type: 'revoked' });
  }

  /** Moves an operation to its next state and stores that. An end releases the agent's lease and notifies all subscribers. */
  async apply(operation: LiveOperation, event: OperationEvent, by: EndedBy = 'orchestrator'): Promise<void> {
    const { records, live, feed, logger } = this.options;
    const next = transition(operation.state, event);
    if (next === operation.state) return;
    if (isActive(next)) {
      await records.saveState(operation, next);
      return;
    }
    await records.saveEnd(operation, next, by);
    live.remove(operation);
    this.leases.get(operation.id)?.release();
    this.leases.delete(operation.id);
    feed.publish(operation.id, 'changed');
    const { rollout_id } = operation.facts;
    if (rollout_id !== null) this.options.onRolloutApply(rollout_id, operation.nodeId);
    logger.info('an apply ended', { operation_id: operation.id, node_id: operation.nodeId, state: next.state });
  }

  private async sendOne(operation: LiveOperation): Promise<void> {
    if (operation.cancelledBy !== null) {
      await this.apply(operation, { type: 'withdrawn' });
    } else if (operation.messages() === null) {
      const reason = 'it holds secrets, which the orchestrator does not keep over a restart';
      await this.apply(operation, { type: 'undeliverable', reason });
    } else {
      const missing = this.missingFeature(operation);
      const reason = missing === null ? await this.refusal(operation) : tooOld(missing);
      if (reason !== null) {
        await this.apply(operation, { type: 'undeliverable', reason });
        return;
      }
      await this.apply(operation, { type: 'sent' });
      this.send(operation);
    }
  }

  /**
   * Returns a feature without which the agent would carry the run out only in part, and which it lacks: it may have been
   * replaced by an older one. Null for none.
   */
  private missingFeature({ hasChecks, takesFiles, purges, nodeId }: LiveOperation): AgentFeature | null {
    const { sessions } = this.options;
    if (hasChecks && sessions.can(nodeId, 'verify') !== true) return 'verify';
    if (purges && sessions.can(nodeId, 'purge') !== true) return 'purge';
    return takesFiles && sessions.can(nodeId, 'files') !== true ? 'files' : null;
  }

  /** Returns the reason why a stored operation may no longer be sent, or null. */
  private async refusal(operation: LiveOperation): Promise<string | null> {
    const { nodeId, facts } = operation;
    const { assignments, outside_window } = facts;
    if (needsUndoing(facts) && this.options.sessions.can(nodeId, 'confirm') !== true) {
      return 'the agent has come back as a release that cannot undo an apply';
    }
    try {
      if (outside_window === 0) refuseOutsideWindow(this.options.windows, assignments);
      await this.options.records.noteDispatch(operation);
      return null;
    } catch (error) {
      if (isFault(error, 'secret_unavailable', 'outside_window')) return error.message;
      throw error;
    }
  }
}
