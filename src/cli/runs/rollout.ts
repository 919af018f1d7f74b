/** `plan` and `apply` on many agents: the orchestrator walks over them, and this end follows. */
import type { ApiClient } from '../../client/api-client.js';
import { ROLLOUT_CONCURRENCY } from '../../contract/rollout-concurrency.js';
import type { Rollout, RolloutEvent, RolloutResult } from '../../contract/rollouts.js';
import type { RunResult } from '../../contract/runs.js';
import { Fault, isFault, isFaultCode } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { integer } from '../define-command.js';
import { planBody, type RunModules, storeModules } from '../modules/send-modules.js';
import { chooseAgents, type Fleet, requireAgents } from '../nodes/choose-agents.js';
import type { Outcome } from '../outcome.js';
import type { RunKind } from '../render/plan-lines.js';
import { type AgentRun, type RunAgent, runsBody } from './agent-run.js';
import { consentTo } from './consent.js';
import { createRunProgress } from './follow-run.js';
import { leaving, WITHIN } from './leave-or-cancel.js';
import { runOutcome } from './run-view.js';

export const paceOptions = {
  concurrency: integer('N', `most agents at a time [${ROLLOUT_CONCURRENCY.standard}]; a bound starts with one`, 1),
  canary: integer('N', 'number of connected agents that go first; the rest starts when all of them have succeeded'),
  maxFailures: integer('N', 'start no further agent once N have failed; never more in flight than may still fail', 1),
} as const;

/** Pace of a rollout; undefined members take the defaults of the orchestrator. */
export interface Pace {
  readonly concurrency?: number | undefined;
  readonly canary?: number | undefined;
  readonly maxFailures?: number | undefined;
}

interface RolloutOrder {
  readonly fleet: Fleet;
  readonly modules: RunModules;
  readonly pace: Pace;
}

interface RolloutChoice extends RolloutOrder {
  readonly allowEmpty: boolean;
  /** True if changes give the exit status 2. */
  readonly detailed: boolean;
}

/** Plans on all agents of a fleet. Throws `agent_not_found` if there are none, except with `allowEmpty`. */
export async function planFleet(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice,
): Promise<{ readonly outcome: Outcome; readonly runs: readonly AgentRun[] }> {
  const planned = await planRollout(context, api, choice);
  requireAgents(planned.runs.length, wordsOf(choice));
  return { outcome: rolloutOutcome(context, planned, { ...choice, kind: 'plan' }), runs: planned.runs };
}

/** Asks for consent and applies to all agents of a fleet. Throws like `planFleet`, and `cancelled`. */
export async function applyFleet(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice & { readonly allowRemovals: number | null },
): Promise<Outcome> {
  const options = { ...choice, kind: 'apply' } as const;
  const { fleet, expect, missed } = await agreed(context, api, choice);
  if (fleet === null) return rolloutOutcome(context, { rollout: null, runs: missed }, options);
  await storeModules(context, api, choice.modules);
  const { names } = choice.modules;
  const { rollout, runs } = await applyRollout(context, api, { ...choice, fleet, modules: names, expect });
  if (missed.length === 0) requireAgents(runs.length, wordsOf(choice));
  return rolloutOutcome(context, { rollout, runs: [...runs, ...missed] }, options);
}

interface Agreed {
  /** Agents to apply to; null for none. */
  readonly fleet: Fleet | null;
  /** Hashes of the approved plans by node ID; null with --yes. */
  readonly expect: Readonly<Record<string, string>> | null;
  /** Agents without a plan. */
  readonly missed: readonly AgentRun[];
}

async function agreed(context: Context, api: ApiClient, choice: RolloutChoice): Promise<Agreed> {
  const { fleet } = choice;
  if (context.globals.yes) {
    const matches = choice.modules.files.length === 0 || (await hasAgents(context, api, choice));
    return { fleet: matches ? fleet : null, expect: null, missed: [] };
  }
  const { runs } = await planRollout(context, api, { ...choice, pace: {} });
  requireAgents(runs.length, wordsOf(choice));
  const { planned, missed } = await consentTo(context, runs);
  const hashes = planned.flatMap(({ agent, result }) =>
    'plan_hash' in result && result.plan_hash !== null ? [[agent, result.plan_hash] as const] : [],
  );
  const agents = hashes.map(([agent]) => agent);
  // Consent was given for these agents, so a selector is not evaluated again.
  const consented: Fleet = fleet.kind === 'assignment' ? fleet : { kind: 'agents', agents };
  return {
    fleet: agents.length === 0 ? null : consented,
    expect: Object.fromEntries(hashes.map(([{ node_id }, hash]) => [node_id, hash])),
    missed: [
      ...missed,
      ...planned.filter(({ agent }) => !agents.includes(agent)).map(({ agent }) => withoutHash(agent)),
    ],
  };
}

