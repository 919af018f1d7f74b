/** Rollouts: begins, resumes, pauses and cancels them, and continues them after a restart. Plans are made here as well. */

import { setMaxListeners } from 'node:events';
import type { Right } from '../../../src/contract/rights.js';
import type { Rollout, RolloutDetail, RolloutRecord } from '../../../src/contract/rollouts.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import type { Core } from '../../core/core.js';
import type { Party, RequestContext } from '../../core/domain-event.js';
import type { Rights } from '../../core/rights.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import type { Applies } from '../applies/applies.js';
import type { ApplyLimits } from '../applies/apply-limits.js';
import { type ApplyWindows, refuseOutsideWindow } from '../applies/apply-windows.js';
import type { Plans } from '../applies/plans.js';
import type { Verifications } from '../applies/verifications.js';
import { requireAssignment } from '../assignments/assignments.js';
import type { EngineLimits } from '../engine-limits.js';
import { Lanes, Places } from '../lanes.js';
import { type CurrentModules, moduleNotFound, type SentModule, sourcesOf } from '../modules/current-modules.js';
import { findModuleHeads } from '../modules/module-store.js';
import { addRolloutSources } from '../modules/source-store.js';
import type { OperationReader } from '../operations/operation-reader.js';
import type { Leases } from '../runs/leases.js';
import { abortFault } from '../runs/observations.js';
import { inputsOfRequest } from '../values/one-off-request.js';
import { findOneOffValues, type GivenOneOff, putOneOffValues } from '../values/one-off-store.js';
import { VALUE_EVENTS } from '../values/value-changes.js';
import { emptyCounts } from './rollout-agents.js';
import { assignWaves, checkPace, type RequestedPace, resolvePace } from './rollout-pace.js';
import { type PlanWatcher, planAgents } from './rollout-plans.js';
import type { RunWatcher } from './rollout-progress.js';
import { rolloutView } from './rollout-results.js';
import type { OpenRequest, RolloutRights } from './rollout-rights.js';
import { RolloutRun } from './rollout-run.js';
import {
  countRollouts,
  findRollout,
  insertRollout,
  listActiveRollouts,
  listHeardAgents,
  listRolloutAgents,
  listRollouts,
  type RolloutRow,
  type RolloutState,
  rolloutAgentView,
  rolloutNotFound,
  rolloutRecord,
  waitingAgent,
  wasGivenUp,
} from './rollout-store.js';
import { RolloutStream } from './rollout-stream.js';
import {
  begunEvent,
  cancelledEvent,
  chooseAgents,
  headOf,
  type RolloutHead,
  type RolloutTarget,
  requestedEvent,
} from './rollout-target.js';
import type { MayApply, RunTools } from './run-tools.js';

interface RolloutsOptions extends Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'> {
  readonly link: AgentLink;
  readonly limits: EngineLimits;
  readonly leases: Leases;
  readonly plans: Plans;
  readonly applies: Applies;
  readonly operations: OperationReader;
  readonly verify: Verifications['verify'];
  readonly windows: ApplyWindows;
  /** Prepares the modules that a rollout carries as texts. */
  readonly revive: CurrentModules['revive'];
  /** Returns true while this party may apply; rollouts of others halt. */
  readonly mayApply: MayApply;
  readonly rolloutRights: RolloutRights;
  /** Returns what a restart does to running rollouts. */
  readonly onRestart: () => 'continue' | 'halt';
}

interface RolloutRequest extends OpenRequest {
  readonly target: RolloutTarget;
  /** Modules to run in addition to those of the assignments. */
  readonly modules: readonly string[];
  /** Values that the request brings with it; null for none. */
  readonly oneOff?: GivenOneOff | null;
  readonly pace: RequestedPace;
}

export interface PlanRolloutRequest extends RolloutRequest {
  /** Modules whose texts came with the request. */
  readonly sent?: readonly SentModule[];
  readonly signal: AbortSignal;
}

export interface ApplyRolloutRequest extends RolloutRequest {
  /** Modules whose texts came with the request. */
  readonly sent?: readonly SentModule[];
  readonly limits: ApplyLimits;
  /** `plan_hash` by node ID, null for an agent without a plan: limits the rollout to these agents, each while its plan holds. */
  readonly expect: Readonly<Record<string, string | null>> | null;
}

