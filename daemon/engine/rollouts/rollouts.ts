/** Rollouts: plan and apply on the agents of an assignment, of a selector, or with given node IDs. */
import { setMaxListeners } from 'node:events';
import type { Rollout, RolloutEvent, RolloutResult } from '../../../src/contract/rollouts.js';
import type { RunResult } from '../../../src/contract/runs.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import { type WalkOptions, walk } from '../../../src/kernel/walk.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import type { Core } from '../../core/core.js';
import type { Party, RequestContext } from '../../core/domain-event.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import { type Applies, refuseStale } from '../applies.js';
import { requireAssignment } from '../assignments/assignments.js';
import { Places } from '../lanes.js';
import type { Leases } from '../leases.js';
import { moduleNotFound, type SentModule } from '../modules/current-modules.js';
import { findModuleHeads } from '../modules/module-store.js';
import { abortFault } from '../observations.js';
import type { EndedOperation, OperationReader } from '../operations/operation-reader.js';
import type { Plans } from '../plans.js';
import { begunEvent, cancelledEvent, chooseAgents, type RolloutHead, type RolloutTarget } from './rollout-target.js';

interface RolloutsOptions extends Pick<Core, 'db' | 'logger' | 'newId' | 'uow'> {
  readonly link: AgentLink;
  readonly leases: Leases;
  readonly plans: Plans;
  readonly applies: Applies;
  readonly operations: OperationReader;
}

interface RolloutRequest {
  readonly target: RolloutTarget;
  /** Modules to run in addition to those of the assignments. */
  readonly modules: readonly string[];
  /** Maximum number of agents in flight. */
  readonly concurrency: number;
  /** Number of connected agents that go first; the others start only after all of them succeed. */
  readonly canary: number;
  /** Number of failed agents after which no other agent starts; null for no limit. */
  readonly maxFailures: number | null;
}

interface PlanRolloutRequest extends RolloutRequest {
  /** Modules whose texts came with the request. */
  readonly sent?: readonly SentModule[];
  readonly signal: AbortSignal;
}

export interface ApplyRolloutRequest extends RolloutRequest {
  /** Number of removals allowed per agent; null for the removal guard. */
  readonly allowRemovals: number | null;
  /** `plan_hash` by node ID: limits the rollout to these agents, each only while its plan still holds. */
  readonly expect: Readonly<Record<string, string>> | null;
}

/** Receives the progress of a rollout. */
export interface RolloutWatcher {
  readonly onStarted: (id: string, agents: number) => void;
  /** Receives each resource of each agent as it ends; null to receive none. */
  readonly onResource: ((agent: Pick<AgentRow, 'node_id' | 'name'>, result: ResourceResult) => void) | null;
  /** Receives each agent's complete result. */
  readonly onAgent: (result: AgentResult) => Promise<void>;
}

interface StartedRollout {
  /** The rollout before its first agent. */
  readonly rollout: Rollout;
  /** Rejects with `shutting_down` when the orchestrator stops. */
  readonly finished: Promise<Rollout>;
}

interface Running {
  readonly head: RolloutHead;
  /** ID of the operator who began it. */
  readonly operatorId: string;
  readonly operations: Set<string>;
  /** Reason why no further agent starts; null while agents may start. */
  halted: string | null;
}

interface Beginning {
  readonly deed: 'planned' | 'applied';
  /** Limits the rollout to the agents with these node IDs; null for all agents that match. */
  readonly only: Readonly<Record<string, string>> | null;
  readonly sent: readonly SentModule[];
}

interface Planning {
  readonly request: Required<Pick<PlanRolloutRequest, 'modules' | 'sent' | 'signal'>>;
  readonly head: RolloutHead;
  readonly watcher: RolloutWatcher | null;
}

interface Applying {
  readonly request: ApplyRolloutRequest;
  readonly running: Running;
  readonly watcher: RolloutWatcher | null;
}

interface Failure {
  readonly head: RolloutHead;
  /** Null if no apply has started. */
  readonly operationId: string | null;
}

/**
 * Applies that rollouts resolve and store at the same time. More would not be faster, and the requests of others would stand
 * behind all of them at the store: the benchmark row of other requests during a rollout misses its goal.
 */
