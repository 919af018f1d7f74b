/** The applies of a rollout: begins one on an agent, follows it to its end, and waits for agents that another operation has. */
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import { type Applies, refuseStale } from '../applies/applies.js';
import type { SentModule } from '../modules/current-modules.js';
import { sourcesOfRollout } from '../modules/source-store.js';
import type { EndedOperation } from '../operations/operation-reader.js';
import { findOneOffValues, type GivenOneOff } from '../values/one-off-store.js';
import type { LateEnds } from './late-ends.js';
import type { OfflineAgents } from './offline-agents.js';
import type { RolloutMember } from './rollout-agents.js';
import type { RolloutCancels } from './rollout-cancels.js';
import type { RolloutProgress } from './rollout-progress.js';
import { failedResult, finishedResult, rowWithResult, stoppedRow } from './rollout-results.js';
import { beginRolloutAgent, type RolloutAgentRow } from './rollout-store.js';
import { retriesAfter } from './rollout-ticks.js';
import type { RunTools } from './run-tools.js';

type RunWarnings = Awaited<ReturnType<Applies['start']>>['warnings'];

interface Parts {
  readonly progress: RolloutProgress;
  readonly offline: OfflineAgents;
  readonly lateEnds: LateEnds;
  readonly cancels: RolloutCancels;
  /** Halts the rollout. Never rejects. */
  readonly halt: (reason: string) => void;
}

export class RolloutApplies {
  /** Warnings of the applies that this process has started, by operation ID. */
  readonly warnings = new Map<string, RunWarnings>();
  /** True after the store has refused an apply: no other one starts before the next tick. */
  isStalled = false;
  private readonly parts: Parts;
  private readonly tools: RunTools;
  /** Lets the rollout take its next steps. */
  private readonly wake: () => void;
  /** Modules that the rollout carries as texts; null before its first apply in this process. */
  private sent: readonly SentModule[] | null = null;
  /** Values that the rollout brings with it; undefined before its first apply in this process. */
  private oneOff: GivenOneOff | null | undefined;

  constructor(parts: Parts, tools: RunTools, wake: () => void) {
    this.parts = parts;
    this.tools = tools;
    this.wake = wake;
  }

  /** Begins the apply of an agent that was taken from those that are ready, and follows it. Never rejects. */
  async begin(agent: RolloutMember): Promise<void> {
    const { progress, offline, cancels } = this.parts;
    const { applies, leases, mayApply, starting, shutdown } = this.tools;
    const { agents, row: rollout } = progress;
    const { row } = agent;
    const { order } = rollout;
    agents.change(agent, { isStarting: true });
    const request = {
      nodeId: row.node_id,
      modules: order.modules,
      limits: order,
      keepsSnapshot: rollout.pace.onFailure === 'revert',
      expect: row.expect,
      rollout: {
        id: rollout.rollout_id,
        assignment: rollout.assignment,
        onStored: async (tx: Parameters<typeof beginRolloutAgent>[0], operationId: string) => {
          const place = { rolloutId: rollout.rollout_id, position: agent.position };
          if (!(await beginRolloutAgent(tx, place, operationId))) throw stopped();
        },
      },
    };
    try {
      const started = await leases.whenThereIsRoom(
        () =>
          starting.enter(async () => {
            if (progress.row.state !== 'running' || shutdown.aborted) throw stopped();
            const { actor } = progress.row;
            if (!(await mayApply(actor, row.node_id))) {
              this.parts.halt(`operator ${actor.name} may no longer apply to ${row.name ?? row.node_id}`);
              throw stopped();
            }
            if (offline.isLate(agent)) throw new Fault('agent_not_connected', 'the agent came back too late');
            const own = { sent: await this.sentModules(), oneOff: await this.oneOffValues() };
            return applies.start({ ...request, ...own }, progress.context());
          }),
        shutdown,
      );
      const operationId = started.operation.id;
      const begun = { ...row, state: 'running', operation_id: operationId, summary: null, error: null } as const;
      agents.change(agent, { row: begun, isStarting: false });
      progress.tell((one) => one.onBegun(agent, operationId));
      if (progress.row.state === 'cancelled') await cancels.cancel(operationId, progress.context());
      await this.follow(agent, started.warnings);
    } catch (error) {
      this.notBegun(agent, error);
    }
  }