type FollowOptions = Omit<ConstructorParameters<typeof RolloutStream>[0], 'operations'>;

/**
 * Applies that rollouts resolve and store at the same time. More would not be faster, and the requests of others would stand
 * behind all of them at the store: the benchmark row of other requests during a rollout misses its goal.
 */
const STARTING = 32;

export class Rollouts {
  private readonly options: RolloutsOptions;
  private readonly tools: RunTools;
  /** Rollouts in memory: those with something to do, and those that a request looks at. */
  private readonly runs = new Map<string, RolloutRun>();
  private readonly shutdown = new AbortController();
  private unsubscribe: () => void = () => undefined;

  constructor(options: RolloutsOptions) {
    const { clock, limits } = options;
    this.options = options;
    this.tools = {
      ...options,
      lanes: new Lanes(),
      starting: new Places(STARTING),
      shutdown: this.shutdown.signal,
      returnsBy: clock.monotonic() + limits.returning,
    };
    // Every agent of every rollout adds a listener to this signal.
    setMaxListeners(0, this.shutdown.signal);
  }

  /** Continues or halts the rollouts that the last stop interrupted. Must be called after operations are resumed. */
  async start(): Promise<void> {
    const { bus, db, onRestart } = this.options;
    this.unsubscribe = bus.subscribe(VALUE_EVENTS, () => this.valuesChanged());
    const isHalted = onRestart() === 'halt';
    for (const row of await listActiveRollouts(db)) {
      const run = this.keep(await this.load(row));
      if (isHalted) await this.inLane(run.id, () => run.halt('the orchestrator restarted'));
      else await this.haltUnlessAllowed(run);
      run.start();
    }
    for (const { rollout_id, node_id } of await listHeardAgents(db)) void this.applyEnded(rollout_id, node_id);
  }

  /** Starts no further agent; running applies continue on their agents. */
  stop(): void {
    this.unsubscribe();
    this.shutdown.abort(
      new Fault('shutting_down', 'the orchestrator stops; rollouts go on when it is back', {
        hint: 'watch it then: orch rollouts list',
      }),
    );
  }

  /** Compares deadlines with the clock; called once a second. */
  tick(): void {
    for (const run of this.runs.values()) run.tick();
  }

  /** Notes that an agent is connected and has reported what it did. */
  agentReady(nodeId: string): void {
    for (const run of this.runs.values()) run.agentReady(nodeId);
  }

  /** Notes that an agent was rejected or removed. */
  agentRevoked(nodeId: string): void {
    for (const run of this.runs.values()) run.agentRevoked(nodeId);
  }

  /**
   * Notes that an apply of a rollout has ended. That corrects a rollout which gave the agent up, also one that is over. Never
   * rejects.
   */
  async applyEnded(rolloutId: string, nodeId: string): Promise<void> {
    const known = this.runs.get(rolloutId);
    if (known !== undefined && !known.gaveUp(nodeId)) return;
    try {
      if (known === undefined && !(await wasGivenUp(this.options.db, rolloutId, nodeId))) return;
      await this.inLane(rolloutId, async () => {
        const run = await this.open(rolloutId);
        await run.correct(nodeId);
        this.keep(run);
      });
    } catch (error) {
      if (this.shutdown.signal.aborted) return;
      const { logger } = this.options;
      logger.error('a rollout could not be corrected', { rollout_id: rolloutId, reason: messageOf(error) });
    }
  }

  /** Halts the rollouts of an operator who may no longer apply. Never rejects. */
  async rightsChanged({ id }: Pick<Party, 'id'>): Promise<void> {
    for (const run of this.runs.values()) if (run.actor.id === id) await this.haltUnlessAllowed(run);
  }

  /** Halts the rollouts of a removed operator; running applies continue. Never rejects. */
  async operatorRemoved({ id, name }: Pick<Party, 'id' | 'name'>): Promise<void> {
    for (const run of [...this.runs.values()]) {
      if (run.actor.id === id) await this.haltRun(run, `operator ${name} was removed`);
    }
  }

