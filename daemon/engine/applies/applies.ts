/** Starts and cancels applies. */

import { setImmediate } from 'node:timers/promises';
import type { RunResult } from '../../../src/contract/runs.js';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import { isPurge } from '../../../src/resources/purge.js';
import type { Core } from '../../core/core.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { Queryable } from '../../database/schema.js';
import type { Lanes } from '../lanes.js';
import { type SentModule, sourcesOf } from '../modules/current-modules.js';
import type { OperationSource, Source } from '../modules/source-store.js';
import { type LiveOperation, type LiveOperations, needsUndoing, type Undoing } from '../operations/live-operations.js';
import type { OperationDriver } from '../operations/operation-driver.js';
import type { NewOperation, OperationRecords } from '../operations/operation-records.js';
import { parseState } from '../operations/operation-state.js';
import { findOperation, operationNotFound } from '../operations/operation-store.js';
import {
  type AgentGate,
  type AgentWithInputs,
  agentLabel,
  agentNotFound,
  type KnownAgent,
} from '../runs/agent-gate.js';
import type { AgentSessions } from '../runs/agent-sessions.js';
import type { ApplyLease, Leases } from '../runs/leases.js';
import { runContent } from '../runs/run-content.js';
import { endedTrial, triedSources } from '../state/trials.js';
import { refuseUnconcerned } from '../values/one-off-request.js';
import type { GivenOneOff } from '../values/one-off-store.js';
import type { ApplyLimits } from './apply-limits.js';
import { type ApplyWindows, refuseOutsideWindow } from './apply-windows.js';
import type { DesiredSet, DesiredSets } from './desired-set.js';
import type { ApplyTarget } from './earlier-content.js';
import { splitPlanHash } from './plans.js';
import type { RemovalGuard } from './removal-guard.js';

interface AppliesOptions extends Pick<Core, 'db' | 'logger' | 'newId'> {
  readonly guard: RemovalGuard;
  readonly gate: AgentGate;
  readonly sessions: AgentSessions;
  readonly leases: Leases;
  readonly lanes: Lanes;
  readonly live: LiveOperations;
  readonly desiredSets: DesiredSets;
  readonly records: OperationRecords;
  readonly driver: OperationDriver;
  readonly windows: ApplyWindows;
}

interface ApplyRequest {
  readonly nodeId: string;
  /** Modules beside those of assignments; empty with `to`. */
  readonly modules: readonly string[];
  /** Modules whose texts came with the request: they count as named, and replace stored ones on this agent. */
  readonly sent?: readonly SentModule[];
  /** Values that the request brings with it; null for none, and with `to`. */
  readonly oneOff?: GivenOneOff | null;
  /** The earlier content that the apply brings back in place of modules; null for modules. */
  readonly to?: ApplyTarget | null;
  readonly limits: ApplyLimits;
  /** `plan_hash` of the plan that the apply must still match; null without a plan. */
  readonly expect: string | null;
  /** The rollout of the apply; its assignment, if it has one, must still match the agent. */
  readonly rollout?: RolloutOfApply;
  /** True to keep what the apply replaces on the agent until its next apply. */
  readonly keepsSnapshot?: boolean;
  /**
   * Operation whose kept snapshot the agent restores first. Without such a snapshot the apply goes on and its result says so. A
   * confirmation does not apply then, because undoing a return brings back what was left.
   */
  readonly putsBack?: string | null;
  /**
   * An apply that the orchestrator starts by itself: it cancels nothing, and applies only this content, to an agent whose believed
   * state is still that of this operation.
   */
  readonly automatic?: { readonly wantedSha256: string; readonly stateOperationId: string | null };
}

interface RolloutOfApply extends NonNullable<NewOperation['rollout']> {
  readonly assignment: string | null;
}

interface StartedApply {
  readonly operation: LiveOperation;
  readonly warnings: RunResult['warnings'];
  /** Remarks about an earlier desired state. */
  readonly notes: readonly string[];
  /** Modules whose trial on the agent the apply ends. */
  readonly endsTrial: readonly string[];
}

