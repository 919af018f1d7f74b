/** One rollout in memory: it asks `nextMove` what comes next, and has the parts beside it carry that out. */
import { setImmediate } from 'node:timers/promises';
import type { Rollout, RolloutRecord, RolloutResult } from '../../../src/contract/rollouts.js';
import { assertNever, messageOf } from '../../../src/kernel/fault.js';
import { type DomainEvent, type Party, type RequestContext, SYSTEM } from '../../core/domain-event.js';
import { valueChanges } from '../values/value-changes.js';
import { LateEnds } from './late-ends.js';
import { OfflineAgents } from './offline-agents.js';
import type { RolloutAgents, RolloutMember } from './rollout-agents.js';
import { RolloutApplies } from './rollout-applies.js';
import { RolloutCancels } from './rollout-cancels.js';
import { RolloutProgress, type RunWatcher } from './rollout-progress.js';
import { notStarted, rolloutView, stoppedError } from './rollout-results.js';
import { brokenOff, type Command, commanded, nextMove, passed, revertedEnd } from './rollout-state.js';
import type { RolloutAgentRow, RolloutRow } from './rollout-store.js';
import { headOf, stateEvent } from './rollout-target.js';
import { RolloutTicks } from './rollout-ticks.js';
import type { RunTools } from './run-tools.js';
import { failedChecks } from './wave-checks.js';
import { revertAgents } from './wave-reverts.js';

export class RolloutRun {
  private readonly tools: RunTools;
  private readonly progress: RolloutProgress;
  private readonly offline: OfflineAgents;
  private readonly cancels: RolloutCancels;
  private readonly lateEnds: LateEnds;
  private readonly applies: RolloutApplies;
  private readonly ticks: RolloutTicks;
  private isDue = false;
  private pump: Promise<void> | null = null;
  /** The health checks of the current wave while they run. */
  private checking: Promise<void> | null = null;
  /** The applies that revert the current wave while they run. */
  private reverting: Promise<void> | null = null;

  constructor(row: RolloutRow, agents: readonly RolloutAgentRow[], tools: RunTools) {
    const wake = () => this.wake();
    this.tools = tools;
    this.progress = new RolloutProgress(row, agents, tools);
    this.offline = new OfflineAgents(this.progress, tools);
    this.cancels = new RolloutCancels(tools);
    this.lateEnds = new LateEnds(this.progress, tools, wake);
    const { progress, offline, cancels, lateEnds } = this;
    const halt = (reason: string) => {
      tools.lanes
        .enter(this.id, () => this.halt(reason))
        .catch((error: unknown) => {
          tools.logger.error('a rollout could not be halted', { rollout_id: this.id, reason: messageOf(error) });
        });
    };
    this.applies = new RolloutApplies({ progress, offline, cancels, lateEnds, halt }, tools, wake);
    this.ticks = new RolloutTicks(tools.shutdown);
  }

  get id(): string {
    return this.progress.row.rollout_id;
  }

  get state(): RolloutRow['state'] {
    return this.progress.row.state;
  }

  /** Hash of the values that it brings with it; null for none. */
  get valuesSha256(): string | null {
    return this.progress.row.values_sha256;
  }

  get agents(): RolloutAgents {
    return this.progress.agents;
  }

  /** The party on whose behalf agents are applied. */
  get actor(): Party {
    return this.progress.row.actor;
  }

  /** Warnings of the applies that this process has started, by operation ID. */
  get warnings(): RolloutApplies['warnings'] {
    return this.applies.warnings;
  }

  /** True when the rollout has ended or halted, no agent is in flight, and all of it is stored. */
  get isSettled(): boolean {
    const { row, agents, isSaved } = this.progress;
    return (row.finished_at !== null || row.state === 'halted') && agents.inFlight === 0 && isSaved;
  }

  /** Reads which stored values have changed since it began. */
  async readValueChanges(): Promise<void> {
    const { rollout_id: after, started_at: from, finished_at } = this.progress.row;
    const until = finished_at === null ? null : finished_at + 1;
    this.progress.noteValueChanges(await valueChanges(this.tools.db, { from, after, until }));
  }

  /** Returns the record for a list, without what is read for one rollout alone. */
  head(): RolloutRecord {
    const { value_changes: _, ...head } = this.record();
    return head;
  }