const STARTING = 32;

export class Rollouts {
  private readonly options: RolloutsOptions;
  private readonly running = new Map<string, Running>();
  private readonly starting = new Places(STARTING);
  private readonly shutdown = new AbortController();

  constructor(options: RolloutsOptions) {
    this.options = options;
    // Every agent of every rollout adds a listener to this signal.
    setMaxListeners(0, this.shutdown.signal);
  }

  /**
   * Plans on every agent of the target. Throws the faults of `chooseAgents`, `module_not_found`, or the signal's reason when it is
   * aborted.
   */
  async plan(request: PlanRolloutRequest, context: RequestContext, watcher: RolloutWatcher | null): Promise<Rollout> {
    const { modules, sent = [], signal } = request;
    // Every planned agent adds a listener to this signal.
    setMaxListeners(0, signal);
    const { head, agents } = await this.begin(request, { deed: 'planned', only: null, sent }, context);
    watcher?.onStarted(head.id, head.agents);
    const results = await this.walk(request, agents, {
      stopReason: () => (signal.aborted ? 'not started: the caller went away' : null),
      run: (agent) => this.planOne(agent, { request: { modules, sent, signal }, head, watcher }, context),
      onResult: async (result) => {
        await watcher?.onAgent(result);
        return keptOf(result);
      },
    });
    if (signal.aborted) throw abortFault(signal);
    return rolloutView(head, results);
  }

  /** Starts a rollout that continues when the caller disconnects. Throws the faults of `chooseAgents` and `module_not_found`. */
  async apply(
    request: ApplyRolloutRequest,
    context: RequestContext,
    watcher: RolloutWatcher | null,
  ): Promise<StartedRollout> {
    const { head, agents } = await this.begin(request, { deed: 'applied', only: request.expect, sent: [] }, context);
    const running: Running = { head, operatorId: context.actor.id, operations: new Set(), halted: null };
    this.running.set(head.id, running);
    watcher?.onStarted(head.id, head.agents);
    const finished = this.walk(request, agents, {
      stopReason: () => (this.shutdown.signal.aborted ? 'not started: the orchestrator stops' : running.halted),
      run: (agent) => this.applyOne(agent, { request, running, watcher }, context),
      onResult: async (result) => {
        // Not awaited: a slow watcher must not delay the rollout.
        void watcher?.onAgent(result);
        return keptOf(result);
      },
    })
      .then((results) => this.conclude(head, results))
      .finally(() => this.running.delete(head.id));
    // Avoids an unhandled rejection when the caller does not wait.
    finished.catch(() => undefined);
    return { rollout: rolloutView(head, []), finished };
  }

  /** Starts no further agent and cancels running applies; returns their operation IDs. Throws `rollout_not_found`. */
  async cancel(id: string, context: RequestContext): Promise<string[]> {
    const { uow, applies } = this.options;
    const running = this.running.get(id);
    if (running === undefined) {
      throw new Fault('rollout_not_found', `no rollout "${id}" is under way`, {
        hint: `see what it did: orch ops list --rollout ${id}`,
      });
    }
    await uow.write(async (_, emit) => emit(cancelledEvent(running.head, context)));
    running.halted = `not started: ${context.actor.name} cancelled the rollout`;
    const cancelled: string[] = [];
    for (const operation of [...running.operations]) {
      try {
        await applies.cancel(operation, context);
        cancelled.push(operation);
      } catch (error) {
        if (!isFault(error, 'operation_finished')) throw error;
      }
    }
    return cancelled;
  }

  /** Starts no further agent in the rollouts of a removed operator; running applies continue. */
  operatorRemoved({ id, name }: Pick<Party, 'id' | 'name'>): void {
    for (const running of this.running.values()) {
      if (running.operatorId === id) running.halted ??= `not started: operator ${name} was removed`;
    }
  }

  /** Starts no further agent; running applies continue on their agents. */
  stop(): void {
    this.shutdown.abort();
  }

