/** Plans or applies an assignment on all of its agents, and tells how it goes. */
import type { ApiClient } from '../../client/api-client.js';
import type { Rollout, RolloutEvent, RolloutResult } from '../../contract/assignments.js';
import type { RunResult } from '../../contract/runs.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { isFaultCode } from '../../kernel/fault-code.js';
import type { Context } from '../context.js';
import { planBody, type RunModules } from '../modules/run-modules.js';
import type { RunKind } from '../render/plan.js';
import type { AgentRun } from './agent-run.js';
import { leaving, WITHIN } from './leave-or-cancel.js';
import type { Pace } from './pace.js';
import { createRunProgress } from './run-progress.js';

export interface RolloutOrder {
  readonly assignment: string;
  readonly modules: RunModules;
  readonly pace: Pace;
}

export interface ApplyRolloutOrder extends RolloutOrder {
  readonly allowRemovals: number | null;
  /** `plan_hash` by node ID of the plans that were agreed to; null when nobody was asked. */
  readonly expect: Readonly<Record<string, string>> | null;
}

export interface RolloutRuns {
  readonly rollout: Rollout;
  readonly runs: readonly AgentRun[];
}

/** Nothing is stored. */
export function planRollout(context: Context, api: ApiClient, order: RolloutOrder): Promise<RolloutRuns> {
  const { signal } = context;
  const body = { ...bodyOf(order), ...planBody(order.modules) };
  const stream = api.stream('planAssignment', { params: { name: order.assignment }, body, signal });
  return follow(context, 'plan', stream);
}

/** The modules are stored already. Ctrl-C leaves it running, twice cancels it. */
export async function applyRollout(context: Context, api: ApiClient, order: ApplyRolloutOrder): Promise<RolloutRuns> {
  let id: string | null = null;
  const left = leaving(context, {
    tell: (last) => {
      if (id === null) return context.note('Interrupted. The rollout may have begun; see: orch ops');
      context.note(`Rollout ${id} goes on without you, as long as the orchestrator runs.`);
      context.note(`  watch it: orch ops list --rollout ${id}`);
      if (!last) context.note(`Press Ctrl-C again ${WITHIN} to cancel it.`);
    },
    cancel: async () => {
      if (id === null) return;
      await api.call('cancelRollout', { params: { rollout_id: id } });
      context.note(`Rollout ${id} is being cancelled: no further agent begins.`);
    },
  });
  try {
    const body = { ...bodyOf(order), allow_removals: order.allowRemovals, expect: order.expect };
    const stream = api.stream('applyAssignment', { params: { name: order.assignment }, body, signal: left.signal });
    const work = follow(context, 'apply', stream, (started) => {
      id = started;
    });
    return await Promise.race([work, left.promise]);
  } finally {
    left.stop();
  }
}

const bodyOf = ({ modules, pace }: RolloutOrder) => ({
  modules: [...modules.names],
  concurrency: pace.concurrency ?? null,
  canary: pace.canary ?? null,
  max_failures: pace.maxFailures ?? null,
});

type Lines = AsyncIterable<Exclude<RolloutEvent, { readonly event: 'error' }>>;

async function follow(
  context: Context,
  kind: RunKind,
  stream: Lines,
  onStarted: (id: string) => void = () => {},
): Promise<RolloutRuns> {
  const runs = new Map<string, AgentRun>();
  let progress = createRunProgress(context, kind, 0);
  let id: string | null = null;
  try {
    for await (const line of stream) {
      if (line.event === 'started') {
        id = line.rollout_id;
        onStarted(id);
        progress = createRunProgress(context, kind, line.agents);
      } else if (line.event === 'agent') {
        const run = runOf(line.agent, line.agent.result);
        runs.set(line.agent.node_id, run);
        progress.finished(run);
      } else {
        return { rollout: line.result, runs: line.result.results.flatMap((one) => runs.get(one.node_id) ?? []) };
      }
    }
  } catch (error) {
    throw id !== null && kind === 'apply' && isFault(error, 'unreachable') ? lost(id, error) : error;
  }
  throw id === null || kind !== 'apply'
    ? new Fault('unreachable', 'the orchestrator ended the answer too early')
    : lost(id);
}

function runOf(told: RolloutResult, result: RunResult | null): AgentRun {
  const agent = { node_id: told.node_id, name: told.name, initial_hostname: '' };
  if (result !== null) return { agent, result };
  const { code, message } = told.error ?? { code: 'internal', message: `it ${told.status}, without a reason` };
  const data = told.operation_id === null ? {} : { operation_id: told.operation_id };
  return { agent, fault: new Fault(isFaultCode(code) ? code : 'internal', message, { data }) };
}

const lost = (id: string, cause?: unknown): Fault =>
  new Fault('unreachable', `the connection broke while rollout ${id} was under way`, {
    hint: `agents that have begun go on, and the others begin unless the orchestrator has stopped: orch ops list --rollout ${id}`,
    cause,
    data: { rollout_id: id },
  });
