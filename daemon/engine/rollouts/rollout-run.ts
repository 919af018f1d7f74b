/**
 * One rollout in memory. It asks the walk (`src/kernel/walk.ts`) for the next step, starts agents, and stores how far it has
 * come. An agent's operation is stored in one transaction with the agent's new state, so after a restart an agent either
 * waits or has an operation to follow.
 */
import { setImmediate } from 'node:timers/promises';
import type { Rollout, RolloutRecord, RolloutResult } from '../../../src/contract/rollouts.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import { brokenBound, firstWindow, nextStep, type WalkBounds, type WalkView } from '../../../src/kernel/walk.js';
import type { Core } from '../../core/core.js';
import { type DomainEvent, type Party, type RequestContext, SYSTEM } from '../../core/domain-event.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import { type Applies, refuseStale } from '../applies.js';
import type { Lanes, Places } from '../lanes.js';
import type { Leases } from '../leases.js';
import type { CurrentModules, SentModule } from '../modules/current-modules.js';
import { sourcesOfRollout } from '../modules/source-store.js';
import type { OperationReader } from '../operations/operation-reader.js';
import { findRevert } from '../operations/operation-store.js';
import type { Verifications } from '../verifications.js';
import {
  correctedWord,
  heardRow,
  IN_FLIGHT_WHEN_SILENT,
  isUnknown,
  notReverted,
  revertedAfterAll,
} from './late-ends.js';
import { RolloutAgents, type RolloutMember } from './rollout-agents.js';
import { RolloutDeadlines } from './rollout-deadlines.js';
import { boundsOf } from './rollout-pace.js';
import {
  failedResult,
  finishedResult,
  notStarted,
  offlineRow,
  rolloutView,
  rowWithResult,
  stoppedError,
  stoppedRow,
} from './rollout-results.js';
import {
  beginRolloutAgent,
  type RolloutAgentRow,
  type RolloutRow,
  rolloutRecord,
  updateRollout,
  updateRolloutAgents,
} from './rollout-store.js';
import { headOf, stateEvent } from './rollout-target.js';
import { RolloutTicks, retriesAfter } from './rollout-ticks.js';
import { failedChecks } from './wave-checks.js';
import { revertAgents } from './wave-reverts.js';

export interface RunTools extends Pick<Core, 'clock' | 'db' | 'logger' | 'uow'> {
  readonly link: AgentLink;
  readonly leases: Leases;
  readonly applies: Applies;
  readonly operations: OperationReader;
  /** Runs the health checks of what was applied last to an agent. */
  readonly verify: Verifications['verify'];
  /** Prepares the modules that a rollout carries as texts. */
  readonly revive: CurrentModules['revive'];
  /** One lane per rollout: its commands and its steps do not overlap. */
  readonly lanes: Lanes;
  /** Limits how many applies of all rollouts are resolved and stored at a time. */
  readonly starting: Places;
  /** Aborted when the orchestrator stops. */
  readonly shutdown: AbortSignal;
  /** Monotonic milliseconds until which offline agents are expected back, because the orchestrator has just started. */
  readonly returnsBy: number;
}

/** Receives the progress of a rollout after it is stored. */
export interface RunWatcher {
  /** An apply of an agent has begun. */
  onBegun(agent: RolloutMember, operationId: string): void;
  /** An agent has its end. */
  onAgent(agent: RolloutMember): void;
  /** The state or the wave has changed. */
  onRollout(rollout: RolloutRecord): void;
  /** The rollout has ended or halted, and no agent is in flight. */
  onSettled(): void;
}

/** The part of a row that a rollout changes. */
type Progress = Partial<
  Pick<RolloutRow, 'state' | 'reason' | 'actor' | 'finished_at' | 'passed' | 'soaking_until' | 'expires_at'>
>;

/** Rows of agents stored in one transaction. */
const ROWS = 500;