const withoutHash = (agent: RunAgent): AgentRun => ({
  agent,
  fault: new Fault('plan_stale', 'its plan has no hash, so an apply could not be held to it', {
    hint: 'update the agent, or apply with --yes',
  }),
});

/** Looks before files are stored, so that a mistyped selector stores nothing. Throws like `requireAgents`. */
async function hasAgents(context: Context, api: ApiClient, choice: RolloutChoice): Promise<boolean> {
  if (choice.fleet.kind === 'agents') return true;
  return (await chooseAgents(api, { nodes: [], ...wordsOf(choice) }, context)).length > 0;
}

/** Returns the options that chose the fleet. */
const wordsOf = ({ fleet, allowEmpty }: Pick<RolloutChoice, 'fleet' | 'allowEmpty'>) => ({
  assignment: fleet.kind === 'assignment' ? fleet.assignment : undefined,
  selector: fleet.kind === 'selector' ? fleet.selector : undefined,
  allowEmpty,
});

interface RolloutRuns {
  /** Null if no rollout was started. */
  readonly rollout: Rollout | null;
  readonly runs: readonly AgentRun[];
}

interface OutcomeOptions {
  readonly kind: 'plan' | 'apply';
  readonly fleet: Fleet;
  readonly detailed: boolean;
}

/** Builds the outcome of a rollout. Its body adds each agent's complete result to that of the API. */
export function rolloutOutcome(
  { globals }: Context,
  { rollout, runs }: RolloutRuns,
  { kind, fleet, detailed }: OutcomeOptions,
): Outcome {
  const body = {
    assignment: fleet.kind === 'assignment' ? fleet.assignment : null,
    selector: fleet.kind === 'selector' ? fleet.selector : (rollout?.selector ?? null),
    rollout_id: rollout?.rollout_id ?? null,
    ...runsBody(runs),
  };
  return { ...runOutcome(runs, { kind, detailed, verbose: globals.verbose, fleet: true }), body };
}

/** Plans on a fleet. Stores nothing. */
function planRollout(context: Context, api: ApiClient, { fleet, modules, pace }: RolloutOrder): Promise<RolloutRuns> {
  const { signal } = context;
  const body = { ...paceBody(context, pace), ...planBody(modules) };
  const stream =
    fleet.kind === 'assignment'
      ? api.stream('planAssignment', { params: { name: fleet.assignment }, body, signal })
      : api.stream('planRollout', { body: { ...chosenBody(fleet), ...body }, signal });
  return follow(context, { kind: 'plan', fleet }, stream);
}

interface ApplyOrder {
  readonly fleet: Fleet;
  /** Names of stored modules. */
  readonly modules: readonly string[];
  readonly pace: Pace;
  readonly allowRemovals: number | null;
  /** Hashes of the approved plans by node ID; null with --yes. */
  readonly expect: Readonly<Record<string, string>> | null;
}

/** Applies stored modules to a fleet. Ctrl-C leaves the rollout running, twice cancels it. */
export async function applyRollout(context: Context, api: ApiClient, order: ApplyOrder): Promise<RolloutRuns> {
  const { fleet, modules, pace, allowRemovals, expect } = order;
  let id: string | null = null;
  const left = leaving(context, {
    tell: (last) => {
      if (id === null) return context.note('Interrupted. The rollout may have begun; see: orch ops');
      context.note(`Rollout ${id} goes on without you, as long as the orchestrator runs.`);
      context.note(`  watch it:  orch ops list --rollout ${id}`);
      context.note(`  cancel it: orch ops cancel --rollout ${id}`);
      if (!last) context.note(`Press Ctrl-C again ${WITHIN} to cancel it.`);
    },
    cancel: async () => {
      if (id === null) return;
      await api.call('cancelRollout', { params: { rollout_id: id } });
      context.note(`Rollout ${id} is being cancelled: no further agent begins.`);
    },
  });
  try {
    const { signal } = left;
    const body = { ...paceBody(context, pace), modules: [...modules], allow_removals: allowRemovals, expect };
    const stream =
      fleet.kind === 'assignment'
        ? api.stream('applyAssignment', { params: { name: fleet.assignment }, body, signal })
        : api.stream('applyRollout', { body: { ...chosenBody(fleet), ...body }, signal });
    const work = follow(context, { kind: 'apply', fleet }, stream, (started) => {
      id = started;
    });
    return await Promise.race([work, left.promise]);
  } finally {
    left.stop();
  }
}

