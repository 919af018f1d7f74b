/** Runs the health checks of the agents of a wave after its soak. */

import type { Verdict, Verifications } from '../applies/verifications.js';
import { inWorkers } from '../lanes.js';
import type { RolloutMember } from './rollout-agents.js';
import type { RolloutAgentRow } from './rollout-store.js';
import { type RolloutTicks, retriesAfter } from './rollout-ticks.js';

export interface CheckTools {
  /** Runs the health checks of what was applied last to an agent. */
  readonly verify: Verifications['verify'];
  readonly ticks: RolloutTicks;
  /** Aborted when the orchestrator stops. */
  readonly shutdown: AbortSignal;
}

/**
 * Returns new rows for the agents that fail their health checks. The result means nothing once the orchestrator stops.
 * @param concurrency maximum number of agents at a time
 */
export async function failedChecks(
  agents: readonly RolloutMember[],
  concurrency: number,
  tools: CheckTools,
): Promise<readonly RolloutAgentRow[]> {
  const failed: RolloutAgentRow[] = [];
  await inWorkers(agents, concurrency, async ({ row }) => {
    const { ok, error } = await verdictOn(row.node_id, tools);
    const shown = error ?? { code: 'verify_failed', message: 'a health check failed' };
    if (!ok) failed.push({ ...row, state: 'failed', error: { ...shown, hint: null } });
  });
  return failed;
}

/** Returns the verdict on one agent. Waits a while for one that is busy or has just lost its connection. */
async function verdictOn(nodeId: string, { verify, ticks, shutdown }: CheckTools): Promise<Verdict> {
  for (let attempt = 1; ; attempt += 1) {
    const verdict = await verify(nodeId, shutdown);
    if (verdict.ok || attempt > retriesAfter(verdict.error?.code) || shutdown.aborted) return verdict;
    await ticks.next();
  }
}