export class RolloutRun {
  readonly agents: RolloutAgents;
  /** Warnings of the applies that this process has started, by operation ID. */
  readonly warnings = new Map<string, RunWarnings>();
  private readonly tools: RunTools;
  private row: RolloutRow;
  private readonly bounds: WalkBounds;
  private readonly deadlines: RolloutDeadlines;
  private readonly ticks: RolloutTicks;
  private readonly watchers = new Set<RunWatcher>();
  private readonly unsaved = new Set<RolloutMember>();
  private readonly events: DomainEvent[] = [];
  /** Applies of a cancelled rollout whose own cancellation could not be stored yet. */
  private readonly uncancelled = new Map<string, RequestContext>();
  private isRowSaved = true;
  private window: number;
  /** True after the store has refused an apply: no other one starts before the next tick. */
  private isStalled = false;
  private isDue = false;
  private pump: Promise<void> | null = null;
  private told: string;
  /** Modules that the rollout carries as texts; null before its first apply in this process. */
  private sent: readonly SentModule[] | null = null;
  /** The health checks of the current wave while they run. */
  private checking: Promise<void> | null = null;
  /** The applies that revert the current wave while they run. */
  private reverting: Promise<void> | null = null;

  constructor(row: RolloutRow, agents: readonly RolloutAgentRow[], tools: RunTools) {
    const { pace } = row;
    this.row = row;
    this.tools = tools;
    this.agents = new RolloutAgents(agents, pace.waves.length);
    this.bounds = boundsOf(pace);
    this.window = firstWindow(this.bounds, pace.waves.length);
    this.deadlines = new RolloutDeadlines(tools.clock, pace);
    this.deadlines.read(row);
    this.ticks = new RolloutTicks(tools.shutdown);
    this.told = this.place();
  }

  get id(): string {
    return this.row.rollout_id;
  }

  get state(): RolloutRow['state'] {
    return this.row.state;
  }

  /** The party on whose behalf agents are applied. */
  get actor(): Party {
    return this.row.actor;
  }

  /** True when the rollout has ended or halted, no agent is in flight, and all of it is stored. */
  get isSettled(): boolean {
    const isOver = this.row.finished_at !== null || this.row.state === 'halted';
    return isOver && this.agents.inFlight === 0 && this.isSaved;
  }

  /** True once the rollout has ended. A cancelled one has not ended while agents are in flight. */
  get isOver(): boolean {
    return this.row.finished_at !== null;
  }

  record(): RolloutRecord {
    return rolloutRecord({ ...this.row, counts: this.agents.counts });
  }

  /** Returns the answer to an apply. Agents that still wait in a rollout that has halted count as skipped. */
  result(): Rollout {
    const head = headOf(this.row);
    const results = this.agents.all.flatMap(({ row }) => this.resultOf(row) ?? []);
    return rolloutView(head, results);
  }

  resultOf({ state, node_id, name, operation_id, summary, error }: RolloutAgentRow): RolloutResult | null {
    const agent = { node_id, name, operation_id, summary, error };
    if (state === 'running') return null;
    if (state === 'reverted') {
      return {
        ...agent,
        status: 'failed',
        error: stoppedError(`reverted: ${this.row.reason ?? 'the rollout failed'}`),
      };
    }
    if (state !== 'waiting') return { ...agent, status: state };
    if (this.row.state !== 'halted') return null;
    return { ...agent, status: 'skipped', error: notStarted(this.row.reason ?? 'the rollout has halted') };
  }

