/** Brings the agents of a wave back to what they had before the rollout. */

import { Fault, isFault } from '../../../src/kernel/fault.js';
import type { Core } from '../../core/core.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { Applies } from '../applies/applies.js';
import { NO_LIMITS } from '../applies/apply-limits.js';
import { inWorkers } from '../lanes.js';
import type { EndedOperation } from '../operations/operation-reader.js';
import { appliedBefore, findRevert, newestApplied } from '../operations/operation-store.js';
import type { Leases } from '../runs/leases.js';
import type { RolloutMember } from './rollout-agents.js';
import { finishedResult, rowWithResult } from './rollout-results.js';
import type { RolloutAgentRow } from './rollout-store.js';
import { type RolloutTicks, retriesAfter } from './rollout-ticks.js';

export interface RevertTools extends Pick<Core, 'clock' | 'db'> {
  readonly applies: Applies;
  readonly leases: Leases;
  readonly ticks: RolloutTicks;
  /** Waits for the end of an apply. Throws `agent_timeout`. */
  readonly ended: (operationId: string) => Promise<EndedOperation>;
  /** Aborted when the orchestrator stops. */
  readonly shutdown: AbortSignal;
  /** Monotonic milliseconds until which offline agents are expected back. */
  readonly returnsBy: number;
}

interface RevertOrder {
  readonly rolloutId: string;
  readonly context: RequestContext;
  /** Agents to which the rollout has applied. */
  readonly agents: readonly RolloutMember[];
  /** Maximum number of agents at a time. */
  readonly concurrency: number;
  /** Called once per agent: its state is `reverted`, or `failed` with the reason. Not called after the orchestrator stops. */
  readonly onEnd: (agent: RolloutMember, row: RolloutAgentRow) => void;
}

/**
 * Reverts all agents. After a restart, it follows the applies that have begun before. Throws what keeps the store from taking a
 * revert; calling it again is safe.
 */
export function revertAgents({ agents, concurrency, onEnd, ...order }: RevertOrder, tools: RevertTools): Promise<void> {
  return inWorkers(agents, concurrency, async (agent) => {
    if (tools.shutdown.aborted) return;
    const row = await revertedRow(agent.row, order, tools);
    if (!tools.shutdown.aborted) onEnd(agent, row);
  });
}

type Requester = Pick<RevertOrder, 'rolloutId' | 'context'>;

async function revertedRow(row: RolloutAgentRow, requester: Requester, tools: RevertTools): Promise<RolloutAgentRow> {
  try {
    const operationId = await beginRevert(row, requester, tools);
    const result = finishedResult(row, await tools.ended(operationId));
    if (result.status === 'succeeded') return { ...rowWithResult(row, result), state: 'reverted' };
    return notReverted(row, result.error?.message ?? 'its apply failed');
  } catch (error) {
    // A revert that the store could not take is tried again as a whole.
    if (!isFault(error) || error.code === 'store_unavailable') throw error;
    return notReverted(row, error.message, error.code);
  }
}

/** Returns the ID of the apply that reverts an agent, which it starts unless that has happened. */
async function beginRevert(
  { node_id: nodeId, operation_id: applied }: RolloutAgentRow,
  { rolloutId, context }: Requester,
  { db, applies, leases, shutdown, clock, returnsBy, ticks }: RevertTools,
): Promise<string> {
  if (applied === null) throw new Error('an agent without an apply has nothing to revert');
  const begun = await findRevert(db, { rolloutId, nodeId, applied });
  if (begun !== null) return begun;
  const before = await appliedBefore(db, { nodeId, operationId: applied });
  const request = {
    nodeId,
    modules: [],
    to: before ?? ({ nothing: true } as const),
    putsBack: applied,
    // A revert does not wait for a window, which may have closed meanwhile.
    limits: { ...NO_LIMITS, allowRemovals: Number.MAX_SAFE_INTEGER, outsideWindow: true },
    expect: null,
    rollout: { id: rolloutId, assignment: null, onStored: async () => undefined },
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      const start = async () => {
        // Later applies of others must stay, also those that were made while this one waited.
        const newest = await newestApplied(db, nodeId, applied);
        if (newest !== null && newest.operation_id !== applied) throw appliedSince(newest.operation_id);
        return applies.start(request, context);
      };
      return (await leases.whenThereIsRoom(start, shutdown)).operation.id;
    } catch (error) {
      const retries = isFault(error) ? retriesAfter(error.code) : 0;
      const mayReturn = isFault(error, 'agent_not_connected') && clock.monotonic() < returnsBy;
      if (shutdown.aborted || (attempt > retries && !mayReturn)) throw error;
    }
    await ticks.next();
  }
}

const notReverted = (row: RolloutAgentRow, why: string, code?: string): RolloutAgentRow => ({
  ...row,
  state: 'failed',
  error: {
    // The end of a revert that is not known may become known.
    code: code === 'agent_timeout' ? code : (row.error?.code ?? 'rollout_stopped'),
    message: `it could not be reverted: ${why}`,
    hint: `go back by hand: orch apply ${row.name ?? row.node_id} --to OPERATION`,
  },
});

const appliedSince = (operationId: string): Fault =>
  new Fault('rollout_stopped', `the agent was applied to since, by operation ${operationId}`);
