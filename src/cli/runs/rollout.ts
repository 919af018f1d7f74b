/** `plan` and `apply` on many agents: the orchestrator walks over them, and this end follows. */
import type { ApiClient } from '../../client/api-client.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { EXIT, type ExitStatus } from '../exit-status.js';
import { agentName, count } from '../format.js';
import { sendFiles } from '../modules/files-beside.js';
import { oneOffLines } from '../modules/one-off-values.js';
import { applyModulesBody, planBody, type RunModules } from '../modules/send-modules.js';
import { chooseAgents, type Fleet, requireAgents } from '../nodes/choose-agents.js';
import { lines, type Outcome, proseOf, stack } from '../outcome.js';
import { type AgentRun, exitStatusOfRuns, isOffline, type RunAgent, runsBody, standingOf } from './agent-run.js';
import { type ApplyLimits, limitsBody } from './apply-limits.js';
import { consentTo } from './consent.js';
import { followRequest, type RolloutRuns } from './follow-rollout.js';
import { leaving, WITHIN } from './leave-or-cancel.js';
import { type Pace, paceBody, showsResources } from './pace.js';
import { nextStepLines, rolloutSentence, valueChangeLines } from './rollout-record.js';
import { runOutcome, runsView, withLines } from './run-view.js';
import { afterLines, beforeLines, withBases } from './trial-lines.js';

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
  choice: RolloutChoice & Pick<ApplyLimits, 'confirmSecs'>,
): Promise<{ readonly outcome: Outcome; readonly runs: readonly AgentRun[] }> {
  const planned = await planRollout(context, api, choice);
  requireAgents(planned.runs.length, wordsOf(choice));
  return { outcome: rolloutOutcome(context, planned, { ...choice, kind: 'plan' }), runs: planned.runs };
}

/** Asks for consent and applies to all agents of a fleet. Throws like `planFleet`, and `cancelled`. */
export async function applyFleet(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice & { readonly limits: ApplyLimits; readonly detach: boolean },
): Promise<Outcome> {
  const options = { ...choice, kind: 'apply' } as const;
  const { fleet, modules, expect, missed, limits } = await agreed(context, api, choice);
  if (fleet === null) return rolloutOutcome(context, { rollout: null, record: null, runs: missed }, options);
  const order = { ...choice, fleet, modules, expect, limits };
  if (choice.detach) return detachedRollout(context, api, { ...order, missed });
  const applied = await applyRollout(context, api, order);
  if (missed.length === 0) requireAgents(applied.runs.length, wordsOf(choice));
  const outcome = rolloutOutcome(context, { ...applied, runs: [...applied.runs, ...missed] }, options);
  const reachedAgents = applied.runs.map(({ agent }) => agent);
  return withLines(outcome, await afterLines(context, api, modules.files, reachedAgents));
}

interface Agreed {
  /** Agents to apply to; null for none. */
  readonly fleet: Fleet | null;
  /** Hashes of the approved plans by node ID, null for agents that are applied to without one; null with --yes. */
  readonly expect: Expected | null;
  /** Agents without a plan that are left out. */
  readonly missed: readonly AgentRun[];
  /** The modules, with the revisions that the files may replace. */
  readonly modules: RunModules;
  readonly limits: ApplyLimits;
}

type Expected = Readonly<Record<string, string | null>>;

async function agreed(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice & { readonly limits: ApplyLimits },
): Promise<Agreed> {
  const { fleet, pace, limits } = choice;
  if (context.globals.yes) {
    const { files } = choice.modules;
    const agents = files.length === 0 ? [] : await agentsOf(context, api, choice);
    if (files.length > 0 && agents.length === 0) {
      return { fleet: null, expect: null, missed: [], modules: choice.modules, limits };
    }
    const based = await withBases(context, api, files, agents);
    for (const line of [...beforeLines(based.reaches, agents), ...oneOffLines(choice.modules.values)])
      context.note(line);
    const modules = { ...choice.modules, files: based.files };
    return { fleet, expect: null, missed: [], modules, limits };
  }
  const { runs } = await planRollout(context, api, { ...choice, pace: {} });
  requireAgents(runs.length, wordsOf(choice));
  const { whenOnlineSecs } = pace;
  const awaited = whenOnlineSecs === undefined ? [] : runs.filter(isOffline).map(({ agent }) => agent);
  const all = runs.map(({ agent }) => agent);
  const based = await withBases(context, api, choice.modules.files, all);
  const { planned, missed, ...consent } = await consentTo(context, runs, {
    awaiting: { awaited, secs: whenOnlineSecs ?? 0 },
    lines: [...beforeLines(based.reaches, all), ...oneOffLines(choice.modules.values)],
    limits,
  });
  const hashes = planned.flatMap(({ agent, result }) =>
    'plan_hash' in result && result.plan_hash !== null ? [[agent, result.plan_hash] as const] : [],
  );
  const hashed = hashes.map(([agent]) => agent);
  const agents = [...hashed, ...awaited];
  // Consent was given for these agents, so a selector is not evaluated again.
  const consented: Fleet = fleet.kind === 'assignment' ? fleet : { kind: 'agents', agents };
  return {
    fleet: agents.length === 0 ? null : consented,
    modules: { ...choice.modules, files: based.files },
    limits: consent.limits,
    expect: Object.fromEntries([
      ...hashes.map(([{ node_id }, hash]) => [node_id, hash] as const),
      ...awaited.map(({ node_id }) => [node_id, null] as const),
    ]),
    missed: [
      ...missed
        .filter(({ agent }) => !awaited.includes(agent))
        .map((run) => (pace.skipOffline && isOffline(run) ? skippedRun(run) : run)),
      ...planned.filter(({ agent }) => !hashed.includes(agent)).map(({ agent }) => withoutHash(agent)),
    ],
  };
}