  record(): RolloutRecord {
    return this.progress.record();
  }

  /** Returns the answer to an apply. Agents that still wait in a rollout that has halted count as skipped. */
  result(): Rollout {
    const results = this.agents.all.flatMap(({ row }) => this.resultOf(row) ?? []);
    return rolloutView(headOf(this.record()), results);
  }

  resultOf({ state, node_id, name, operation_id, summary, error }: RolloutAgentRow): RolloutResult | null {
    const { state: own, reason } = this.progress.row;
    const agent = { node_id, name, operation_id, summary, error };
    if (state === 'running') return null;
    if (state === 'reverted') {
      return { ...agent, status: 'failed', error: stoppedError(`reverted: ${reason ?? 'the rollout failed'}`) };
    }
    if (state !== 'waiting') return { ...agent, status: state };
    if (own !== 'halted') return null;
    return { ...agent, status: 'skipped', error: notStarted(reason ?? 'the rollout has halted') };
  }

  watch(watcher: RunWatcher): () => void {
    return this.progress.watch(watcher);
  }

  /** Follows the applies that are in flight, and takes the next steps. */
  start(): void {
    for (const agent of this.agents.inStates('running')) {
      void this.applies.follow(agent, []);
      // The orchestrator may have ended between the cancellation of the rollout and those of its applies.
      const { operation_id: id } = agent.row;
      if (this.state === 'cancelled' && id !== null) {
        this.cancels.add(id, { ...this.progress.context(), actor: SYSTEM });
      }
    }
    this.lateEnds.noteAll();
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

  /**
   * Carries out a command, with its audit event in the same transaction. Does nothing if the rollout is as the command wants it. Must
   * be called in the lane. Throws `rollout_finished` or `rollout_in_progress`.
   */
  async command(command: Command, event: (record: RolloutRecord) => DomainEvent): Promise<void> {
    const change = commanded(this.progress.situation, command);
    if (change === null) return;
    await this.progress.command(change, event(this.record()));
    if (this.state === 'running') this.offline.takeBack();
    this.wake();
  }

  /** Starts no further agent; does nothing unless agents may start. Must be called in the lane. */
  halt(reason: string): Promise<void> {
    return this.command({ do: 'halt', reason }, (record) =>
      stateEvent(record, 'rollout.halted', { actor: SYSTEM, reason }),
    );
  }

  /** Returns the time in Unix milliseconds until which a retry that begins now waits for offline agents. */
  retryExpiry(): number | null {
    const { whenOnlineSecs } = this.progress.row.pace;
    return whenOnlineSecs === null ? null : this.tools.clock.now() + whenOnlineSecs * 1000;
  }

  /** Cancels an apply that is in flight. Returns false for one that has ended. */
  cancelApply(operationId: string, context: RequestContext): Promise<boolean> {
    return this.cancels.cancel(operationId, context);
  }

  /** Returns true if an apply of this agent counts as failed because its end was not known. */
  gaveUp(nodeId: string): boolean {
    return this.lateEnds.isAwaited(nodeId);
  }

  /** Corrects what the rollout says of an agent that it gave up. Must be called in the lane. */
  correct(nodeId: string): Promise<void> {
    return this.lateEnds.correct(nodeId);
  }

  /** Notes that an agent is connected, and lets it start if it was waited for. */
  agentReady(nodeId: string): void {
    const agent = this.agents.ofNode(nodeId);
    if (agent === undefined || agent.row.state !== 'waiting' || agent.place === 'ready') return;
    if (!this.progress.deadlines.isExpired) this.agents.makeReady(agent);
    else if (this.state === 'running') this.offline.miss(agent);
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
    const { applies, agents, cancels, progress, ticks } = this;
    ticks.tick();
    cancels.tick();
    applies.tick();
    const isGivenUp = agents.giveUpSilent(this.tools.clock.monotonic());
    const isCheckDue = progress.deadlines.isSoaked && this.checking === null;
    if (isCheckDue || isGivenUp || !progress.isSaved || applies.isStalled || agents.absent.length > 0) {
      applies.isStalled = false;
      this.wake();
    }
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
      if (this.isSettled) this.progress.tell((one) => one.onSettled());
    }
  }

  private async advance(): Promise<void> {
    if (this.tools.shutdown.aborted) return;
    this.offline.placeAll();
    this.takeMoves();
    await this.progress.save();
    this.startReady();
  }

