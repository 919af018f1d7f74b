/** Plans on many agents. They change nothing, so nothing about them is stored: a restart ends them. */
import type { RolloutResult } from '../../../src/contract/rollouts.js';
import { isFault, messageOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { walk } from '../../../src/kernel/walk-agents.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { Plans } from '../applies/plans.js';
import type { SentModule } from '../modules/current-modules.js';
import type { Leases } from '../runs/leases.js';
import type { GivenOneOff } from '../values/one-off-store.js';
import { type AgentResult, failedResult, finishedResult, skippedResult } from './rollout-results.js';
import type { RolloutPace } from './rollout-store.js';
import type { RolloutHead } from './rollout-target.js';

/** Receives the progress of plans. */
export interface PlanWatcher {
  readonly onStarted: (id: string, agents: number) => void;
  /** Receives each resource of each agent as it ends; null to receive none. */
  readonly onResource: ((agent: Pick<AgentRow, 'node_id' | 'name'>, result: ResourceResult) => void) | null;
  /** Receives each agent's complete result. */
  readonly onAgent: (result: AgentResult) => Promise<void>;
}

interface PlanTools {
  readonly logger: Logger;
  readonly leases: Leases;
  readonly plans: Plans;
}

interface Planning {
  readonly head: RolloutHead;
  readonly agents: readonly AgentRow[];
  readonly pace: Pick<RolloutPace, 'concurrency' | 'canary' | 'maxFailures'>;
  readonly isConnected: (agent: AgentRow) => boolean;
  readonly modules: readonly string[];
  readonly sent: readonly SentModule[];
  readonly oneOff: GivenOneOff | null;
  readonly signal: AbortSignal;
  readonly watcher: PlanWatcher | null;
}

/** Plans on every agent within the bounds; returns their results in order. Stops early when the signal is aborted. */
export function planAgents(
  tools: PlanTools,
  planning: Planning,
  context: RequestContext,
): Promise<readonly RolloutResult[]> {
  const { head, agents, pace, isConnected, modules, sent, oneOff, signal, watcher } = planning;
  const run = async (agent: AgentRow): Promise<AgentResult> => {
    const onResult = (result: ResourceResult) => watcher?.onResource?.(agent, result);
    const what = { nodeId: agent.node_id, modules, sent, oneOff, isOfRollout: true };
    const order = { ...what, signal, onStarted: () => undefined, onResult };
    try {
      const result = await tools.leases.whenThereIsRoom(() => tools.plans.plan(order, context), signal);
      return { ...finishedResult(agent, result), result: watcher === null ? null : result };
    } catch (error) {
      if (!isFault(error)) {
        const { stack } = error instanceof Error ? error : new Error(String(error));
        tools.logger.error('a plan failed on an agent', { node_id: agent.node_id, reason: messageOf(error), stack });
      }
      return { ...failedResult(agent, error, { head, operationId: null }), result: null };
    }
  };
  return walk<AgentRow, AgentResult, RolloutResult>({
    agents,
    ...pace,
    isConnected,
    stopReason: () => (signal.aborted ? 'not started: the caller went away' : null),
    run,
    skip: (agent, why) => ({ ...skippedResult(agent, why), result: null }),
    onResult: async (result) => {
      await watcher?.onAgent(result);
      const { result: _, ...kept } = result;
      return kept;
    },
  });
}
