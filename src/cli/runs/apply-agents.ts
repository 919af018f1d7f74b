/** Applies to agents and follows it; Ctrl-C leaves it running, twice cancels it. */
import type { ApiClient } from '../../client/api-client.js';
import type { Context } from '../context.js';
import type { AgentRun } from './agent-run.js';
import type { ApplyTarget } from './confirm-apply.js';
import { followRun } from './follow-run.js';
import { leaveOrCancel } from './leave-or-cancel.js';
import { runAgents, type Work } from './run-agents.js';

export interface ApplyOrder extends Pick<Work, 'pace' | 'fleet'> {
  readonly targets: readonly ApplyTarget[];
  readonly modules: readonly string[];
  readonly allowRemovals: number | null;
}

export async function applyAgents(context: Context, api: ApiClient, order: ApplyOrder): Promise<readonly AgentRun[]> {
  const running = new Set<string>();
  const left = leaveOrCancel(context, api, running, order.targets.length > 1);
  try {
    const { targets, pace, fleet } = order;
    const work = runAgents(context, {
      kind: 'apply',
      agents: targets.map(({ agent }) => agent),
      ...(pace === undefined ? {} : { pace }),
      ...(fleet === undefined ? {} : { fleet }),
      halted: () => (left.interrupted ? 'not started: interrupted' : null),
      run: async (agent, progress) => {
        const stream = api.stream('applyAgent', {
          params: { node_id: agent.node_id },
          body: bodyFor(
            order,
            targets.find((target) => target.agent === agent),
          ),
          signal: left.signal,
        });
        let operation: string | null = null;
        const result = await followRun(stream, {
          started: (id) => {
            operation = id;
            running.add(id);
          },
          resource: (resource) => progress.resource(agent, resource),
        });
        if (operation !== null) running.delete(operation);
        return result;
      },
    });
    return await Promise.race([work, left.promise]);
  } finally {
    left.stop();
  }
}

const bodyFor = ({ modules, allowRemovals }: ApplyOrder, target: ApplyTarget | undefined) => ({
  modules: [...(target?.modules ?? modules)],
  allow_removals: allowRemovals,
  expect: target?.planHash ?? null,
});