export class Applies {
  private readonly options: AppliesOptions;

  constructor(options: AppliesOptions) {
    this.options = options;
  }

  /**
   * Stores an apply and sends it; cancels a running plan or drift check of the agent. Throws the faults of `AgentGate.pass` and
   * of module resolution or of `DesiredSets.earlier`, `agent_too_old`, `operation_in_progress`, `assignment_changed`,
   * `outside_window`, `removal_guard`, `plan_stale`, and `invalid_values` for one-off values that do not concern the agent.
   */
  async start(request: ApplyRequest, context: RequestContext): Promise<StartedApply> {
    const { db, newId, gate, guard, windows, sessions, lanes, desiredSets } = this.options;
    const { to = null, modules, sent = [], oneOff = null, limits, rollout = null } = request;
    const id = newId();
    const lease = await this.takeLease(request, id);
    try {
      // Read under the lease, so that no other apply changes the believed state afterwards.
      const agent = await gate.pass(request.nodeId);
      refuseOutdated(request, agent);
      const desired =
        to === null
          ? await desiredSets.of(db, agent.inputs, { named: modules, sent, oneOff, asksPackages: true })
          : await desiredSets.earlier(db, agent, to);
      const sources = to === null ? (await sourcesOf(db, sent)).map(asSent) : await sourcesOfTarget(db, to);
      refuseStranger(agent, desired, rollout?.assignment ?? null);
      if (rollout === null) refuseUnconcerned(agent, desired, oneOff);
      if (request.automatic !== undefined && request.automatic.wantedSha256 !== desired.wantedSha256)
        throw changedPlan();
      if (!limits.outsideWindow) refuseOutsideWindow(windows, desired.matching);
      const undoing = undoingOf(request, desired);
      if (needsUndoing(undoing)) sessions.require(agent, 'confirm');
      await guard.check(agent, desired, limits.allowRemovals, request.automatic === undefined);
      const dispatch = runContent(desired);
      if (desired.verify.length > 0) sessions.require(agent, 'verify');
      if (desired.encoded.files.length > 0) sessions.require(agent, 'files');
      const purges = desired.resources.some(isPurge);
      if (purges) sessions.require(agent, 'purge');
      const mayPurge = purges ? guard.mayPurge(limits.allowRemovals) : null;
      const expect = request.expect === null ? null : expectedObservation(request.expect, desired.encoded.sha256);
      const tried = await triedSources(db, agent.row.trial_operation_id);
      const { outsideWindow } = limits;
      const order = {
        id,
        agent,
        desired,
        dispatch,
        expect,
        rollout,
        outsideWindow,
        undoing,
        sources,
        texts: sent,
        oneOff,
        mayPurge,
      };
      const operation = await lanes.enter(agent.nodeId, () => this.begin(order, context, lease));
      const { warnings, notes } = desired;
      return { operation, warnings, notes, endsTrial: endedTrial(tried, sources) };
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** Takes the agent's lease. A fault of `AgentGate.pass` comes before that of a busy agent. */
  private async takeLease({ nodeId, automatic }: ApplyRequest, id: string): Promise<ApplyLease> {
    const { gate, leases } = this.options;
    if (!isNodeId(nodeId)) throw agentNotFound(nodeId);
    try {
      return leases.takeForApply(nodeId, id, { yields: automatic !== undefined });
    } catch (error) {
      await gate.pass(nodeId);
      throw error;
    }
  }

  /** Cancels an apply and returns it. Throws `operation_not_found` or `operation_finished`. */
  async cancel(operationId: string, context: RequestContext): Promise<LiveOperation> {
    const { db, lanes, live, driver } = this.options;
    const head = await findOperation(db, operationId);
    if (head === null) throw await operationNotFound(db, operationId);
    return lanes.enter(head.node_id, async () => {
      const operation = live.get(operationId);
      if (!operation?.isActive) throw await this.finished(operationId);
      await driver.cancel(operation, context.actor);
      return operation;
    });
  }

  private async begin(
    order: Omit<NewOperation, 'isSentAtOnce'>,
    context: RequestContext,
    lease: ApplyLease,
  ): Promise<LiveOperation> {
    const { sessions, live, records, driver, logger } = this.options;
    const { nodeId } = order.agent;
    const isSentAtOnce = sessions.isReady(nodeId) && live.late(nodeId) === undefined;
    const operation = await records.create({ ...order, isSentAtOnce }, context);
    // The commit of a large run blocks for a while, and so does its dispatch: yield in between.
    await setImmediate();
    driver.adopt(operation, lease);
    lease.claim();
    if (isSentAtOnce) {
      driver.send(operation);
      return operation;
    }
    try {
      await driver.sendQueued(nodeId);
    } catch (error) {
      // The apply is stored: it is sent when the agent reconnects, or ends as `not_delivered`.
      logger.error('an apply could not be sent yet', {
        operation_id: order.id,
        node_id: nodeId,
        reason: messageOf(error),
      });
    }
    return operation;
  }

  private async finished(operationId: string): Promise<Fault> {
    const head = await findOperation(this.options.db, operationId);
    const state = head === null ? 'over' : parseState(head).state;
    return new Fault('operation_finished', `operation ${operationId} is ${state} already`, {
      data: { operation_id: operationId, status: state },
    });
  }
}

/** Returns the modules that an earlier operation had on trial: a return to it tries them again. */
async function sourcesOfTarget(db: Queryable, to: ApplyTarget): Promise<readonly OperationSource[]> {
  const tried = typeof to === 'string' ? await triedSources(db, to) : [];
  return tried.map(asSent);
}

const asSent = ({ name, sha256, replaces }: Source): OperationSource => ({
  name,
  sha256,
  replaces,
  status: 'sent',
  others: 0,
});

/** Throws `plan_stale` for an automatic apply if an operator has applied since it was decided. */
function refuseOutdated({ automatic }: ApplyRequest, { inputs }: AgentWithInputs): void {
  if (automatic === undefined) return;
  const { isOnTrial, row } = inputs;
  if (isOnTrial || row.state_operation_id !== automatic.stateOperationId) throw changedPlan();
}

function undoingOf({ limits, keepsSnapshot = false, putsBack = null }: ApplyRequest, { modules }: DesiredSet): Undoing {
  const asked = [limits.confirmSecs, ...modules.map(({ compiled }) => compiled.confirmSecs)];
  const known = asked.filter((secs) => secs !== null);
  return {
    confirm_secs: known.length === 0 || putsBack !== null ? null : Math.min(...known),
    keeps_snapshot: Number(keepsSnapshot),
    puts_back: putsBack,
  };
}

/** Throws `plan_stale` when an agent has refused an apply because the machine differs from the plan; it changed nothing then. */
export function refuseStale({ error, operation_id }: Pick<RunResult, 'error' | 'operation_id'>): void {
  if (error?.code !== 'plan_stale') return;
  throw new Fault('plan_stale', error.message, { hint: 'plan again', data: { changed: 'machine', operation_id } });
}

/**
 * Returns the observation hash of a plan, for the agent to compare. Throws `plan_stale` when the desired set has changed since.
 */
function expectedObservation(hash: string, current: string): string {
  const { desired, observed } = splitPlanHash(hash);
  if (desired === current) return observed;
  throw changedPlan();
}

const changedPlan = (): Fault =>
  new Fault('plan_stale', 'what is to be applied is no longer what the plan showed', {
    hint: 'a module, a value, a tag, a secret or the managed state has changed since: plan again',
    data: { changed: 'desired' },
  });

/**
 * Throws `assignment_changed` when the rollout's assignment no longer matches: the apply would remove the rollout's own modules.
 */
function refuseStranger(agent: KnownAgent, { assignments, restores }: DesiredSet, assignment: string | null): void {
  if (assignment === null || restores !== null || assignments.includes(assignment)) return;
  throw new Fault('assignment_changed', `assignment ${assignment} no longer matches ${agentLabel(agent)}`, {
    hint: 'the assignment or a tag has changed since the rollout began',
    data: { assignment },
  });
}
