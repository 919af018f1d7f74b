/**
 * Starts the applies that the modes of assignments ask for: agents that connect get what they are missing, and with `enforce` changed
 * modules are applied and drift is repaired (`docs/applying.md`). Operators go first: an automatic apply waits for a busy agent.
 */

import { type FaultCode, isFault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../../src/kernel/ids.js';
import type { AgentLabels } from '../../../src/language/clause.js';
import type { Settings } from '../../../src/settings/serve.js';
import type { RecordedEvent } from '../../core/audit-log.js';
import type { Core } from '../../core/core.js';
import { SYSTEM } from '../../core/domain-event.js';
import { ALL_RIGHTS } from '../../core/rights.js';
import { agentLabel, agentParty } from '../../fleet/agent-store.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import type { Applies } from '../applies/applies.js';
import { NO_LIMITS } from '../applies/apply-limits.js';
import type { ApplyWindows } from '../applies/apply-windows.js';
import {
  type CurrentAssignment,
  type CurrentAssignments,
  setAssignmentsRevision,
  stopAssignment,
} from '../assignments/assignment-store.js';
import { assignmentParty } from '../assignments/assignments.js';
import type { OperationReader } from '../operations/operation-reader.js';
import type { AgentSessions } from '../runs/agent-sessions.js';
import type { Leases } from '../runs/leases.js';
import {
  type ActiveApply,
  activeAutomatic,
  automaticParty,
  failedAgents,
  laterOf,
  pastFailures,
  pastRepairs,
  withdrawal,
} from './automatic-operations.js';
import { type Decision, decide } from './decide.js';
import type { Holds } from './rollout-holds.js';
import type { EvaluatedAgent, Standings, Stop } from './standings.js';

/** Limits of automatic applies. */
export interface AutomationLimits {
  /** Maximum number in progress. */
  readonly maxConcurrent: number;
  /** Number of agents on which changed content of an assignment may fail within a day, before its automatic applies stop. */
  readonly maxFailedAgents: number;
  /** Number of repairs of one resource within a day after which those of its agent stop. */
  readonly maxRepairs: number;
}

interface AutomaticAppliesOptions extends Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'> {
  readonly link: AgentLink;
  readonly sessions: AgentSessions;
  readonly leases: Leases;
  readonly standings: Standings;
  readonly assignments: CurrentAssignments;
  readonly applies: Applies;
  readonly operations: OperationReader;
  /** Called at each use. */
  readonly limits: () => AutomationLimits;
  readonly holds: () => Promise<Holds>;
  readonly windows: ApplyWindows;
}

interface Waiting {
  readonly decision: Decision;
  readonly labels: AgentLabels;
  /** Names of the assignments that match. */
  readonly assignments: readonly string[];
  /** Changes when an earlier wait no longer counts: with the content, the cause and a resumption. */
  readonly about: string;
  /** Monotonic milliseconds. */
  readonly notBefore: number;
  /** End of the apply after which `notBefore` waits, in Unix milliseconds; null if it waits for something else. */
  readonly waitsAfter: number | null;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Wait after a first failure, which doubles with each further one, and its maximum. */
const FIRST_WAIT = MINUTE;
const LONGEST_WAIT = 4 * HOUR;
/** Wait after an apply that succeeded or could not begin. */
const RETRY = 5 * SECOND;
/** Wait for an agent that is busy. */
const BUSY_WAIT = 300;
/** Time offline after which an agent with an apply in progress counts as lost: as long as a restart waits for it. */
const LOST_AFTER = 15 * MINUTE;
/** Wait after an apply that was refused for another reason than a busy agent. */
const REFUSED_WAIT = 10 * MINUTE;

/** Fault codes of applies that can begin soon. */
const PASSING: readonly FaultCode[] = [
  'operation_in_progress',
  'agent_not_connected',
  'plan_stale',
  'outside_window',
  'store_unavailable',
];

export class AutomaticApplies {
  private readonly options: AutomaticAppliesOptions;
  private readonly waiting = new Map<NodeId, Waiting>();
  /** Agents that have connected, were approved or got other labels, and were not evaluated since. */
  private readonly arrived = new Set<string>();
  /** Name of the assignment of each apply in progress. */
  private readonly running = new Map<NodeId, string>();
  /** Monotonic milliseconds at which agents with an apply in progress were first found offline. */
  private readonly offlineSince = new Map<string, number>();
  private readonly shutdown = new AbortController();
  private unsubscribe: (() => void)[] = [];
  private round: Promise<void> | null = null;
  private again: NodeJS.Timeout | undefined;
  private readonly attempts = new Set<Promise<void>>();