  private async begin(request: RolloutRequest, { deed, only, sent }: Beginning, context: RequestContext) {
    const { db, uow, newId } = this.options;
    const chosen = await chooseAgents(db, request.target);
    const own = new Set(sent.map(({ name }) => name));
    await this.refuseUnknown(request.modules.filter((name) => !own.has(name)));
    const agents = only === null ? chosen.agents : chosen.agents.filter(({ node_id }) => Object.hasOwn(only, node_id));
    const head: RolloutHead = { ...chosen, id: newId(), agents: agents.length };
    const { modules } = request;
    await uow.write(async (tx, emit) => {
      if (head.assignment !== null) await requireAssignment(tx, head.assignment);
      emit(begunEvent(head, { deed, modules, sent }, context));
    });
    return { head, agents };
  }

  private async refuseUnknown(modules: readonly string[]): Promise<void> {
    const known = new Set((await findModuleHeads(this.options.db, modules)).map(({ name }) => name));
    const missing = modules.find((name) => !known.has(name));
    if (missing !== undefined) throw moduleNotFound(missing);
  }

  private walk(
    { concurrency, canary, maxFailures }: RolloutRequest,
    agents: readonly AgentRow[],
    work: Pick<WalkOptions<AgentRow, AgentResult, RolloutResult>, 'stopReason' | 'run' | 'onResult'>,
  ): Promise<readonly RolloutResult[]> {
    const { link } = this.options;
    return walk({
      agents,
      concurrency,
      canary,
      maxFailures,
      isConnected: ({ node_id }) => isNodeId(node_id) && link.isConnected(node_id),
      skip: skippedResult,
      ...work,
    });
  }

  private conclude(head: RolloutHead, results: readonly RolloutResult[]): Rollout {
    if (!this.shutdown.signal.aborted) return rolloutView(head, results);
    throw new Fault('shutting_down', 'the orchestrator stops; what has begun goes on, and no further agent starts', {
      hint: `see how far it came: orch ops list --rollout ${head.id}`,
      data: { rollout_id: head.id },
    });
  }

  private async planOne(
    agent: AgentRow,
    { request, head, watcher }: Planning,
    context: RequestContext,
  ): Promise<AgentResult> {
    const onResult = (result: ResourceResult) => watcher?.onResource?.(agent, result);
    const order = { nodeId: agent.node_id, ...request, onStarted: () => undefined, onResult };
    try {
      const result = await this.whenThereIsRoom(() => this.options.plans.plan(order, context), request.signal);
      return finishedResult(agent, result, watcher === null ? null : result);
    } catch (error) {
      return this.failed(agent, error, { head, operationId: null });
    }
  }

  private async applyOne(
    agent: AgentRow,
    { request, running, watcher }: Applying,
    context: RequestContext,
  ): Promise<AgentResult> {
    const { applies, operations } = this.options;
    const { signal } = this.shutdown;
    const { head } = running;
    let id: string | null = null;
    try {
      const order = {
        nodeId: agent.node_id,
        modules: request.modules,
        allowRemovals: request.allowRemovals,
        expect: request.expect?.[agent.node_id] ?? null,
        rollout: head,
      };
      const started = await this.whenThereIsRoom(
        () => this.starting.enter(async () => running.halted ?? (await applies.start(order, context))),
        signal,
      );
      if (typeof started === 'string') return skippedResult(agent, started);
      id = started.operationId;
      running.operations.add(id);
      if (running.halted !== null) await applies.cancel(id, context).catch(refuseUnlessFinished);
      const end = await this.ended(agent, id, watcher);
      const result = watcher === null ? null : await operations.result(id, started.warnings);
      const run = result ?? end;
      refuseStale(run);
      return finishedResult(agent, run, result);
    } catch (error) {
      return this.failed(agent, error, { head, operationId: id });
    } finally {
      if (id !== null) running.operations.delete(id);
    }
  }

  /** Waits for the end of an apply. Throws `agent_timeout` on silence, and `shutting_down` when the orchestrator stops. */
  private async ended(agent: AgentRow, operationId: string, watcher: RolloutWatcher | null): Promise<EndedOperation> {
    const { operations } = this.options;
    const { signal } = this.shutdown;
    const onResource = watcher?.onResource ?? null;
    if (onResource === null) return operations.ended(operationId, signal);
    for await (const result of operations.follow(operationId, { signal, ignoresSilence: false }))
      onResource(agent, result);
    return operations.get(operationId);
  }