/** Returns an offline agent as one that --skip-offline leaves out. */
function skippedRun({ agent }: AgentRun): AgentRun {
  const error = {
    code: 'agent_not_connected',
    message: `${agentName(agent)} is offline, so it is skipped`,
    hint: null,
  };
  return {
    agent,
    fault: new Fault('agent_not_connected', error.message),
    reported: { node_id: agent.node_id, name: agent.name, status: 'skipped', operation_id: null, summary: null, error },
  };
}

const withoutHash = (agent: RunAgent): AgentRun => ({
  agent,
  fault: new Fault('plan_stale', 'its plan has no hash, so an apply could not be held to it', {
    hint: 'update the agent, or apply with --yes',
  }),
});

/** Returns the agents of a fleet as of now. Throws like `requireAgents`. */
async function agentsOf(context: Context, api: ApiClient, choice: RolloutChoice): Promise<readonly RunAgent[]> {
  const { fleet } = choice;
  return fleet.kind === 'agents' ? fleet.agents : chooseAgents(api, { nodes: [], ...wordsOf(choice) }, context);
}

/** Returns the options that chose the fleet. */
const wordsOf = ({ fleet, allowEmpty }: Pick<RolloutChoice, 'fleet' | 'allowEmpty'>) => ({
  assignment: fleet.kind === 'assignment' ? fleet.assignment : undefined,
  selector: fleet.kind === 'selector' ? fleet.selector : undefined,
  status: [],
  allowEmpty,
});

interface OutcomeOptions {
  readonly confirmSecs?: number | null;
  readonly kind: 'plan' | 'apply';
  readonly fleet: Fleet;
  readonly detailed: boolean;
}

/** Builds the outcome of a rollout. Its body adds each agent's complete result to that of the API. */
export function rolloutOutcome(
  { globals }: Context,
  applied: RolloutRuns,
  { kind, fleet, detailed, confirmSecs = null }: OutcomeOptions,
): Outcome {
  const { rollout, record, runs } = applied;
  const body = {
    assignment: fleet.kind === 'assignment' ? fleet.assignment : null,
    selector: fleet.kind === 'selector' ? fleet.selector : (rollout?.selector ?? null),
    rollout_id: rollout?.rollout_id ?? null,
    ...(record === null ? {} : { state: record.state, reason: record.reason }),
    ...runsBody(runs),
  };
  const outcome = runOutcome(runs, { kind, detailed, verbose: globals.verbose, fleet: true, confirmSecs });
  if (record === null) return { ...outcome, body };
  const end = proseOf([rolloutSentence(record), ...valueChangeLines(record), ...nextStepLines(record)]);
  return {
    ...outcome,
    body,
    view: stack(runsView(runs, { kind, verbose: globals.verbose }), end),
    exitStatus: exitStatusOf(applied, detailed),
  };
}

function exitStatusOf({ record, runs }: RolloutRuns, detailed: boolean): ExitStatus {
  if (record?.state === 'halted' || record?.state === 'cancelled' || record?.state === 'reverted') {
    return EXIT.partlyFailed;
  }
  // Skipped agents of a rollout that succeeded were to be skipped.
  const hasSucceeded = record?.state === 'succeeded';
  const status = exitStatusOfRuns(hasSucceeded ? runs.filter((run) => standingOf(run) !== 'skipped') : runs, detailed);
  return record?.state === 'failed' && status === EXIT.done ? EXIT.partlyFailed : status;
}