  constructor(options: AutomaticAppliesOptions) {
    this.options = options;
  }

  start(): void {
    const { bus, standings } = this.options;
    standings.onEvaluated((evaluated) => this.consider(evaluated));
    this.unsubscribe = [
      bus.subscribe(
        [
          'agent.approved',
          'agent.kept',
          'agent.renamed',
          'agent.connected',
          'agent.tags_changed',
          'agent.attributes_changed',
        ],
        ({ target }: RecordedEvent) => void this.arrived.add(target.id),
      ),
      bus.subscribe(['agent.disconnected', 'agent.rejected', 'agent.removed'], ({ target }) => {
        this.arrived.delete(target.id);
        if (isNodeId(target.id)) this.waiting.delete(target.id);
      }),
    ];
  }

  /** Starts no further apply; those in progress go on, on their agents. */
  async stop(): Promise<void> {
    this.shutdown.abort();
    clearTimeout(this.again);
    for (const one of this.unsubscribe.splice(0)) one();
    await this.round;
    await Promise.all(this.attempts);
  }

  /** Starts what is due. Called once a second. Never rejects. */
  tick(): Promise<void> {
    this.round ??= this.startDue()
      .catch((error) =>
        this.options.logger.error('automatic applies could not be started', { reason: messageOf(error) }),
      )
      .finally(() => {
        this.round = null;
      });
    return this.round;
  }

  private consider({ agent, evaluation, row }: EvaluatedAgent): void {
    const { node_id: nodeId } = agent;
    if (!isNodeId(nodeId)) return;
    const known = this.waiting.get(nodeId);
    const arrived = this.arrived.delete(nodeId) || known?.decision.cause === 'on-connect';
    const decision = row.stopped_id === null ? decide(evaluation, arrived) : null;
    if (decision === null) {
      this.waiting.delete(nodeId);
      return;
    }
    const { labels } = evaluation;
    const assignments = evaluation.assignments.map(({ name }) => name);
    const { cause, assignment } = decision;
    const about = [evaluation.wantedSha256, cause, assignment.name, assignment.countedFrom].join(' ');
    const { notBefore, waitsAfter } = known?.about === about ? known : { notBefore: 0, waitsAfter: null };
    this.waiting.set(nodeId, { decision, labels, assignments, about, notBefore, waitsAfter });
  }

  private async startDue(): Promise<void> {
    const { assignments, db, holds, limits, logger } = this.options;
    if (this.waiting.size === 0) this.offlineSince.clear();
    if (this.waiting.size === 0 || this.shutdown.signal.aborted) return;
    const held = await holds();
    const current = new Map((await assignments.all(db)).map((assignment) => [assignment.name, assignment]));
    // An agent that a change has cut off stays in progress, also over a restart.
    const active = await activeAutomatic(db);
    const isLost = this.lostOf(active);
    // A lost one from before the last change or resumption of its assignment no longer counts, like a failure.
    const counted = active.filter(
      (apply) => !isLost.has(apply) || apply.operationId > (current.get(apply.assignment)?.countedFrom ?? ''),
    );
    const lost = counted.filter((apply) => isLost.has(apply));
    const inProgress = new Map([
      ...counted.map(({ nodeId, assignment }) => [nodeId, assignment] as const),
      ...this.running,
    ]);
    const allowed = new Map<string, number>();
    const full = new Set<string>();
    for (const [nodeId, waiting] of this.waiting) {
      if (this.shutdown.signal.aborted || inProgress.size - lost.length >= limits().maxConcurrent) return;
      const { cause, assignment: before } = waiting.decision;
      const { name } = before;
      const assignment = current.get(name);
      // Its agents are evaluated again after it was deleted.
      if (assignment === undefined) continue;
      if (waiting.assignments.some((other) => current.get(other)?.stopped != null)) continue;
      if (cause !== 'repair' && full.has(name)) continue;
      if (!this.mayBegin(nodeId, waiting, held)) continue;
      const most = allowed.get(name) ?? (await this.allowance(assignment, lost));
      allowed.set(name, most);
      if (cause !== 'repair' && [...inProgress.values()].filter((other) => other === name).length >= most) {
        full.add(name);
        continue;
      }
      this.running.set(nodeId, name);
      inProgress.set(nodeId, name);
      const attempt = this.attempt(nodeId)
        .catch((error) => {
          this.postpone(nodeId, isFault(error, 'store_unavailable') ? RETRY : REFUSED_WAIT);
          logger.error('an automatic apply failed', { node_id: nodeId, reason: messageOf(error) });
        })
        .finally(() => {
          this.running.delete(nodeId);
          this.attempts.delete(attempt);
          void this.tick();
        });
      this.attempts.add(attempt);
    }
  }

