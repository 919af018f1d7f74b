/** `plan` and `apply` with `--assignment`: the orchestrator walks over the agents, and this end follows. */
import type { ApiClient } from '../../client/api-client.js';
import type { Rollout, RolloutEvent, RolloutResult } from '../../contract/assignments.js';
import type { RunResult } from '../../contract/runs.js';
import { Fault, isFault, isFaultCode } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { planBody, type RunModules, storeModules } from '../modules/send-modules.js';
import { requireAgents } from '../nodes/choose-agents.js';
import type { Outcome } from '../outcome.js';
import type { RunKind } from '../render/plan-lines.js';
import { type AgentRun, runsBody } from './agent-run.js';
import { consentTo } from './apply-agents.js';
import { leaving, WITHIN } from './leave-or-cancel.js';
import { createRunProgress, type Pace } from './run-agents.js';
import { runOutcome } from './run-view.js';

interface RolloutChoice extends RolloutOrder {
  readonly allowEmpty: boolean;
  /** True if changes give the exit status 2. */
  readonly detailed: boolean;
}

export async function planOutcome(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice,
): Promise<{ readonly outcome: Outcome; readonly runs: readonly AgentRun[] }> {
  const { rollout, runs } = await planRollout(context, api, choice);
  refuseEmpty(rollout.summary.agents, choice);
  return { outcome: { ...outcomeOf(context, runs, { kind: 'plan', choice }), body: rollout }, runs };
}

export async function applyOutcome(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice & { readonly allowRemovals: number | null },
): Promise<Outcome> {
  const { planned, missed } = await agreed(context, api, choice);
  const apply = async () => {
    await storeModules(context, api, choice.modules);
    return applyRollout(context, api, { ...choice, expect: planned });
  };
  const applied: RolloutRuns | null = planned !== null && Object.keys(planned).length === 0 ? null : await apply();
  if (applied !== null && missed.length === 0) refuseEmpty(applied.rollout.summary.agents, choice);
  const runs = [...(applied?.runs ?? []), ...missed];
  const outcome = outcomeOf(context, runs, { kind: 'apply', choice });
  // The body of the API does not contain agents without a plan.
  return { ...outcome, body: applied === null || missed.length > 0 ? runsBody(runs, true) : applied.rollout };
}

interface Agreed {
  /** Hashes of the approved plans by node ID; null with --yes. */
  readonly planned: Readonly<Record<string, string>> | null;
  readonly missed: readonly AgentRun[];
}

async function agreed(context: Context, api: ApiClient, choice: RolloutChoice): Promise<Agreed> {
  if (context.globals.yes) return { planned: null, missed: [] };
  const { rollout, runs } = await planRollout(context, api, { ...choice, pace: {} });
  refuseEmpty(rollout.summary.agents, choice);
  const { planned, missed } = await consentTo(context, runs);
  const hashes = planned.flatMap(({ agent, result }) =>
    'plan_hash' in result && result.plan_hash !== null ? [[agent.node_id, result.plan_hash] as const] : [],
  );
  return { planned: Object.fromEntries(hashes), missed };
}

const refuseEmpty = (agents: number, { assignment, allowEmpty }: RolloutChoice): void =>
  requireAgents(agents, { nodes: [], assignment, selector: undefined, allowEmpty });

const outcomeOf = (
  { globals }: Context,
  runs: readonly AgentRun[],
  { kind, choice }: { readonly kind: 'plan' | 'apply'; readonly choice: RolloutChoice },
): Outcome => runOutcome(runs, { kind, detailed: choice.detailed, verbose: globals.verbose, fleet: true });

interface RolloutOrder {
  readonly assignment: string;
  readonly modules: RunModules;
  readonly pace: Pace;
}

interface ApplyRolloutOrder extends RolloutOrder {
  readonly allowRemovals: number | null;
  /** Hashes of the approved plans by node ID; null with --yes. */
  readonly expect: Readonly<Record<string, string>> | null;
}

interface RolloutRuns {
  readonly rollout: Rollout;
  readonly runs: readonly AgentRun[];
}

/** Plans an assignment. Stores nothing. */
function planRollout(context: Context, api: ApiClient, order: RolloutOrder): Promise<RolloutRuns> {
  const { signal } = context;
  const body = { ...bodyOf(order), ...planBody(order.modules) };
  const stream = api.stream('planAssignment', { params: { name: order.assignment }, body, signal });
  return follow(context, 'plan', stream);
}

/** Applies an assignment whose modules are stored. Ctrl-C leaves the rollout running, twice cancels it. */
async function applyRollout(context: Context, api: ApiClient, order: ApplyRolloutOrder): Promise<RolloutRuns> {
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
