/** Processes agents' reports about applies: results in sequence, ends, and the contents of their journals. */
import { Fault } from '../../../src/kernel/fault.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import { verifyError } from '../../../src/resources/checks/check.js';
import { withoutFirst } from '../../../src/resources/run-results.js';
import type { AgentMessageOf, OrchestratorMessage, RunEnd, RunEntry } from '../../../src/wire/messages.js';
import type { Core } from '../../core/core.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import type { EngineLimits } from '../engine-limits.js';
import type { AgentSessions, Session } from '../runs/agent-sessions.js';
import type { RunMessage } from '../runs/observations.js';
import type { RunContents } from '../runs/run-contents.js';
import type { LiveOperation, LiveOperations } from './live-operations.js';
import type { OperationDriver } from './operation-driver.js';
import type { OperationError } from './operation-error.js';
import type { OperationFeed } from './operation-feed.js';
import type { OperationRecords } from './operation-records.js';
import { transition } from './operation-state.js';
import { findOperation } from './operation-store.js';
import { loadOperation } from './recovery.js';

interface OperationReportsOptions extends Pick<Core, 'clock' | 'db'> {
  readonly limits: EngineLimits;
  readonly link: AgentLink;
  readonly live: LiveOperations;
  readonly sessions: AgentSessions;
  readonly records: OperationRecords;
  readonly feed: OperationFeed;
  readonly driver: OperationDriver;
  readonly contents: RunContents;
}

/** All methods must be called in the lane of the agent. */
export class OperationReports {
  private readonly options: OperationReportsOptions;

  constructor(options: OperationReportsOptions) {
    this.options = options;
  }

  /** Handles a report about a run. Throws `protocol_violation` for an impossible report. */
  async receive(nodeId: NodeId, message: RunMessage): Promise<void> {
    const operation = await this.find(nodeId, message.run_id);
    if (operation === null) {
      // This asks only whether this agent still reaches its orchestrator.
      if (message.type === 'run_confirm') this.reply(nodeId, [{ type: 'run_confirmed', run_id: message.run_id }]);
      // The run has ended or is unknown: the agent can drop it from its journal.
      if (message.type === 'run_finished') this.reply(nodeId, [{ type: 'run_ack', run_id: message.run_id }]);
      return;
    }
    this.accept(operation);
    if (message.type === 'run_awaiting') this.takeWait(operation, message);
    if (message.type === 'run_confirm') await this.confirm(operation);
    if (message.type === 'run_results') await this.takeResults(operation, message);
    if (message.type === 'run_finished') await this.takeEnd(operation, message);
  }

  /** Reconciles the agent's journal at the start of a connection; `session` is the connection of the inventory. */
  async reconcile(nodeId: NodeId, { runs }: AgentMessageOf<'inventory'>, session: Session): Promise<void> {
    const { live, sessions, driver } = this.options;
    if (!sessions.isCurrent(nodeId, session)) return;
    const known = new Set<LiveOperation>();
    const replies: OrchestratorMessage[] = [];
    for (const { run_id } of runs) {
      if (sessions.hasForgotten(nodeId, run_id)) continue;
      const operation = await this.find(nodeId, run_id);
      if (operation === null) {
        replies.push({ type: 'run_ack', run_id });
        continue;
      }
      known.add(operation);
      this.accept(operation);
      if (operation.cancelledBy !== null) replies.push({ type: 'run_cancel', run_id });
      operation.resumedFrom = operation.outcomes.length;
      replies.push({ type: 'run_resume', run_id, from: operation.resumedFrom });
    }
    this.reply(nodeId, replies);
    for (const operation of live.ofNode(nodeId)) if (!known.has(operation)) await this.absent(operation);
    sessions.inventoried(nodeId, session);
    await driver.sendQueued(nodeId);
  }

  /**
   * Returns the operation of a run, or null when no report of it is expected. Throws `protocol_violation` for another agent's
   * run.
   */
  private async find(nodeId: NodeId, runId: string): Promise<LiveOperation | null> {
    const { db, live } = this.options;
    const known = live.get(runId);
    if (known !== undefined) {
      if (known.nodeId !== nodeId) throw foreign(runId);
      return known;
    }
    const head = await findOperation(db, runId);
    if (head === null) return null;
    if (head.node_id !== nodeId) throw foreign(runId);
    if (head.state !== 'interrupted') return null;
    const late = await loadOperation(this.options, runId);
    if (late !== null) live.add(late);
    return late;
  }

  private accept(operation: LiveOperation): void {
    operation.lastMessageAt = this.options.clock.monotonic();
    const next = transition(operation.state, { type: 'accepted' });
    if (next === operation.state) return;
    // Saved with the first results: if this process dies first, the agent's journal reports it again.
    operation.state = next;
    operation.unsaved = true;
  }

  private async takeResults(operation: LiveOperation, message: AgentMessageOf<'run_results'>): Promise<void> {
    const { records, feed } = this.options;
    const arrived = checkPositions(operation.outcomes.length, message.from, message.items);
    if (arrived.kind === 'gap') this.resume(operation);
    if (arrived.kind !== 'new') return;
    operation.add(operation.items.check(arrived.items));
    // The end follows at once and is stored together with the last results.
    if (operation.isComplete) return;
    await records.saveResults(operation);
    feed.publish(operation.id, 'changed');
  }