  /**
   * Plans on every agent of the target. Throws the faults of `chooseAgents`, `module_not_found`, or the signal's reason when it is
   * aborted.
   */
  async plan(request: PlanRolloutRequest, context: RequestContext, watcher: PlanWatcher | null): Promise<Rollout> {
    const { modules, sent = [], oneOff = null, signal } = request;
    // Every planned agent adds a listener to this signal.
    setMaxListeners(0, signal);
    const { head, agents } = await this.choose(request, context.rights, { right: 'plan', only: null, sent });
    await this.options.uow.write(async (tx, emit) => {
      if (head.assignment !== null) await requireAssignment(tx, head.assignment);
      emit(begunEvent(head, { deed: 'planned', modules, sent, oneOff }, context));
    });
    watcher?.onStarted(head.id, head.agents);
    const pace = resolvePace(request.pace, agents.length);
    const planning = { head, agents, pace, isConnected: this.isConnected, modules, sent, oneOff, signal, watcher };
    const results = await planAgents(this.options, planning, context);
    if (signal.aborted) throw abortFault(signal);
    return rolloutView(head, results);
  }

  /**
   * Starts a rollout that continues when the caller disconnects and when the orchestrator restarts. `watcher` hears of it from its
   * first agent on. Throws the faults of `chooseAgents` and `module_not_found`.
   */
  async apply(
    request: ApplyRolloutRequest,
    context: RequestContext,
    watcher: RunWatcher | null = null,
  ): Promise<RolloutRun> {
    const { modules, sent = [], oneOff = null, expect, limits } = request;
    const { uow, clock } = this.options;
    const { head, agents } = await this.choose(request, context.rights, { right: 'apply', only: expect, sent });
    if (head.assignment !== null && !limits.outsideWindow) refuseOutsideWindow(this.options.windows, [head.assignment]);
    const pace = resolvePace(request.pace, agents.length);
    const startedAt = clock.now();
    const counts = { ...emptyCounts(), agents: agents.length, waiting: agents.length };
    const row: RolloutRow = {
      rollout_id: head.id,
      state: 'running',
      reason: null,
      assignment: head.assignment,
      selector: head.selector,
      order: { modules, ...limits },
      pace,
      counts,
      actor: context.actor,
      requested_by: context.actor.id,
      request_id: context.requestId,
      started_at: startedAt,
      finished_at: null,
      passed: 0,
      soaking_until: null,
      expires_at: pace.whenOnlineSecs === null ? null : startedAt + pace.whenOnlineSecs * 1000,
      value_inputs: oneOff === null ? null : inputsOfRequest(oneOff),
      values_sha256: oneOff?.sha256 ?? null,
    };
    const waveOf = assignWaves(agents, pace, this.isConnected);
    const rows = agents.map(({ node_id, name }, position) =>
      waitingAgent({
        rollout_id: head.id,
        position,
        node_id,
        name,
        wave: waveOf[position] ?? 1,
        expect: expect?.[node_id] ?? null,
      }),
    );
    await uow.write(async (tx, emit) => {
      if (head.assignment !== null) await requireAssignment(tx, head.assignment);
      await insertRollout(tx, row, rows);
      await addRolloutSources(tx, head.id, await sourcesOf(tx, sent));
      if (oneOff !== null) await putOneOffValues(tx, oneOff);
      emit(begunEvent(head, { deed: 'applied', modules, sent, oneOff }, context));
    });
    const run = this.keep(new RolloutRun(row, rows, { ...this.tools, returnsBy: clock.monotonic() }));
    if (watcher !== null) run.watch(watcher);
    run.start();
    return run;
  }

  /** Starts a rollout and writes its lines until it has settled. Throws like `apply` and `settled`. */
  async applyAndFollow(
    request: ApplyRolloutRequest,
    context: RequestContext,
    options: FollowOptions,
  ): Promise<Rollout> {
    const stream = this.streamOf(options);
    return stream.run(await this.apply(request, context, stream));
  }

  /** Writes the lines of a rollout from its beginning until it has settled. Throws `rollout_not_found`, and like `settled`. */
  async follow(id: string, options: FollowOptions): Promise<Rollout> {
    const run = await this.find(id);
    return this.streamOf(options).replay(run).run(run);
  }