  /** Takes all moves but starts. */
  private takeMoves(): void {
    for (;;) {
      const move = nextMove(this.progress.situation);
      switch (move.do) {
        case 'start':
        case 'wait':
          return;
        case 'soak':
          this.progress.beginSoak();
          return;
        case 'check':
          this.checking ??= this.checkWave().finally(() => {
            this.checking = null;
          });
          return;
        case 'revert':
          this.reverting ??= this.revertWave().finally(() => {
            this.reverting = null;
          });
          return;
        case 'change':
          this.progress.take(move.change);
          break;
        default:
          assertNever(move);
      }
    }
  }

  /** Starts as many agents as the walk allows. An offline agent gets its place or its end instead. */
  private startReady(): void {
    const { agents, applies, offline, progress } = this;
    while (this.state === 'running' && !applies.isStalled) {
      const move = nextMove(progress.situation);
      if (move.do !== 'start') {
        if (move.do !== 'wait') this.isDue = true;
        return;
      }
      const agent = agents.next(progress.row.passed);
      if (agent === undefined) return;
      if (!agent.isRevoked && offline.isOffline(agent)) offline.place(agent);
      else void applies.begin(agent);
      if (!progress.isSaved) this.isDue = true;
    }
  }

  /** Runs the health checks of the current wave, and leaves it when all are well. Never rejects. */
  private async checkWave(): Promise<void> {
    const { progress, ticks } = this;
    const { lanes, logger, shutdown, verify } = this.tools;
    const { soakEnd } = progress.deadlines;
    const { passed: wave } = progress.row;
    const agents = this.agents.inStates('succeeded').filter(({ row }) => row.wave === wave + 1);
    try {
      const failed = await failedChecks(agents, progress.bounds.concurrency, { verify, ticks, shutdown });
      if (shutdown.aborted) return;
      await lanes.enter(this.id, async () => {
        // A rollout that does not run checks again when it is resumed; one that was retried is in another soak.
        const isCurrent =
          this.state === 'running' && progress.row.passed === wave && progress.deadlines.soakEnd === soakEnd;
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
    const { progress } = this;
    for (const row of failed) {
      const agent = agents.find(({ position }) => position === row.position);
      // A retry or another end has replaced the result that was checked.
      if (agent?.row.state === 'succeeded' && agent.row.operation_id === row.operation_id)
        progress.conclude(agent, row);
    }
    const wave = progress.row.passed + 1;
    const reason = `health checks failed on ${failed.length} of ${agents.length} agents of wave ${wave}`;
    progress.take(failed.length === 0 ? passed(progress.situation) : brokenOff(progress.situation, reason));
  }

  /** Brings the agents of the current wave back to what they had before, and ends the rollout. Never rejects. */
  private async revertWave(): Promise<void> {
    const { applies, progress, ticks } = this;
    const { lanes, logger, shutdown } = this.tools;
    const wave = progress.row.passed + 1;
    const agents = this.agents
      .inStates('succeeded', 'failed')
      .filter(({ row }) => row.wave === wave && row.operation_id !== null);
    try {
      const order = {
        rolloutId: this.id,
        context: progress.context(),
        agents,
        concurrency: progress.bounds.concurrency,
        onEnd: (agent: RolloutMember, row: RolloutAgentRow) => {
          progress.conclude(agent, row);
          this.wake();
        },
      };
      await revertAgents(order, { ...this.tools, ticks, ended: (id) => applies.ended(id) });
      if (!shutdown.aborted) await lanes.enter(this.id, async () => this.endReverted(agents));
    } catch (error) {
      if (shutdown.aborted) return;
      logger.error('a wave could not be reverted, it is tried again', {
        rollout_id: this.id,
        reason: messageOf(error),
      });
      await ticks.next();
    }
    this.wake();
  }

  /** Must be called in the lane. */
  private endReverted(agents: readonly RolloutMember[]): void {
    const { progress } = this;
    const left = agents.filter(({ row }) => row.state !== 'reverted').length;
    const hasReverted = this.agents.inStates('reverted').some(({ row }) => row.wave === progress.row.passed + 1);
    progress.take(revertedEnd(progress.situation, { applied: agents.length, left, hasReverted }));
  }
}