const chosenBody = (fleet: Exclude<Fleet, { readonly kind: 'assignment' }>) =>
  fleet.kind === 'selector'
    ? { selector: fleet.selector, agents: null }
    : { selector: null, agents: fleet.agents.map(({ node_id }) => node_id) };

const paceBody = ({ streams }: Context, pace: Pace) => ({
  concurrency: pace.concurrency ?? null,
  canary: pace.canary ?? null,
  max_failures: pace.maxFailures ?? null,
  // Only a live line shows single resources.
  progress: streams.stderr.isTTY === true,
});

type Lines = AsyncIterable<Exclude<RolloutEvent, { readonly event: 'error' }>>;

interface Followed {
  readonly kind: RunKind;
  readonly fleet: Fleet;
}

async function follow(
  context: Context,
  { kind, fleet }: Followed,
  stream: Lines,
  onStarted: (id: string) => void = () => {},
): Promise<RolloutRuns> {
  const known = new Map(fleet.kind === 'agents' ? fleet.agents.map((agent) => [agent.node_id, agent] as const) : []);
  const agentOf = ({ node_id, name }: Pick<RolloutResult, 'node_id' | 'name'>): RunAgent =>
    known.get(node_id) ?? { node_id, name, initial_hostname: '' };
  const runs = new Map<string, AgentRun>();
  let progress = createRunProgress(context, kind, 0);
  let id: string | null = null;
  try {
    for await (const line of stream) {
      if (line.event === 'started') {
        id = line.rollout_id;
        onStarted(id);
        progress = createRunProgress(context, kind, line.agents);
      } else if (line.event === 'resource') {
        progress.resource(agentOf(line), line.resource);
      } else if (line.event === 'agent') {
        const run = runOf(agentOf(line.agent), line.agent);
        runs.set(line.agent.node_id, run);
        progress.finished(run);
      } else if (line.event === 'result') {
        return { rollout: line.result, runs: line.result.results.flatMap((one) => runs.get(one.node_id) ?? []) };
      }
    }
  } catch (error) {
    throw id !== null && kind === 'apply' && isFault(error, 'unreachable', 'unauthenticated') ? lost(id, error) : error;
  }
  throw id === null || kind !== 'apply'
    ? new Fault('unreachable', 'the orchestrator ended the answer too early')
    : lost(id);
}

function runOf(agent: RunAgent, reported: RolloutResult & { readonly result: RunResult | null }): AgentRun {
  if (reported.result !== null) return { agent, result: reported.result };
  const { code, message, hint } = reported.error ?? {
    code: 'internal',
    message: `it ${reported.status}, without a reason`,
    hint: null,
  };
  const data = reported.operation_id === null ? {} : { operation_id: reported.operation_id };
  const options = hint === null ? { data } : { data, hint };
  return { agent, fault: new Fault(isFaultCode(code) ? code : 'internal', message, options), reported };
}

/** Returns the fault of a lost stream. `cause` is `unauthenticated` for an expired session, else the connection error. */
function lost(id: string, cause?: Fault): Fault {
  const isExpired = isFault(cause, 'unauthenticated');
  const what = isExpired ? 'the session ended' : 'the connection broke';
  return new Fault(isExpired ? 'unauthenticated' : 'unreachable', `${what} while rollout ${id} was under way`, {
    hint: `agents that have begun go on, and the others begin unless the orchestrator has stopped: orch ops list --rollout ${id}`,
    cause,
    data: { rollout_id: id },
  });
}