  /** Returns a page of the rollouts whose agents the operator may all read, most recent first. */
  async list(page: {
    readonly limit: number;
    readonly offset: number;
    readonly state: RolloutState | null;
    readonly assignment: string | null;
    readonly rights: Rights;
  }) {
    const { db, rolloutRights } = this.options;
    const { limit, offset, rights } = page;
    const filter = { ...page, readable: await rolloutRights.history(rights) };
    const rows = await listRollouts(db, filter, page);
    const total = await countRollouts(db, filter);
    return {
      rollouts: rows.map((row) => this.runs.get(row.rollout_id)?.head() ?? rolloutRecord(row)),
      total,
      limit,
      offset,
    };
  }

  /** Returns a rollout with its agents. Throws `rollout_not_found`. */
  async get(id: string): Promise<RolloutDetail> {
    const run = await this.find(id);
    await run.readValueChanges();
    const values = await findOneOffValues(this.options.db, run.valuesSha256);
    const own = values === null ? {} : { values: values.texts };
    return { ...run.record(), ...own, agents: run.agents.all.map(({ row }) => rolloutAgentView(row)) };
  }

  /** Returns a rollout to watch. Throws `rollout_not_found`. */
  find(id: string): Promise<RolloutRun> {
    return this.inLane(id, () => this.open(id));
  }

  /** Returns when the rollout has settled. Throws the signal's reason, and `shutting_down` when the orchestrator stops. */
  async settled(run: RolloutRun, signal: AbortSignal): Promise<Rollout> {
    const over = AbortSignal.any([signal, this.shutdown.signal]);
    await new Promise<void>((resolve, reject) => {
      const leave = run.watch({
        onBegun: () => undefined,
        onAgent: () => undefined,
        onRollout: () => undefined,
        onSettled: () => done(resolve),
      });
      const abort = () => done(() => reject(abortFault(over)));
      const done = (settle: () => void) => {
        leave();
        over.removeEventListener('abort', abort);
        settle();
      };
      over.addEventListener('abort', abort, { once: true });
      if (over.aborted) abort();
      else if (run.isSettled) done(resolve);
    });
    return run.result();
  }

  /** Starts no other agent until the rollout is resumed. Throws `rollout_not_found`, `rollout_finished` or `rollout_in_progress`. */
  pause(id: string, reason: string | null, context: RequestContext): Promise<RolloutRecord> {
    const event = (record: RolloutRecord) => requestedEvent(record, 'rollout.paused', { context, reason });
    return this.change(id, (run) => run.command({ do: 'pause', reason }, event));
  }

  /**
   * Continues a paused or halted rollout on behalf of the caller. Failures that halted it no longer count. Throws
   * `rollout_not_found` or `rollout_finished`.
   */
  resume(id: string, context: RequestContext): Promise<RolloutRecord> {
    const event = (record: RolloutRecord) => requestedEvent(record, 'rollout.resumed', { context, reason: null });
    return this.change(id, (run) => run.command({ do: 'resume', actor: context.actor }, event));
  }

  /**
   * Applies again to the failed, unreachable and skipped agents of an ended or halted rollout, on behalf of the caller. Throws
   * `rollout_not_found`, `rollout_in_progress`, or `rollout_finished` when every agent has succeeded.
   */
  retry(id: string, context: RequestContext): Promise<RolloutRecord> {
    const event = (record: RolloutRecord) => requestedEvent(record, 'rollout.retried', { context, reason: null });
    const { actor } = context;
    return this.change(id, (run) => run.command({ do: 'retry', actor, expiresAt: run.retryExpiry() }, event));
  }

  /**
   * Starts no further agent and cancels running applies; returns their operation IDs. Throws `rollout_not_found`,
   * `rollout_finished`, or `rollout_in_progress` while it is reverted.
   */
  async cancel(id: string, context: RequestContext): Promise<string[]> {
    const reason = `${context.actor.name} cancelled the rollout`;
    const run = await this.inLane(id, async () => {
      const found = await this.open(id);
      await found.command({ do: 'cancel', reason }, (record) => cancelledEvent(headOf(record), context));
      return this.keep(found);
    });
    const cancelled: string[] = [];
    for (const { row } of run.agents.inStates('running')) {
      if (row.operation_id === null || !(await run.cancelApply(row.operation_id, context))) continue;
      cancelled.push(row.operation_id);
    }
    return cancelled;
  }