  private mayBegin(nodeId: NodeId, { notBefore, labels, assignments }: Waiting, held: Holds): boolean {
    const { clock, windows, leases, link, sessions } = this.options;
    if (notBefore > clock.monotonic() || this.running.has(nodeId)) return false;
    if (!link.isConnected(nodeId) || !sessions.isReady(nodeId)) return false;
    if (leases.isBusy(nodeId)) {
      this.lookAgain();
      return false;
    }
    if (held.covers(nodeId, assignments)) return false;
    return !windows.isPaused(labels) && windows.closedFor(assignments) === null;
  }

  /** Looks again soon, at another phase of the second: drift checks that begin once a second may meet each tick. */
  private lookAgain(): void {
    if (this.again !== undefined) return;
    this.again = setTimeout(() => {
      this.again = undefined;
      void this.tick();
    }, BUSY_WAIT);
    this.again.unref();
  }

  /** Returns the applies whose agents have been offline for too long. */
  private lostOf(active: readonly ActiveApply[]): ReadonlySet<ActiveApply> {
    const { clock, link } = this.options;
    const now = clock.monotonic();
    const offline = active.filter(({ nodeId }) => !isNodeId(nodeId) || !link.isConnected(nodeId));
    const before = new Map(this.offlineSince);
    this.offlineSince.clear();
    for (const { nodeId } of offline) this.offlineSince.set(nodeId, before.get(nodeId) ?? now);
    return new Set(offline.filter(({ nodeId }) => now - (before.get(nodeId) ?? now) >= LOST_AFTER));
  }

  /**
   * Returns how many automatic applies of the assignment may be in progress: no more than may still fail. Stops it when none may,
   * and when all that may are in progress on lost agents, which would hold the others back unseen.
   */
  private async allowance({ name, countedFrom }: CurrentAssignment, allLost: readonly ActiveApply[]): Promise<number> {
    const { db, clock, limits, newId, uow } = this.options;
    const failed = await failedAgents(db, name, laterOf(countedFrom, clock.now() - DAY));
    const lost = allLost.filter(({ assignment }) => assignment === name).length;
    const most = limits().maxFailedAgents - failed;
    if (most > lost) return most;
    const reason = [
      ...(failed > 0 ? [`its applies failed on ${failed} agents within a day`] : []),
      ...(lost > 0 ? [`${lost} ${lost === 1 ? 'agent has' : 'agents have'} gone offline during an apply`] : []),
    ].join(', and ');
    await uow.write(async (tx, emit) => {
      await stopAssignment(tx, name, newId(), reason);
      await setAssignmentsRevision(tx, newId());
      emit({
        type: 'enforcement.stopped',
        actor: SYSTEM,
        target: assignmentParty(name),
        summary: `the automatic applies of assignment ${name} have stopped: ${reason}`,
        metadata: { code: 'failed_agents', agents: failed + lost },
      });
    });
    return 0;
  }

  /** Starts the apply of one agent and waits for its end. */
  private async attempt(nodeId: NodeId): Promise<void> {
    const { standings, operations } = this.options;
    const waiting = this.waiting.get(nodeId);
    const evaluated = await standings.look(nodeId);
    const arrived = this.arrived.has(nodeId) || waiting?.decision.cause === 'on-connect';
    const decision =
      evaluated === null || evaluated.row.stopped_id !== null ? null : decide(evaluated.evaluation, arrived);
    if (evaluated === null || decision === null) {
      this.waiting.delete(nodeId);
      return;
    }
    const obstacle = await this.obstacle(evaluated, decision, waiting?.waitsAfter ?? null);
    if (obstacle === 'stopped') this.waiting.delete(nodeId);
    else if (obstacle !== null) this.postpone(nodeId, obstacle.wait, obstacle.after);
    if (obstacle !== null) return;
    const operationId = await this.begin(nodeId, evaluated, decision);
    if (operationId === null) return;
    this.arrived.delete(nodeId);
    this.waiting.delete(nodeId);
    try {
      await operations.ended(operationId, this.shutdown.signal);
    } catch (error) {
      if (!isFault(error)) throw error;
    }
  }

