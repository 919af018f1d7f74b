/** Agents that a rollout gave up because they fell silent: they count as in flight for a time, and their late ends correct it. */
import { isFault, messageOf } from '../../../src/kernel/fault.js';
import type { EndedOperation } from '../operations/operation-reader.js';
import { findRevert } from '../operations/operation-store.js';
import type { RolloutMember } from './rollout-agents.js';
import type { RolloutProgress } from './rollout-progress.js';
import { finishedResult, rowWithResult } from './rollout-results.js';
import { corrected } from './rollout-state.js';
import type { RolloutAgentRow } from './rollout-store.js';
import type { RunTools } from './run-tools.js';

/** Milliseconds for which an agent that fell silent in its apply counts as in flight. */
const IN_FLIGHT_WHEN_SILENT = 15 * 60_000;

/** Codes of errors that say that the end of an apply is not known. */
const UNKNOWN_ENDS: readonly string[] = ['agent_timeout', 'interrupted'];

/** Returns true for an agent that counts as failed because the end of its apply, or of its revert, is not known. */
const isUnknown = ({ state, error }: Pick<RolloutAgentRow, 'state' | 'error'>): boolean =>
  state === 'failed' && error !== null && UNKNOWN_ENDS.includes(error.code);

type Tools = Pick<RunTools, 'clock' | 'db' | 'lanes' | 'logger' | 'operations' | 'shutdown'>;

export class LateEnds {
  private readonly progress: RolloutProgress;
  private readonly tools: Tools;
  /** Lets the rollout take its next steps. */
  private readonly wake: () => void;

  constructor(progress: RolloutProgress, tools: Tools, wake: () => void) {
    this.progress = progress;
    this.tools = tools;
    this.wake = wake;
  }

  /** Returns true if an apply of this agent counts as failed because its end was not known. */
  isAwaited(nodeId: string): boolean {
    const agent = this.progress.agents.ofNode(nodeId);
    return agent !== undefined && isUnknown(agent.row);
  }

  /** Notes the agents whose ends are not known after a restart. */
  noteAll(): void {
    for (const agent of this.progress.agents.inStates('failed')) this.note(agent);
  }

  /** Lets an agent count as in flight if its end is not known, for a time. */
  note(agent: RolloutMember): void {
    const { node_id: nodeId, operation_id: operationId, error } = agent.row;
    const { clock, operations } = this.tools;
    if (operationId === null || !isUnknown(agent.row)) return;
    if (operations.isActive(operationId)) {
      this.progress.agents.noteSilent(agent, clock.monotonic() + IN_FLIGHT_WHEN_SILENT);
    } else if (error?.code === 'agent_timeout') void this.correctSoon(nodeId);
  }

  /**
   * Corrects what the rollout says of an agent that it gave up, because its apply, or the one that reverts it, has ended. Must be
   * called in the lane.
   */
  async correct(nodeId: string): Promise<void> {
    const { agents, row } = this.progress;
    const { db, operations, shutdown } = this.tools;
    const agent = agents.ofNode(nodeId);
    if (agent === undefined || !isUnknown(agent.row)) return;
    const applied = agent.row.operation_id;
    if (applied === null) return;
    const revert = await findRevert(db, { rolloutId: row.rollout_id, nodeId, applied });
    if (operations.isActive(revert ?? applied)) return;
    agents.noteHeard(agent);
    // The agent has left its place in flight, even if its end changes nothing else.
    this.wake();
    const end = await operations.ended(revert ?? applied, shutdown);
    const after = revert === null ? heardRow(agent.row, end) : revertedRow(agent.row, end);
    if (after === null) return;
    this.progress.conclude(agent, after);
    const change = corrected(this.progress.row, after, this.left());
    if (change !== null) this.progress.take(change);
  }

  private async correctSoon(nodeId: string): Promise<void> {
    const { lanes, logger, shutdown } = this.tools;
    const { rollout_id } = this.progress.row;
    try {
      await lanes.enter(rollout_id, () => this.correct(nodeId));
    } catch (error) {
      if (shutdown.aborted || isFault(error, 'shutting_down')) return;
      logger.error('a rollout could not be corrected', { rollout_id, node_id: nodeId, reason: messageOf(error) });
    }
  }

  /** Returns the number of agents that keep a rollout from having succeeded, or a wave from being reverted. */
  private left(): number {
    const { agents, row } = this.progress;
    if (row.pace.onFailure !== 'revert') return agents.inStates('failed', 'unreachable').length;
    return agents
      .inStates('succeeded', 'failed')
      .filter(({ row: { wave, operation_id } }) => wave === row.passed + 1 && operation_id !== null).length;
  }
}

/** Returns the row of an agent whose apply has ended after all; null if the end says nothing new. */
function heardRow(row: RolloutAgentRow, end: EndedOperation): RolloutAgentRow | null {
  const after = rowWithResult(row, finishedResult(row, end));
  return isUnknown(after) ? null : after;
}

/** Returns the row of an agent whose revert has ended after all; null if it did not succeed. */
const revertedRow = (row: RolloutAgentRow, { status }: EndedOperation): RolloutAgentRow | null =>
  status === 'succeeded' ? { ...row, state: 'reverted', error: null } : null;