  private streamOf({ signal, ...options }: FollowOptions): RolloutStream {
    const over = AbortSignal.any([signal, this.shutdown.signal]);
    return new RolloutStream({ ...options, operations: this.options.operations, signal: over });
  }

  private async change(id: string, work: (run: RolloutRun) => Promise<void>): Promise<RolloutRecord> {
    return this.inLane(id, async () => {
      const run = await this.open(id);
      await work(run);
      return this.keep(run).record();
    });
  }

  private inLane<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.tools.lanes.enter(id, work);
  }

  /** Returns a rollout, from memory if it is there. Must be called in its lane. Throws `rollout_not_found`. */
  private async open(id: string): Promise<RolloutRun> {
    const known = this.runs.get(id);
    if (known !== undefined) return known;
    const row = await findRollout(this.options.db, id);
    if (row === null) throw rolloutNotFound(id);
    return this.keep(await this.load(row));
  }

  private async load(row: RolloutRow): Promise<RolloutRun> {
    const run = new RolloutRun(row, await listRolloutAgents(this.options.db, row.rollout_id), this.tools);
    await run.readValueChanges();
    return run;
  }

  /** Keeps a rollout in memory until it has settled. */
  private keep(run: RolloutRun): RolloutRun {
    if (run.isSettled || this.runs.has(run.id)) return run;
    this.runs.set(run.id, run);
    run.watch({
      onBegun: () => undefined,
      onAgent: () => undefined,
      onRollout: () => undefined,
      onSettled: () => {
        if (run.isSettled) this.runs.delete(run.id);
      },
    });
    return run;
  }

  /** Lets the rollouts in memory say that stored values have changed. Rejects if the store fails. */
  private async valuesChanged(): Promise<void> {
    for (const run of [...this.runs.values()]) await run.readValueChanges();
  }

  private async haltUnlessAllowed(run: RolloutRun): Promise<void> {
    const { actor } = run;
    if (run.state !== 'running' || (await this.options.mayApply(actor, null))) return;
    await this.haltRun(run, `operator ${actor.name} was removed, has expired or may no longer apply`);
  }

  private async haltRun(run: RolloutRun, reason: string): Promise<void> {
    try {
      await this.inLane(run.id, () => run.halt(reason));
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      const { logger } = this.options;
      logger.error('a rollout could not be halted', { rollout_id: run.id, reason: messageOf(error) });
    }
  }

  private readonly isConnected = ({ node_id }: Pick<AgentRow, 'node_id'>): boolean =>
    isNodeId(node_id) && this.options.link.isConnected(node_id);

  /** Returns the agents of a request and what it is about. */
  private async choose(
    request: RolloutRequest,
    rights: Rights,
    { right, only, sent }: { right: Right; only: ApplyRolloutRequest['expect']; sent: readonly SentModule[] },
  ): Promise<{ readonly head: RolloutHead; readonly agents: readonly AgentRow[] }> {
    const { db, newId, rolloutRights } = this.options;
    checkPace(request.pace);
    const chosen = await chooseAgents(db, request.target, await rolloutRights.readable(rights));
    const own = new Set(sent.map(({ name }) => name));
    await this.refuseUnknown(request.modules.filter((name) => !own.has(name)));
    const agents = only === null ? chosen.agents : chosen.agents.filter(({ node_id }) => Object.hasOwn(only, node_id));
    await rolloutRights.admit({ ...request, right, rights, sent }, agents);
    const { assignment, selector } = chosen;
    return { head: { assignment, selector, id: newId(), agents: agents.length }, agents };
  }

  private async refuseUnknown(modules: readonly string[]): Promise<void> {
    const known = new Set((await findModuleHeads(this.options.db, modules)).map(({ name }) => name));
    const missing = modules.find((name) => !known.has(name));
    if (missing !== undefined) throw moduleNotFound(missing);
  }
}