  /** Retries `start` when a lease is released, while other operations use every slot of the orchestrator. */
  private async whenThereIsRoom<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { leases } = this.options;
    for (;;) {
      const room = leases.whenSlotFree();
      try {
        return await start();
      } catch (error) {
        if (!isFault(error, 'operation_in_progress') || error.data?.limit === undefined || signal.aborted) throw error;
      }
      await room;
    }
  }

  private failed(agent: AgentRow, error: unknown, { head, operationId }: Failure): AgentResult {
    if (!isFault(error)) {
      const { stack } = error instanceof Error ? error : new Error(String(error));
      this.options.logger.error('a rollout failed on an agent', {
        node_id: agent.node_id,
        operation_id: operationId,
        reason: messageOf(error),
        stack,
      });
    }
    return failedResult(agent, error, { head, operationId });
  }
}

function refuseUnlessFinished(error: unknown): void {
  if (!isFault(error, 'operation_finished')) throw error;
}

/** Result of one agent, with the complete run result if the caller asked for it. */
export type AgentResult = Extract<RolloutEvent, { readonly event: 'agent' }>['agent'];

type Finished = EndedOperation | Pick<RunResult, 'operation_id' | 'status' | 'summary' | 'error'>;

/** Fault codes of agents that were never reached. */
const UNREACHABLE: readonly string[] = ['agent_not_connected', 'not_delivered'];
/** Fault codes of agents that an assignment or a selector no longer means. A named agent fails instead. */
const NOT_MEANT: readonly string[] = ['assignment_changed', 'agent_not_found', 'agent_not_approved'];

function finishedResult(agent: AgentRow, run: Finished, result: RunResult | null): AgentResult {
  const { operation_id, status, summary } = run;
  const error = run.error ?? endWithoutReason(run);
  const missed = error !== null && UNREACHABLE.includes(error.code);
  const standing = status === 'succeeded' ? 'succeeded' : missed ? 'unreachable' : 'failed';
  return {
    ...nameOf(agent),
    status: standing,
    operation_id,
    summary,
    error: error === null ? null : { ...error, hint: null },
    result,
  };
}

const endWithoutReason = ({ status }: Finished): Finished['error'] =>
  status === 'cancelled' || status === 'interrupted' ? { code: status, message: `the apply was ${status}` } : null;

/** Converts an error into a result, so that one agent's error does not end the rollout. */
function failedResult(agent: AgentRow, error: unknown, { head, operationId }: Failure): AgentResult {
  const code = isFault(error) ? error.code : 'internal';
  const isMeant = head.selector === null || !NOT_MEANT.includes(code);
  return {
    ...nameOf(agent),
    status: UNREACHABLE.includes(code) ? 'unreachable' : isMeant ? 'failed' : 'skipped',
    operation_id: operationId,
    summary: null,
    // Unexpected errors are details for the log, not for the response.
    error: isFault(error)
      ? { code, message: messageOf(error), hint: error.hint ?? null }
      : { code, message: 'something went wrong in the orchestrator; see its log', hint: null },
    result: null,
  };
}

const skippedResult = (agent: AgentRow, why: string): AgentResult => ({
  ...nameOf(agent),
  status: 'skipped',
  operation_id: null,
  summary: null,
  error: { code: 'rollout_stopped', message: why, hint: null },
  result: null,
});

/** Drops the complete result, so that the results of a large fleet are not in memory together. */
const keptOf = ({ result: _, ...kept }: AgentResult): RolloutResult => kept;

const nameOf = ({ node_id, name }: AgentRow) => ({ node_id, name });

function rolloutView({ assignment, selector, id, agents }: RolloutHead, results: readonly RolloutResult[]): Rollout {
  const howMany = (status: RolloutResult['status']) => results.filter((one) => one.status === status).length;
  return {
    assignment,
    selector,
    rollout_id: id,
    has_changes: results.some(({ summary }) => summary !== null && summary.changed + summary.pending > 0),
    results: [...results],
    summary: {
      agents,
      succeeded: howMany('succeeded'),
      failed: howMany('failed'),
      unreachable: howMany('unreachable'),
      skipped: howMany('skipped'),
    },
  };
}
