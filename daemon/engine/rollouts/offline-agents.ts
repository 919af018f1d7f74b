/** Agents of a rollout that are offline: whether they are waited for, left out, or unreachable. */
import { isNodeId } from '../../../src/kernel/ids.js';
import type { RolloutMember } from './rollout-agents.js';
import type { RolloutProgress } from './rollout-progress.js';
import { offlineRow } from './rollout-results.js';
import type { RunTools } from './run-tools.js';

export class OfflineAgents {
  private readonly progress: RolloutProgress;
  private readonly tools: Pick<RunTools, 'clock' | 'link' | 'returnsBy'>;

  constructor(progress: RolloutProgress, tools: Pick<RunTools, 'clock' | 'link' | 'returnsBy'>) {
    this.progress = progress;
    this.tools = tools;
  }

  isOffline({ row: { node_id } }: RolloutMember): boolean {
    return !isNodeId(node_id) || !this.tools.link.isConnected(node_id);
  }

  /** True for an agent that was waited for and has come back after its time. A wave that is over left only such agents. */
  isLate({ isRevoked, wasAbsent, row: { wave } }: RolloutMember): boolean {
    const { deadlines, row } = this.progress;
    return !isRevoked && (wasAbsent || wave <= row.passed) && deadlines.isExpired;
  }

  /** Lets agents start that have returned while the rollout did not run, and whose time a retry has prolonged. */
  takeBack(): void {
    const { agents, deadlines } = this.progress;
    if (deadlines.isExpired) return;
    for (const agent of agents.absent) if (!this.isOffline(agent)) agents.makeReady(agent);
  }

  /** Gives them another place when the time in which they were awaited is over. */
  placeAll(): void {
    if (this.progress.row.state !== 'running') return;
    for (const agent of this.progress.agents.absent) this.place(agent);
  }

  /** Decides what becomes of an offline agent. */
  place(agent: RolloutMember): void {
    const { agents, deadlines } = this.progress;
    const { clock, returnsBy } = this.tools;
    if (deadlines.isExpired) this.miss(agent);
    else if (clock.monotonic() < returnsBy) agents.change(agent, { place: 'awaited', isStarting: false });
    else if (deadlines.isAwaiting) agents.change(agent, { place: 'away', isStarting: false });
    else this.miss(agent);
  }

  /** Leaves an agent out, or calls it unreachable. */
  miss(agent: RolloutMember): void {
    this.progress.conclude(agent, offlineRow(agent.row, this.progress.row.pace.skipOffline));
  }
}
