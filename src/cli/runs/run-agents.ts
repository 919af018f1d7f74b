/** Plans or applies on several agents at once, and tells how it goes. */
import type { ApiClient } from '../../client/api-client.js';

import type { Agent } from '../../contract/agents.js';
import { isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { RunKind } from '../render/plan.js';
import type { AgentRun, Result } from './agent-run.js';
import { followRun } from './follow-run.js';
import { forEach } from './for-each.js';
import { createRunProgress, type RunProgress } from './run-progress.js';

export interface Work {
  readonly kind: RunKind;
  readonly agents: readonly Agent[];
  run(agent: Agent, progress: RunProgress): Promise<Result>;
}

/** What the whole command line hangs on, so that it ends the others too. */
const FATAL = ['unauthenticated', 'role_forbidden', 'admin_required', 'unreachable', 'tls_mismatch'] as const;

/** Faults of one agent stay with it; of a single one, and those that concern every agent alike, are thrown. */
export async function runAgents(context: Context, { kind, agents, run }: Work): Promise<readonly AgentRun[]> {
  const progress = createRunProgress(context, kind, agents.length);
  return forEach(agents, async (agent) => {
    const done = await settle(agent, agents.length, () => run(agent, progress));
    progress.finished(done);
    return done;
  });
}

async function settle(agent: Agent, agents: number, run: () => Promise<Result>): Promise<AgentRun> {
  try {
    return { agent, result: await run() };
  } catch (error) {
    if (
      agents === 1 ||
      !isFault(error) ||
      FATAL.some((code) => code === error.code && error.data?.operation_id === undefined)
    )
      throw error;
    return { agent, fault: error };
  }
}

/** One plan of each agent. */
export const planAgents = (
  context: Context,
  api: ApiClient,
  { agents, modules }: RunTargets,
): Promise<readonly AgentRun[]> =>
  runAgents(context, {
    kind: 'plan',
    agents,
    run: (agent, progress) => {
      const params = { node_id: agent.node_id };
      const stream = api.stream('planAgent', { params, body: { modules: [...modules] }, signal: context.signal });
      return followRun(stream, { resource: (resource) => progress.resource(agent, resource) });
    },
  });

export interface RunTargets {
  readonly agents: readonly Agent[];
  readonly modules: readonly string[];
}