  private takeWait(operation: LiveOperation, { left_secs }: AgentMessageOf<'run_awaiting'>): void {
    operation.awaitedUntil = this.options.clock.monotonic() + left_secs * 1000;
    this.options.feed.publish(operation.id, 'changed');
  }

  /** Confirms an apply durably, unless it was cancelled: then the agent undoes it. */
  private async confirm(operation: LiveOperation): Promise<void> {
    const { id, nodeId } = operation;
    if (operation.cancelledBy !== null) {
      this.reply(nodeId, [{ type: 'run_cancel', run_id: id }]);
      return;
    }
    await this.options.records.saveConfirmation(operation);
    this.reply(nodeId, [{ type: 'run_confirmed', run_id: id }]);
  }

  private async takeEnd(operation: LiveOperation, message: AgentMessageOf<'run_finished'>): Promise<void> {
    const { driver, link, sessions } = this.options;
    const stored = operation.outcomes.length;
    // An agent with a damaged journal may send fewer results than are stored. The stored ones are its own, so they stay.
    if (message.results > stored) {
      operation.resumedFrom = null;
      this.resume(operation);
      return;
    }
    operation.takeChecks(message.checks ?? [], message.end);
    operation.restored = message.restored ?? null;
    operation.isKept = message.end === 'succeeded';
    await driver.apply(operation, { type: 'finished', ...endOfReport(message, operation) }, 'agent');
    const isTold = link.send(operation.nodeId, [{ type: 'run_ack', run_id: operation.id }]);
    if (isTold) sessions.forgets(operation.nodeId, operation.id);
    await driver.sendQueued(operation.nodeId);
  }

  /** Requests missing results, once for each position. */
  private resume(operation: LiveOperation): void {
    const from = operation.outcomes.length;
    if (operation.resumedFrom === from) return;
    operation.resumedFrom = from;
    this.reply(operation.nodeId, [{ type: 'run_resume', run_id: operation.id, from }]);
  }

  /** Handles an operation that the reconnected agent never received or has lost. */
  private async absent(operation: LiveOperation): Promise<void> {
    const { clock, limits, live, driver } = this.options;
    const overdue = clock.monotonic() - operation.since >= limits.dispatch;
    if (operation.isActive) await driver.apply(operation, { type: 'absent', overdue });
    else live.remove(operation);
  }

  private reply(nodeId: NodeId, messages: readonly OrchestratorMessage[]): void {
    if (messages.length > 0) this.options.link.send(nodeId, messages);
  }
}

const foreign = (runId: string): Fault =>
  new Fault('protocol_violation', `the agent speaks of run ${runId}, which is another agent's`);

/** The end of a run, derived from the agent's report and the results it sent before. */
interface ReportedEnd {
  readonly end: RunEnd;
  readonly error: OperationError | null;
}

/** Turns a reported success into a failure when results are missing or failed, or when a removal could not be sent. */
function endOfReport({ end, error }: AgentMessageOf<'run_finished'>, operation: LiveOperation): ReportedEnd {
  if (end === 'refused') {
    return { end, error: error ?? { code: 'apply_failed', message: 'the agent refused the apply without a reason' } };
  }
  const results = operation.checks ?? [];
  if (end !== 'succeeded')
    return { end, error: error?.code === 'verify_failed' ? (verifyError(results) ?? error) : error };
  const missing = operation.items.count - operation.outcomes.length;
  if (missing > 0) {
    const message = `the agent reported success, but ${missing} of ${operation.items.count} results are missing`;
    return { end: 'failed', error: { code: 'protocol_violation', message } };
  }
  const isUnsent = operation.content.failures.length > 0;
  const failed = operation.outcomes.some(({ status }) => status !== 'unchanged' && status !== 'changed');
  if (failed || isUnsent) return { end: 'failed', error: null };
  const unknown = results.filter(({ status }) => status === 'not_run').length;
  const unhealthy = verifyError(results);
  if (unhealthy !== null) return { end: 'failed', error: unhealthy };
  if (unknown === 0) return { end, error: null };
  const message = `the agent reported success, but ${unknown} of ${results.length} health checks have no result`;
  return { end: 'failed', error: { code: 'protocol_violation', message } };
}

/** Comparison of reported positions with stored ones. */
type ReportCheck =
  | { readonly kind: 'new'; readonly items: readonly RunEntry[] }
  | { readonly kind: 'duplicate' }
  /** Results between the stored ones and these are missing. */
  | { readonly kind: 'gap' };

/** Compares results at `from`, `from + 1`, … with the next missing position `expected`. */
function checkPositions(expected: number, from: number, items: readonly RunEntry[]): ReportCheck {
  if (from > expected) return { kind: 'gap' };
  const fresh = withoutFirst(items, expected - from);
  return fresh.length === 0 ? { kind: 'duplicate' } : { kind: 'new', items: fresh };
}