  /** Waits for the end of an agent's apply and takes its result. Never rejects. */
  async follow(agent: RolloutMember, warnings: RunWarnings): Promise<void> {
    const { progress, lateEnds } = this.parts;
    const { operation_id: operationId } = agent.row;
    if (operationId === null) return;
    if (warnings.length > 0) this.warnings.set(operationId, warnings);
    try {
      const end = await this.ended(operationId);
      refuseStale(end);
      // Something that the orchestrator did not begin, such as an apply on the machine itself.
      const isBusy = end.error?.code === 'operation_in_progress' && agent.busyTicks < retriesAfter(end.error.code);
      if (isBusy && end.error !== null) progress.awaitOther(agent, { ...end.error, hint: null });
      else progress.conclude(agent, rowWithResult(agent.row, finishedResult(agent.row, end)));
    } catch (error) {
      if (this.tools.shutdown.aborted) return;
      progress.conclude(agent, this.failure(agent, error));
      lateEnds.note(agent);
    }
    this.wake();
  }

  /** Waits for the end of an apply. Throws `agent_timeout` on silence, except while agents come back after a restart. */
  async ended(operationId: string): Promise<EndedOperation> {
    const { operations, clock, returnsBy, shutdown } = this.tools;
    for (;;) {
      try {
        return await operations.ended(operationId, shutdown);
      } catch (error) {
        if (!isFault(error, 'agent_timeout') || clock.monotonic() >= returnsBy) throw error;
      }
    }
  }

  /** Looks at the agents that another operation has: those that are free may start. */
  tick(): void {
    const { agents } = this.parts.progress;
    for (const agent of agents.busy) {
      agents.change(agent, { busyTicks: agent.busyTicks + 1 });
      const { node_id } = agent.row;
      const isTaken = isNodeId(node_id) && this.tools.leases.isBusy(node_id);
      if (isTaken && agent.busyTicks < retriesAfter('operation_in_progress')) continue;
      agents.makeReady(agent);
      this.wake();
    }
  }

  private async sentModules(): Promise<readonly SentModule[]> {
    const { db, revive } = this.tools;
    this.sent ??= await revive(await sourcesOfRollout(db, this.parts.progress.row.rollout_id));
    return this.sent;
  }

  private async oneOffValues(): Promise<GivenOneOff | null> {
    if (this.oneOff === undefined) {
      this.oneOff = await findOneOffValues(this.tools.db, this.parts.progress.row.values_sha256);
    }
    return this.oneOff;
  }

  /** Handles an agent whose apply was not stored. */
  private notBegun(agent: RolloutMember, error: unknown): void {
    if (this.tools.shutdown.aborted) return;
    const { progress, offline } = this.parts;
    if (isFault(error, 'rollout_stopped')) {
      const { reason, state } = progress.row;
      // A cancellation has ended the row that memory still held as starting.
      if (state === 'cancelled') progress.conclude(agent, stoppedRow(agent.row, reason ?? ''));
      else progress.agents.makeReady(agent);
    } else if (isFault(error, 'agent_not_connected')) {
      offline.place(agent);
    } else if (isFault(error, 'store_unavailable')) {
      this.isStalled = true;
      progress.agents.makeReady(agent);
    } else if (isFault(error, 'operation_in_progress') && agent.busyTicks < retriesAfter(error.code)) {
      progress.awaitOther(agent, { code: error.code, message: error.message, hint: error.hint ?? null });
    } else {
      progress.conclude(agent, this.failure(agent, error));
    }
    this.wake();
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
    return rowWithResult(agent.row, failedResult(agent.row, error, { head: this.parts.progress.row, operationId }));
  }
}

const stopped = (): Fault => new Fault('rollout_stopped', 'the rollout starts no further agent');
