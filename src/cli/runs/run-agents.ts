/** Plans or applies on several agents at once, and tells how it goes. */
import type { ApiClient } from '../../client/api-client.js';

import type { Agent } from '../../contract/agents.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { type WalkResult, walk } from '../../kernel/walk.js';
import type { Context } from '../context.js';
import { planBody, type RunModules } from '../modules/run-modules.js';
import type { RunKind } from '../render/plan.js';
import { type AgentRun, type Result, standingOf } from './agent-run.js';
import { followRun } from './follow-run.js';
import type { Pace } from './pace.js';
import { createRunProgress, type RunProgress } from './run-progress.js';

export interface Work {
  readonly kind: RunKind;
  readonly agents: readonly Agent[];
  readonly pace?: Pace;
  /** The agents were chosen by an assignment or a selector: even of a single one the faults stay with it. */
  readonly fleet?: boolean;
  /** Why no further agent is to begin; null while they may. */
  halted?(): string | null;
  run(agent: Agent, progress: RunProgress): Promise<Result>;
}

/** Agents that are worked on at once. */
const AT_ONCE = 8;

/** What the whole command line hangs on, so that it ends the others too. */
const FATAL = ['unauthenticated', 'role_forbidden', 'admin_required', 'unreachable', 'tls_mismatch'] as const;

/** Faults of one agent stay with it; of a single one, and those that concern every agent alike, are thrown. */
export async function runAgents(context: Context, work: Work): Promise<readonly AgentRun[]> {
  const { kind, agents, pace = {}, fleet = false } = work;
  const progress = createRunProgress(context, kind, agents.length);
  const thrown: unknown[] = [];
  const runs = await walk<Agent, Visit>({
    agents,
    concurrency: pace.concurrency ?? AT_ONCE,
    canary: pace.canary ?? 0,
    maxFailures: pace.maxFailures ?? null,
    isConnected: ({ connected }) => connected,
    halted: () => (thrown.length > 0 ? 'not started: the command fails' : (work.halted?.() ?? null)),
    run: async (agent) => {
      try {
        return visitOf({ agent, result: await work.run(agent, progress) });
      } catch (error) {
        if ((agents.length === 1 && !fleet) || !isFault(error) || isFatal(error)) thrown.push(error);
        return visitOf({ agent, fault: isFault(error) ? error : new Fault('internal', messageOf(error)) });
      }
    },
    skip: (agent, why) => visitOf({ agent, fault: new Fault('rollout_stopped', why) }),
    onResult: async ({ run }) => {
      if (thrown.length === 0) progress.finished(run);
    },
  });
  if (thrown.length > 0) throw thrown[0];
  return runs.map(({ run }) => run);
}

interface Visit extends WalkResult {
  readonly run: AgentRun;
}

const visitOf = (run: AgentRun): Visit => ({ run, status: standingOf(run) });

const isFatal = (fault: Fault): boolean =>
  FATAL.some((code) => code === fault.code && fault.data?.operation_id === undefined);

/** One plan of each agent. Nothing is stored. */
export function planAgents(
  context: Context,
  api: ApiClient,
  { agents, modules, pace, fleet }: RunTargets,
): Promise<readonly AgentRun[]> {
  const body = planBody(modules);
  return runAgents(context, {
    kind: 'plan',
    agents,
    ...(pace === undefined ? {} : { pace }),
    ...(fleet === undefined ? {} : { fleet }),
    run: (agent, progress) => {
      const params = { node_id: agent.node_id };
      const stream = api.stream('planAgent', { params, body, signal: context.signal });
      return followRun(stream, { resource: (resource) => progress.resource(agent, resource) });
    },
  });
}

export interface RunTargets extends Pick<Work, 'pace' | 'fleet'> {
  readonly agents: readonly Agent[];
  readonly modules: RunModules;
}