  /** Returns how long the apply has to wait after an earlier one, that the agent's automatic applies stop, or null. */
  private async obstacle(
    evaluated: EvaluatedAgent,
    { cause, assignment }: Decision,
    waitedAfter: number | null,
  ): Promise<{ readonly wait: number; readonly after: number } | 'stopped' | null> {
    const { clock, db, limits } = this.options;
    const { agent, evaluation, row } = evaluated;
    const now = clock.now();
    const since = [row.counted_from, assignment.countedFrom].sort().at(-1) ?? '';
    const { failures, endedAt, cancelledBy } = await pastFailures(db, agent.node_id, since);
    if (cancelledBy !== null) {
      const message = `${cancelledBy} cancelled the last one`;
      return this.stopAgent(evaluated, assignment, { code: 'cancelled', message });
    }
    if (cause !== 'repair') {
      const { name, countedFrom } = assignment;
      const { ownValues } = evaluation;
      const message = await withdrawal(db, { nodeId: agent.node_id, assignment: name, countedFrom, since, ownValues });
      if (message !== null) return this.stopAgent(evaluated, assignment, { code: 'withdrawn', message });
    } else {
      const repairs = await pastRepairs(db, agent.node_id, laterOf(since, now - DAY));
      const { maxRepairs } = limits();
      const again = evaluation.drifted.find((resource) => (repairs.get(resource) ?? 0) >= maxRepairs);
      if (again !== undefined) {
        const message = `${again} was repaired ${repairs.get(again)} times within a day, and differs again: something else changes it`;
        return this.stopAgent(evaluated, assignment, { code: 'repaired_again', message });
      }
    }
    if (endedAt === null) return null;
    // An end in the future was written before the clock was set back: the wait has then passed on the monotonic clock.
    if (endedAt > now && waitedAfter === endedAt) return null;
    const pause = failures === 0 ? RETRY : Math.min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT);
    const wait = Math.min(endedAt, now) + pause - now;
    return wait > 0 ? { wait, after: endedAt } : null;
  }

  /** Returns the operation ID; null if the apply did not begin. */
  private async begin(nodeId: NodeId, evaluated: EvaluatedAgent, decision: Decision): Promise<string | null> {
    const { applies, logger, newId } = this.options;
    const { named, wantedSha256 } = evaluated.evaluation;
    const { cause, assignment } = decision;
    if (wantedSha256 === null) return null;
    const context = {
      actor: automaticParty(cause, assignment.name),
      rights: ALL_RIGHTS,
      requestId: newId(),
      address: null,
    };
    const automatic = { wantedSha256, stateOperationId: evaluated.agent.state_operation_id };
    const request = { nodeId, modules: named, limits: NO_LIMITS, expect: null, automatic };
    try {
      return (await applies.start(request, context)).operation.id;
    } catch (error) {
      if (!isFault(error)) throw error;
      const { code, message } = error;
      if (code === 'removal_guard') {
        const isByFacts = error.data?.reason === 'facts';
        await this.stopAgent(evaluated, assignment, { code: isByFacts ? 'facts_removal' : code, message });
        this.waiting.delete(nodeId);
      } else if (PASSING.includes(code)) {
        this.postpone(nodeId, RETRY);
      } else {
        logger.warn('an automatic apply was refused', { node_id: nodeId, code, reason: message });
        this.postpone(nodeId, REFUSED_WAIT);
      }
      return null;
    }
  }

  /** @param after end of the apply after which it waits; null if it waits for something else */
  private postpone(nodeId: NodeId, wait: number, after: number | null = null): void {
    const waiting = this.waiting.get(nodeId);
    if (waiting === undefined) return;
    this.waiting.set(nodeId, { ...waiting, notBefore: this.options.clock.monotonic() + wait, waitsAfter: after });
  }

  private async stopAgent(evaluated: EvaluatedAgent, { name }: CurrentAssignment, stop: Stop): Promise<'stopped'> {
    const { agent } = evaluated;
    await this.options.standings.stopAutomation(evaluated, stop, {
      type: 'enforcement.stopped',
      actor: SYSTEM,
      target: agentParty(agent),
      summary: `the automatic applies of ${agentLabel(agent)} have stopped: ${stop.message}`,
      metadata: { code: stop.code, assignment: name },
    });
    return 'stopped';
  }
}

/** Reads the limits that an operator may set. */
export const automationLimits = (settings: Settings): AutomationLimits => ({
  maxConcurrent: settings['enforce.max_concurrent'],
  maxFailedAgents: settings['enforce.max_failed_agents'],
  maxRepairs: settings['enforce.max_repairs'],
});