/** Plans on a fleet. Stores nothing. */
async function planRollout(
  context: Context,
  api: ApiClient,
  { fleet, modules, pace }: RolloutOrder,
): Promise<RolloutRuns> {
  const { signal } = context;
  await sendFiles(context, api, modules.files);
  const body = { ...paceBody(context, pace), ...planBody(modules) };
  const stream =
    fleet.kind === 'assignment'
      ? api.stream('planAssignment', { params: { name: fleet.assignment }, body, signal })
      : api.stream('planRollout', { body: { ...chosenBody(fleet), ...body }, signal });
  return followRequest(context, { kind: 'plan', fleet }, stream);
}

interface ApplyOrder extends RolloutOrder {
  readonly limits: ApplyLimits;
  /** Hashes of the approved plans by node ID; null with --yes. */
  readonly expect: Expected | null;
}

/** Applies modules to a fleet. Ctrl-C leaves the rollout running, twice cancels it. */
export async function applyRollout(context: Context, api: ApiClient, order: ApplyOrder): Promise<RolloutRuns> {
  const { fleet } = order;
  await sendFiles(context, api, order.modules.files);
  let id: string | null = null;
  const left = leaving(context, {
    tell: (last) => {
      if (id === null) return context.note('Interrupted. The rollout may have begun; see: orch rollouts');
      context.note(`Rollout ${id} goes on without you, also when the orchestrator restarts.`);
      context.note(`  watch it:  orch rollouts watch ${id}`);
      context.note(`  pause it:  orch rollouts pause ${id}`);
      context.note(`  cancel it: orch rollouts cancel ${id}`);
      if (!last) context.note(`Press Ctrl-C again ${WITHIN} to cancel it.`);
    },
    cancel: async () => {
      if (id === null) return;
      try {
        await api.call('cancelRollout', { params: { rollout_id: id } });
        context.note(`Rollout ${id} is being cancelled: no further agent begins.`);
      } catch (error) {
        context.warn(`rollout ${id} could not be cancelled: ${messageOf(error)}`);
      }
    },
  });
  try {
    const { signal } = left;
    const body = applyBody(context, order);
    const stream =
      fleet.kind === 'assignment'
        ? api.stream('applyAssignment', { params: { name: fleet.assignment }, body, signal })
        : api.stream('applyRollout', { body: { ...chosenBody(fleet), ...body }, signal });
    const onStarted = (started: string, agents: number) => {
      id = started;
      context.note(`Rollout ${id} on ${count(agents, 'agent')}`);
    };
    const query = { progress: showsResources(context) };
    const again = {
      open: (rollout_id: string) => () => api.stream('getRollout', { params: { rollout_id }, query, signal }),
      signal,
    };
    const work = followRequest(context, { kind: 'apply', fleet }, stream, onStarted, again);
    return await Promise.race([work, left.promise]);
  } finally {
    left.stop();
  }
}

interface DetachedOrder extends ApplyOrder {
  /** Agents without a plan, which are left out. */
  readonly missed: readonly AgentRun[];
  readonly allowEmpty: boolean;
}

/** Begins a rollout and does not follow it. */
export async function detachedRollout(context: Context, api: ApiClient, order: DetachedOrder): Promise<Outcome> {
  const { signal } = context;
  const { fleet, missed } = order;
  await sendFiles(context, api, order.modules.files);
  const body = { ...applyBody(context, order), wait: false };
  const rollout =
    fleet.kind === 'assignment'
      ? await api.call('applyAssignment', { params: { name: fleet.assignment }, body, signal })
      : await api.call('applyRollout', { body: { ...chosenBody(fleet), ...body }, signal });
  const { rollout_id: id, summary } = rollout;
  if (missed.length === 0) requireAgents(summary.agents, wordsOf(order));
  return {
    body: rollout,
    names: [id],
    view: stack(
      missed.length === 0 ? lines() : runsView(missed, { kind: 'apply', verbose: context.globals.verbose }),
      lines(
        `Rollout ${id} has begun on ${count(summary.agents, 'agent')}.`,
        `  watch it:  orch rollouts watch ${id}`,
        `  cancel it: orch rollouts cancel ${id}`,
      ),
    ),
    exitStatus: exitStatusOfRuns(
      missed.filter((run) => standingOf(run) !== 'skipped'),
      false,
    ),
  };
}

const applyBody = (context: Context, { modules, pace, expect, limits }: ApplyOrder) => ({
  ...paceBody(context, pace),
  ...applyModulesBody(modules),
  expect,
  ...limitsBody(limits),
});

const chosenBody = (fleet: Exclude<Fleet, { readonly kind: 'assignment' }>) =>
  fleet.kind === 'selector'
    ? { selector: fleet.selector, agents: null }
    : { selector: null, agents: fleet.agents.map(({ node_id }) => node_id) };