  watch(watcher: RunWatcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Follows the applies that are in flight, and takes the next steps. */
  start(): void {
    for (const agent of this.agents.inStates('running')) {
      void this.follow(agent, []);
      // The orchestrator may have ended between the cancellation of the rollout and those of its applies.
      const { operation_id: id } = agent.row;
      if (this.row.state === 'cancelled' && id !== null) this.uncancelled.set(id, { ...this.context(), actor: SYSTEM });
    }
    for (const agent of this.agents.inStates('failed')) if (isUnknown(agent.row)) this.noteUnknown(agent);
    this.wake();
  }

  /** Takes the next steps soon. */
  wake(): void {
    this.isDue = true;
    this.pump ??= this.run().finally(() => {
      this.pump = null;
      if (this.isDue) this.wake();
    });
  }

  /** Changes the state on behalf of a request, in one transaction with its audit event. Must be called in the lane. */
  async command({ progress, agents = [], event }: Command): Promise<void> {
    const row = { ...this.row, ...progress };
    const changed = agents.map(({ agent, row: after }) => ({ agent, row: { ...agent.row, ...after } }));
    const counts = this.countsAfter(changed);
    await this.tools.uow.write(async (tx, emit) => {
      await updateRolloutAgents(
        tx,
        changed.map(({ row: after }) => after),
      );
      await updateRollout(tx, this.id, { ...row, counts });
      emit(event);
    });
    this.row = row;
    for (const { agent, row: after } of changed) {
      this.agents.change(agent, { busyTicks: 0 });
      if (after.state === 'waiting') this.agents.makeReady(agent, after);
      else this.agents.change(agent, { row: after });
      this.unsaved.delete(agent);
    }
    this.deadlines.read(row);
    if (row.state === 'running') {
      this.window = firstWindow(this.bounds, row.pace.waves.length);
      this.takeBack();
    }
    for (const { agent } of changed) if (agent.row.state !== 'waiting') this.tell((one) => one.onAgent(agent));
    this.tellPlace();
    this.wake();
  }

  /** Returns the number of waves that are behind the walk, without a wave of which every agent failed or was left out. */
  firstOpenWave(): number {
    const { passed } = this.row;
    const wave = this.agents.waves[passed];
    const isExhausted =
      wave !== undefined && wave.ready + wave.awaited + wave.away + wave.running + wave.succeeded === 0;
    return isExhausted ? passed + 1 : passed;
  }

  /** Returns the progress of a rollout in which these agents wait again. */
  retried(agents: readonly RolloutMember[], actor: Party): Progress {
    const { passed, pace } = this.row;
    const { whenOnlineSecs } = pace;
    return {
      state: 'running',
      reason: null,
      actor,
      finished_at: null,
      passed: Math.min(passed, ...agents.map(({ row }) => row.wave - 1)),
      soaking_until: null,
      expires_at: whenOnlineSecs === null ? null : this.tools.clock.now() + whenOnlineSecs * 1000,
    };
  }

  /** Returns the change that cancels the rollout: no agent that waits will start. */
  cancelled(reason: string, event: DomainEvent): Parameters<RolloutRun['command']>[0] {
    const waiting = this.agents.inStates('waiting').filter(({ isStarting }) => !isStarting);
    const row = { state: 'skipped', error: notStarted(reason) } as const;
    const agents = waiting.map((agent) => ({ agent, row }));
    return { progress: { state: 'cancelled', reason, soaking_until: null }, agents, event };
  }

  /** Starts no further agent; does nothing unless agents may start. Must be called in the lane. */
  async halt(reason: string): Promise<void> {
    if (this.row.state !== 'running') return;
    const event = stateEvent(this.record(), 'rollout.halted', { actor: SYSTEM, reason });
    await this.command({ progress: { state: 'halted', reason }, event });
  }

  /** Notes that an agent is connected, and lets it start if it was waited for. */
  agentReady(nodeId: string): void {
    const agent = this.agents.ofNode(nodeId);
    if (agent === undefined || agent.row.state !== 'waiting' || agent.place === 'ready') return;
    if (!this.deadlines.isExpired) this.agents.makeReady(agent);
    else if (this.row.state === 'running') this.conclude(agent, this.missed(agent));
    // Otherwise it keeps its place, and has its end when the rollout is resumed.
    this.wake();
  }

  /** Notes that an agent was rejected or removed: it will not return. */
  agentRevoked(nodeId: string): void {
    const agent = this.agents.ofNode(nodeId);
    if (agent === undefined || agent.row.state !== 'waiting') return;
    this.agents.change(agent, { isRevoked: true });
    if (agent.place !== 'ready') this.agents.makeReady(agent);
    this.wake();
  }

  /** Compares the clock with the deadlines, and repeats what the store has refused. */
  tick(): void {
    this.ticks.tick();
    for (const [operationId, context] of this.uncancelled) void this.cancelAgain(operationId, context);
    for (const agent of this.agents.busy) this.tryBusy(agent);
    const isGivenUp = this.agents.giveUpSilent(this.tools.clock.monotonic());
    const isCheckDue = this.deadlines.isSoaked && this.checking === null;
    if (isCheckDue || isGivenUp || !this.isSaved || this.isStalled || this.agents.absent.length > 0) {
      this.isStalled = false;
      this.wake();
    }
  }

  private get isSaved(): boolean {
    return this.isRowSaved && this.unsaved.size === 0 && this.events.length === 0;
  }

  private async run(): Promise<void> {
    const { shutdown, lanes, logger } = this.tools;
    while (this.isDue) {
      if (shutdown.aborted) {
        this.isDue = false;
        return;
      }
      // All results that arrive in one turn of the event loop are stored together.
      await setImmediate();
      this.isDue = false;
      try {
        await lanes.enter(this.id, () => this.advance());
      } catch (error) {
        // The next tick repeats it.
        this.isDue = false;
        logger.error('a rollout could not be stored', { rollout_id: this.id, reason: messageOf(error) });
        return;
      }
      if (this.isSettled) this.tell((one) => one.onSettled());
    }
  }

  private async advance(): Promise<void> {
    if (this.tools.shutdown.aborted) return;
    this.placeAbsent();
    this.takeSteps();
    await this.save();
    this.startReady();
  }

  /** Takes all steps but starts. */
  private takeSteps(): void {
    this.takeStepsOfWalk();
    if (this.agents.inFlight > 0) return;
    if (this.row.state === 'cancelled') this.finish({});
    if (this.row.state === 'reverting') {
      this.reverting ??= this.revertWave().finally(() => {
        this.reverting = null;
      });
    }
  }

  private takeStepsOfWalk(): void {
    while (this.row.state === 'running') {
      const step = nextStep(this.view());
      switch (step.do) {
        case 'start':
        case 'wait':
          return;
        case 'soak':
          this.progress({ soaking_until: this.deadlines.beginSoak() });
          return;
        case 'check':
          this.checking ??= this.checkWave().finally(() => {
            this.checking = null;
          });
          return;
        case 'pass':
          this.passWave();
          break;
        case 'halt':
          this.breakOff(step.reason, brokenBound(this.view())?.wave);
          return;
        case 'finish': {
          const broken = brokenBound(this.view());
          if (broken !== null) this.breakOff(broken.reason, broken.wave);
          else this.finish({ state: step.state, reason: step.reason });
          return;
        }
      }
    }
  }

  private passWave(): void {
    this.deadlines.endSoak();
    this.progress({ passed: this.row.passed + 1, soaking_until: null });
  }

  /**
   * Starts no other agent because a wave has reached a bound or failed a health check. A wave that is reverted becomes the
   * current one, so that a restart goes on with it.
   */
  private breakOff(reason: string, wave = this.row.passed): void {
    this.deadlines.endSoak();
    this.progress({ soaking_until: null });
    if (this.row.pace.onFailure === 'revert') {
      const isUntouched = !this.agents.all.some(
        ({ row, isStarting }) => row.wave === wave + 1 && (isStarting || isApplied(row)),
      );
      const told = isUntouched ? reason : `${reason}; wave ${wave + 1} is reverted`;
      this.progress({ state: 'reverting', reason, passed: wave });
      this.events.push(stateEvent(this.record(), 'rollout.halted', { actor: SYSTEM, reason: told }));
      return;
    }
    const isDone = this.agents.inStates('waiting').length === 0 && this.agents.inFlight === 0;
    if (isDone) {
      this.finish({ state: 'failed', reason });
      return;
    }
    this.progress({ state: 'halted', reason });
    this.events.push(stateEvent(this.record(), 'rollout.halted', { actor: SYSTEM, reason }));
  }

  /** Runs the health checks of the current wave, and leaves it when all are well. Never rejects. */
  private async checkWave(): Promise<void> {
    const { lanes, logger, shutdown, verify } = this.tools;
    const { soakEnd } = this.deadlines;
    const { passed } = this.row;
    const agents = this.agents.inStates('succeeded').filter(({ row }) => row.wave === passed + 1);
    try {
      const failed = await failedChecks(agents, this.bounds.concurrency, { verify, ticks: this.ticks, shutdown });
      if (shutdown.aborted) return;
      await lanes.enter(this.id, async () => {
        // A rollout that does not run checks again when it is resumed; one that was retried is in another soak.
        const isCurrent =
          this.row.state === 'running' && this.row.passed === passed && this.deadlines.soakEnd === soakEnd;
        if (isCurrent) this.takeVerdicts(agents, failed);
      });
    } catch (error) {
      if (!shutdown.aborted)
        logger.error('health checks could not run', { rollout_id: this.id, reason: messageOf(error) });
    }
    this.wake();
  }

  /** Must be called in the lane. */
  private takeVerdicts(agents: readonly RolloutMember[], failed: readonly RolloutAgentRow[]): void {
    for (const row of failed) {
      const agent = agents.find(({ position }) => position === row.position);
      // A retry or another end has replaced the result that was checked.
      if (agent?.row.state === 'succeeded' && agent.row.operation_id === row.operation_id) this.conclude(agent, row);
    }
    if (failed.length === 0) this.passWave();
    else
      this.breakOff(
        `health checks failed on ${failed.length} of ${agents.length} agents of wave ${this.row.passed + 1}`,
      );
  }

  /** Brings the agents of the current wave back to what they had before, and ends the rollout. Never rejects. */
  private async revertWave(): Promise<void> {
    const { lanes, logger, shutdown } = this.tools;
    const wave = this.row.passed + 1;
    const agents = this.agents.inStates('succeeded', 'failed').filter(({ row }) => row.wave === wave && isApplied(row));
    try {
      const order = {
        rolloutId: this.id,
        context: this.context(),
        agents,
        concurrency: this.bounds.concurrency,
        onEnd: (agent: RolloutMember, row: RolloutAgentRow) => {
          this.conclude(agent, row);
          this.wake();
        },
      };
      await revertAgents(order, { ...this.tools, ticks: this.ticks, ended: (id) => this.ended(id) });
      if (!shutdown.aborted) await lanes.enter(this.id, async () => this.endReverted(agents));
    } catch (error) {
      if (shutdown.aborted) return;
      logger.error('a wave could not be reverted, it is tried again', {
        rollout_id: this.id,
        reason: messageOf(error),
      });
      await this.ticks.next();
    }
    this.wake();
  }

  /** Must be called in the lane. */
  private endReverted(agents: readonly RolloutMember[]): void {
    const why = this.row.reason ?? 'the rollout was reverted';
    for (const agent of this.agents.inStates('waiting')) this.conclude(agent, stoppedRow(agent.row, why));
    const left = agents.filter(({ row }) => row.state !== 'reverted').length;
    const hasReverted = this.agents.inStates('reverted').some(({ row }) => row.wave === this.row.passed + 1);
    if (left > 0) {
      this.finish({ state: 'failed', reason: `${why}${notReverted(left, agents.length)}` });
    } else if (hasReverted) this.finish({ state: 'reverted' });
    else this.finish({ state: 'failed', reason: `${why}; there was nothing to revert` });
  }

  private finish(progress: Progress): void {
    if (this.row.finished_at !== null) return;
    this.progress({ ...progress, finished_at: this.tools.clock.now(), soaking_until: null });
    const { state, reason } = this.row;
    if (state === 'cancelled') return;
    const type = state === 'succeeded' || state === 'reverted' ? (`rollout.${state}` as const) : 'rollout.failed';
    this.events.push(stateEvent(this.record(), type, { actor: SYSTEM, reason }));
  }

  private progress(change: Progress): void {
    this.row = { ...this.row, ...change };
    this.isRowSaved = false;
  }

  private view(): WalkView {
    const { bounds, window } = this;
    const { soakEnd } = this.deadlines;
    const { passed } = this.row;
    const { waves, silent } = this.agents;
    return { bounds, waves, passed, silent, window, soakEnd, now: this.tools.clock.monotonic() };
  }

  /** Starts as many agents as the walk allows. An offline agent gets its place or its end instead. */
  private startReady(): void {
    while (this.row.state === 'running' && !this.isStalled) {
      const step = nextStep(this.view());
      if (step.do !== 'start') {
        if (step.do !== 'wait') this.isDue = true;
        return;
      }
      const agent = this.agents.next(this.row.passed);
      if (agent === undefined) return;
      if (!agent.isRevoked && this.isOffline(agent)) this.placeOffline(agent);
      else {
        this.agents.change(agent, { isStarting: true });
        void this.begin(agent);
      }
      if (!this.isSaved) this.isDue = true;
    }
  }

  private isOffline({ row: { node_id } }: RolloutMember): boolean {
    return !isNodeId(node_id) || !this.tools.link.isConnected(node_id);
  }

  /** Lets agents start that have returned while the rollout did not run, and whose time a retry has prolonged. */
  private takeBack(): void {
    if (this.deadlines.isExpired) return;
    for (const agent of this.agents.absent) if (!this.isOffline(agent)) this.agents.makeReady(agent);
  }

  /** Gives offline agents another place when the time in which they were awaited is over. */
  private placeAbsent(): void {
    if (this.row.state !== 'running') return;
    for (const agent of this.agents.absent) this.placeOffline(agent);
  }

  /** Decides what becomes of an offline agent: it is waited for, left out, or unreachable. */
  private placeOffline(agent: RolloutMember): void {
    const { clock, returnsBy } = this.tools;
    if (this.deadlines.isExpired) this.conclude(agent, this.missed(agent));
    else if (clock.monotonic() < returnsBy) this.agents.change(agent, { place: 'awaited', isStarting: false });
    else if (this.deadlines.isAwaiting) this.agents.change(agent, { place: 'away', isStarting: false });
    else this.conclude(agent, this.missed(agent));
  }

  private missed({ row }: RolloutMember): RolloutAgentRow {
    return offlineRow(row, this.row.pace.skipOffline);
  }

  private async begin(agent: RolloutMember): Promise<void> {
    const { applies, leases, starting, shutdown } = this.tools;
    const { row } = agent;
    const { order } = this.row;
    const request = {
      nodeId: row.node_id,
      modules: order.modules,
      allowRemovals: order.allowRemovals,
      confirmSecs: order.confirmSecs,
      outsideWindow: order.outsideWindow === true,
      keepsSnapshot: this.row.pace.onFailure === 'revert',
      expect: row.expect,
      rollout: {
        id: this.id,
        assignment: this.row.assignment,
        onStored: async (tx: Parameters<typeof beginRolloutAgent>[0], operationId: string) => {
          const place = { rolloutId: this.id, position: agent.position };
          if (!(await beginRolloutAgent(tx, place, operationId))) throw stopped();
        },
      },
    };
    try {
      const started = await leases.whenThereIsRoom(
        () =>
          starting.enter(async () => {
            if (this.row.state !== 'running' || shutdown.aborted) throw stopped();
            if (this.isLate(agent)) throw new Fault('agent_not_connected', 'the agent came back too late');
            const sent = await this.sentModules();
            return applies.start({ ...request, sent }, this.context());
          }),
        shutdown,
      );
      const operationId = started.operation.id;
      const begun = { ...row, state: 'running', operation_id: operationId, summary: null, error: null } as const;
      this.agents.change(agent, { row: begun, isStarting: false });
      this.tell((one) => one.onBegun(agent, operationId));
      if (this.row.state === 'cancelled') await this.cancelApply(operationId, this.context());
      await this.follow(agent, started.warnings);
    } catch (error) {
      this.notBegun(agent, error);
    }
  }

  private async sentModules(): Promise<readonly SentModule[]> {
    const { db, revive } = this.tools;
    this.sent ??= await revive(await sourcesOfRollout(db, this.id));
    return this.sent;
  }

  /** Handles an agent whose apply was not stored. */
  private notBegun(agent: RolloutMember, error: unknown): void {
    if (this.tools.shutdown.aborted) return;
    if (isFault(error, 'rollout_stopped')) {
      const { reason, state } = this.row;
      // A cancellation has ended the row that memory still held as starting.
      if (state === 'cancelled') this.conclude(agent, stoppedRow(agent.row, reason ?? ''));
      else this.agents.makeReady(agent);
    } else if (isFault(error, 'agent_not_connected')) {
      this.placeOffline(agent);
    } else if (isFault(error, 'store_unavailable')) {
      this.isStalled = true;
      this.agents.makeReady(agent);
    } else if (isFault(error, 'operation_in_progress') && agent.busyTicks < retriesAfter(error.code)) {
      this.awaitOther(agent, { code: error.code, message: error.message, hint: error.hint ?? null });
    } else {
      this.conclude(agent, this.failure(agent, error));
    }
    this.wake();
  }

  /** Waits for the end of an agent's apply and takes its result. Never rejects. */
  private async follow(agent: RolloutMember, warnings: RunWarnings): Promise<void> {
    const { operation_id: operationId } = agent.row;
    if (operationId === null) return;
    if (warnings.length > 0) this.warnings.set(operationId, warnings);
    try {
      const end = await this.ended(operationId);
      refuseStale(end);
      // Something that the orchestrator did not begin, such as an apply on the machine itself.
      const isBusy = end.error?.code === 'operation_in_progress' && agent.busyTicks < retriesAfter(end.error.code);
      if (isBusy && end.error !== null) this.awaitOther(agent, { ...end.error, hint: null });
      else this.conclude(agent, rowWithResult(agent.row, finishedResult(agent.row, end)));
    } catch (error) {
      if (this.tools.shutdown.aborted) return;
      this.conclude(agent, this.failure(agent, error));
      this.noteUnknown(agent);
    }
    this.wake();
  }

  /** Lets an agent wait for the end of another operation, which its row names. */
  private awaitOther(agent: RolloutMember, error: NonNullable<RolloutAgentRow['error']>): void {
    const row = { ...agent.row, state: 'waiting', operation_id: null, summary: null, error } as const;
    this.agents.change(agent, { row, place: 'busy', isStarting: false });
    this.unsaved.add(agent);
  }

  private tryBusy(agent: RolloutMember): void {
    this.agents.change(agent, { busyTicks: agent.busyTicks + 1 });
    const { node_id } = agent.row;
    const isTaken = isNodeId(node_id) && this.tools.leases.isBusy(node_id);
    if (isTaken && agent.busyTicks < retriesAfter('operation_in_progress')) return;
    this.agents.makeReady(agent);
    this.wake();
  }

  /** Lets an agent whose end is not known count as in flight, for a time. */
  private noteUnknown(agent: RolloutMember): void {
    const { operation_id: operationId } = agent.row;
    if (operationId === null || !isUnknown(agent.row)) return;
    if (this.tools.operations.isActive(operationId)) {
      this.agents.noteSilent(agent, this.tools.clock.monotonic() + IN_FLIGHT_WHEN_SILENT);
    } else if (agent.row.error?.code === 'agent_timeout') void this.correctSoon(agent.row.node_id);
  }

  private async correctSoon(nodeId: string): Promise<void> {
    try {
      await this.tools.lanes.enter(this.id, () => this.correct(nodeId));
    } catch (error) {
      this.tools.logger.error('a rollout could not be corrected', {
        rollout_id: this.id,
        node_id: nodeId,
        reason: messageOf(error),
      });
    }
  }

  /** Returns true if an apply of this agent counts as failed because its end was not known. */
  gaveUp(nodeId: string): boolean {
    const agent = this.agents.ofNode(nodeId);
    return agent !== undefined && isUnknown(agent.row);
  }

  /**
   * Corrects what the rollout says of an agent that it gave up, because its apply, or the one that reverts it, has ended. Nothing
   * begins by that: a rollout that halted or ended stays so. Must be called in the lane.
   */
  async correct(nodeId: string): Promise<void> {
    const { db, operations, shutdown } = this.tools;
    const agent = this.agents.ofNode(nodeId);
    if (agent === undefined || !isUnknown(agent.row)) return;
    const applied = agent.row.operation_id;
    if (applied === null) return;
    const revert = await findRevert(db, { rolloutId: this.id, nodeId, applied });
    if (operations.isActive(revert ?? applied)) return;
    this.agents.noteHeard(agent);
    const end = await operations.ended(revert ?? applied, shutdown);
    const after = revert === null ? heardRow(agent.row, end) : revertedAfterAll(agent.row, end);
    if (after === null) return;
    this.conclude(agent, after);
    const word = correctedWord(this.row, after, this.leftUndone());
    if (word !== null) {
      this.progress(word);
      const { state } = word;
      if (state === 'succeeded' || state === 'reverted') {
        const told = `${after.name ?? nodeId} was silent, and has reported its end`;
        this.events.push(stateEvent(this.record(), `rollout.${state}`, { actor: SYSTEM, reason: told }));
      }
    }
    this.wake();
  }

  /** Returns the number of agents that keep a rollout from having succeeded, or a wave from being reverted. */
  private leftUndone(): number {
    const failed = this.agents.inStates('failed', 'unreachable');
    if (this.row.pace.onFailure !== 'revert') return failed.length;
    return this.agents
      .inStates('succeeded', 'failed')
      .filter(({ row }) => row.wave === this.row.passed + 1 && isApplied(row)).length;
  }

  /** Waits for the end of an apply. Throws `agent_timeout` on silence, except while agents come back after a restart. */
  private async ended(operationId: string) {
    const { operations, clock, returnsBy, shutdown } = this.tools;
    for (;;) {
      try {
        return await operations.ended(operationId, shutdown);
      } catch (error) {
        if (!isFault(error, 'agent_timeout') || clock.monotonic() >= returnsBy) throw error;
      }
    }
  }

  private failure(agent: RolloutMember, error: unknown): RolloutAgentRow {
    const operationId = agent.row.state === 'running' ? agent.row.operation_id : null;
    if (!isFault(error)) {
      const { stack } = error instanceof Error ? error : new Error(String(error));
      this.tools.logger.error('a rollout failed on an agent', {
        node_id: agent.row.node_id,
        operation_id: operationId,
        reason: messageOf(error),
        stack,
      });
    }
    return rowWithResult(agent.row, failedResult(agent.row, error, { head: this.row, operationId }));
  }

  /** Takes the end of an agent. One that was never reached waits again while its return is waited for. */
  private conclude(agent: RolloutMember, row: RolloutAgentRow): void {
    if (row.state === 'unreachable' && this.row.state === 'running' && this.deadlines.isAwaiting) {
      this.agents.makeReady(agent, { ...row, state: 'waiting', operation_id: null, summary: null, error: null });
    } else {
      if (row.state === 'succeeded') this.window += 1;
      else if (row.state !== 'skipped') this.window = firstWindow(this.bounds, this.row.pace.waves.length);
      this.agents.change(agent, { row, isStarting: false });
    }
    this.unsaved.add(agent);
  }

  /** True for an agent that was waited for and has come back after its time. A wave that is over left only such agents. */
  private isLate({ isRevoked, wasAbsent, row: { wave } }: RolloutMember): boolean {
    return !isRevoked && (wasAbsent || wave <= this.row.passed) && this.deadlines.isExpired;
  }

  /** Cancels an apply that is in flight, and tries again while the store is away. Returns false for one that has ended. */
  async cancelApply(operationId: string, context: RequestContext): Promise<boolean> {
    try {
      await this.tools.applies.cancel(operationId, context);
      this.uncancelled.delete(operationId);
      return true;
    } catch (error) {
      const isAway = isFault(error, 'store_unavailable');
      if (!isAway && !isFault(error, 'operation_finished')) throw error;
      if (isAway) this.uncancelled.set(operationId, context);
      else this.uncancelled.delete(operationId);
      return isAway;
    }
  }

  private async cancelAgain(operationId: string, context: RequestContext): Promise<void> {
    try {
      await this.cancelApply(operationId, context);
    } catch (error) {
      this.tools.logger.error('an apply could not be cancelled', {
        operation_id: operationId,
        reason: messageOf(error),
      });
    }
  }

  /** Stores everything that has changed, with the audit events in the last transaction. */
  private async save(): Promise<void> {
    while (!this.isSaved) {
      const agents = [...this.unsaved].slice(0, ROWS);
      const rows = agents.map(({ row }) => row);
      const isLast = agents.length === this.unsaved.size;
      const events = isLast ? [...this.events] : [];
      const { row } = this;
      const counts = this.agents.counts;
      await this.tools.uow.write(async (tx, emit) => {
        await updateRolloutAgents(tx, rows);
        if (isLast) await updateRollout(tx, this.id, { ...row, counts });
        for (const event of events) emit(event);
      });
      this.events.splice(0, events.length);
      if (isLast && this.row === row) this.isRowSaved = true;
      for (const [index, agent] of agents.entries()) {
        if (agent.row !== rows[index]) continue;
        this.unsaved.delete(agent);
        if (agent.row.state !== 'waiting') this.tell((one) => one.onAgent(agent));
      }
      if (isLast) this.tellPlace();
    }
  }

  private countsAfter(changed: readonly { readonly agent: RolloutMember; readonly row: RolloutAgentRow }[]) {
    const counts = { ...this.agents.counts };
    for (const { agent, row } of changed) {
      counts[agent.row.state] -= 1;
      counts[row.state] += 1;
    }
    return counts;
  }

  private context(): RequestContext {
    return { actor: this.row.actor, requestId: this.row.request_id, address: null };
  }

  private tellPlace(): void {
    const place = this.place();
    if (place === this.told) return;
    this.told = place;
    const record = this.record();
    this.tell((one) => one.onRollout(record));
  }

  private place(): string {
    const { state, passed, soaking_until, finished_at } = this.row;
    return [state, passed, soaking_until, finished_at].join();
  }

  private tell(news: (watcher: RunWatcher) => void): void {
    for (const watcher of [...this.watchers]) news(watcher);
  }
}

type RunWarnings = Awaited<ReturnType<Applies['start']>>['warnings'];

interface Command {
  readonly progress: Progress;
  readonly agents?: readonly AgentChange[];
  readonly event: DomainEvent;
}

const isApplied = ({ operation_id }: RolloutAgentRow): boolean => operation_id !== null;

/** A change of an agent that a request makes. */
export interface AgentChange {
  readonly agent: RolloutMember;
  readonly row: Partial<RolloutAgentRow>;
}

const stopped = (): Fault => new Fault('rollout_stopped', 'the rollout starts no further agent');
