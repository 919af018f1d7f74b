/** Saved plans: `orch plan --out` writes what a plan showed, and `orch apply FILE` does exactly that or nothing. */

import { statSync } from 'node:fs';
import * as Type from 'typebox';
import type { ApiClient } from '../../client/api-client.js';
import { writeOwnFile } from '../../client/operator-files.js';
import { OneOffValuesSchema } from '../../contract/one-off-values.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import { RunResultSchema } from '../../contract/runs.js';
import { KeyId, PublicKey, Seconds, Ulid } from '../../contract/shapes.js';
import { toSeconds } from '../../kernel/clock.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import { closed, nullable, optional } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';
import type { Context } from '../context.js';
import { agentName, count, formatTime } from '../format.js';
import { oneOffLines } from '../modules/one-off-values.js';
import type { Reach } from '../modules/reach.js';
import { currentDigest, type NamedFile, type RunModules } from '../modules/send-modules.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import type { Outcome } from '../outcome.js';
import { readTextFile } from '../text-files.js';
import { type AgentRun, hasResult } from './agent-run.js';
import type { ApplyLimits } from './apply-limits.js';
import { consentTo } from './consent.js';
import { applyAgent, detachAgent } from './one-agent.js';
import { needsRollout, type Pace } from './pace.js';
import { applyRollout, detachedRollout, rolloutOutcome } from './rollout.js';
import { runOutcome, withLines } from './run-view.js';
import { afterLines, beforeLines, withBases } from './trial-lines.js';

interface PlanToSave {
  readonly path: string;
  /** Named modules. */
  readonly modules: RunModules;
  /** Earlier operation that is planned in place of modules. */
  readonly to?: string | null;
  readonly runs: readonly AgentRun[];
}

/** Writes a plan. Warns about agents without a complete plan, and leaves them out. Writes nothing if no agent has one. */
export async function savePlan(
  context: Context,
  api: ApiClient,
  { path, modules, to, runs }: PlanToSave,
): Promise<void> {
  const saved = runs.map((run) => savedAgent(run, modules.names));
  const agents = saved.filter((one) => one !== null);
  for (const [index, run] of runs.entries()) {
    if (saved[index] === null) context.warn(`${agentName(run.agent)} could not be planned, so it is not in ${path}`);
  }
  if (agents.length === 0) return;
  const { public_key } = await api.call('getStatus', { signal: context.signal });
  const orchestrator = { public_key, url: api.url.href.replace(/\/$/, '') };
  const sources = await sourcesOf(context, api, modules);
  writePlanFile(path, {
    created_at: toSeconds(context.clock.now()),
    orchestrator,
    ...(to == null ? {} : { to }),
    ...(modules.values === null ? {} : { values: modules.values }),
    sources,
    agents,
  });
  context.progress.end();
  context.note(`Saved the plan of ${count(agents.length, 'agent')}. Apply exactly this with: orch apply ${path}`);
}

async function sourcesOf(context: Context, api: ApiClient, { files }: RunModules): Promise<SavedSource[]> {
  const sources: SavedSource[] = [];
  for (const { path, name, source, files: beside } of files) {
    const own = beside === undefined ? {} : { files: { ...beside } };
    sources.push({ name, path, content: source, ...own, replaces: await currentDigest(context, api, name) });
  }
  return sources;
}

function savedAgent(run: AgentRun, modules: readonly string[]): SavedAgent | null {
  if (!hasResult(run) || !('plan_hash' in run.result)) return null;
  const { agent, result } = run;
  if (result.status !== 'succeeded' || result.plan_hash === null) return null;
  return { node_id: agent.node_id, name: agent.name, modules: [...modules], plan_hash: result.plan_hash, result };
}

interface PlanToApply {
  readonly path: string;
  readonly pace: Pace;
  readonly limits: ApplyLimits;
  readonly detach: boolean;
  /** True if changes give the exit status 2. */
  readonly detailed: boolean;
}

/**
 * Applies the plan with the modules in it. Says which of them have changed on the orchestrator since, because the plan's agents get
 * them as planned. Throws `wrong_orchestrator` for the plan of another orchestrator. An agent that has changed since rejects the
 * plan with `plan_stale`, and then nothing is stored.
 */
export async function applyPlan(
  context: Context,
  api: ApiClient,
  { path, pace, limits, detach, detailed }: PlanToApply,
): Promise<Outcome> {
  const plan = readPlanFile(path);
  await requireSameOrchestrator(context, api, plan);
  const hashes = new Map(plan.agents.map(({ node_id, plan_hash }) => [node_id, plan_hash]));
  const agents = await resolveNodes(api, [...hashes.keys()], { signal: context.signal });
  const planned = agents.flatMap((agent) => {
    const saved = plan.agents.find(({ node_id }) => node_id === agent.node_id);
    return saved === undefined ? [] : [{ agent, result: saved.result }];
  });
  const files = filesOf(plan);
  const { reaches } = await withBases(context, api, files, agents);
  const unpublished = files.filter((_, index) => reaches[index]?.current !== reaches[index]?.sha256);
  const changed = files.filter((file, index) => isChanged(file, reaches[index]));
  const about = [
    ...changed.map(
      ({ name }) => `Module ${name} has changed on the orchestrator since the plan, which has it as it was planned.`,
    ),
    ...beforeLines(
      reaches.filter(({ name }) => !changed.some((file) => file.name === name)),
      agents,
    ),
    ...oneOffLines(plan.values ?? null),
  ];
  // Whether a window permits it was known at the plan, and may be otherwise now: the apply says so.
  const asked = { plan, planned, limits: { ...limits, outsideWindow: true }, lines: about };
  const allowRemovals = context.globals.yes ? limits.allowRemovals : await ask(context, asked);
  if (context.globals.yes) for (const line of about) context.note(line);
  const order = {
    modules: { names: plan.agents[0]?.modules ?? [], files, values: plan.values ?? null },
    to: plan.to ?? null,
    limits: { ...limits, allowRemovals },
  };
  const [agent, ...others] = agents;
  if (agent !== undefined && others.length === 0 && !needsRollout(pace)) {
    const single = { ...order, agent, expect: hashes.get(agent.node_id) ?? null };
    if (detach) return detachAgent(context, api, single);
    const run = await applyAgent(context, api, single);
    const outcome = runOutcome([run], { kind: 'apply', detailed, verbose: context.globals.verbose });
    return withLines(outcome, await afterLines(context, api, unpublished, agents));
  }
  const fleet = { kind: 'agents', agents } as const;
  const whole = { ...order, fleet, pace, expect: Object.fromEntries(hashes) };
  if (detach) return detachedRollout(context, api, { ...whole, missed: [], allowEmpty: false });
  const applied = await applyRollout(context, api, whole);
  const outcome = rolloutOutcome(context, applied, { kind: 'apply', fleet, detailed });
  return withLines(outcome, await afterLines(context, api, unpublished, agents));
}

/** Returns the modules of the plan as files, each with the revision that was current at the plan. */
const filesOf = ({ sources = [] }: SavedPlan): readonly NamedFile[] =>
  (sources ?? []).map(({ name, path, content, files, replaces }) => ({
    name,
    path,
    source: content,
    files,
    replaces: replaces ?? NO_REVISION,
  }));

/** Returns whether another revision is current than at the plan, except the planned text itself. */
const isChanged = ({ replaces }: NamedFile, reach: Reach | undefined): boolean =>
  reach !== undefined && reach.current !== replaces && reach.current !== reach.sha256;

async function requireSameOrchestrator({ signal }: Context, api: ApiClient, plan: SavedPlan): Promise<void> {
  const { public_key } = await api.call('getStatus', { signal });
  if (public_key === plan.orchestrator.public_key) return;
  throw new Fault(
    'wrong_orchestrator',
    `the plan is of the orchestrator at ${plan.orchestrator.url}, not of this one`,
    {
      hint: 'choose it with --profile or --url, or plan again here',
      data: { planned: plan.orchestrator.public_key, reached: public_key },
    },
  );
}

type Planned = Extract<AgentRun, { readonly result: unknown }>;

interface Asked extends Pick<PlanToApply, 'limits'> {
  readonly plan: SavedPlan;
  readonly planned: readonly Planned[];
  /** Lines about the modules. */
  readonly lines: readonly string[];
}

/** Returns the number of removals that the answer allows. Throws `cancelled`. */
async function ask(context: Context, { plan, planned, ...options }: Asked): Promise<number | null> {
  context.note(`Planned at ${formatTime(plan.created_at)}.`);
  return (await consentTo(context, planned, options)).limits.allowRemovals;
}

const ENDING = '.orchplan';
/**
 * Format version. Version 1 had no `sources`: planning stored the files. Version 2 had no `values`; a plan without values has that
 * version, so that earlier releases apply it.
 */
const VERSION = 3;

const SavedPlanSchema = closed({
  orchplan: Type.Union([Type.Literal(1), Type.Literal(2), Type.Literal(VERSION)]),
  created_at: Seconds,
  orchestrator: closed({ public_key: PublicKey, url: Type.String() }),
  /** Earlier operation that is planned in place of modules, on one agent. */
  to: optional(Ulid),
  /** Values of --set and --values, which the apply brings with it. */
  values: optional(OneOffValuesSchema),
  /** Files of -f, which the apply carries. */
  sources: optional(
    Type.Array(
      closed({
        name: Type.String(),
        path: Type.String(),
        content: Type.String(),
        /** SHA-256 of the files beside the module, by path; the orchestrator keeps them for a week after the plan. */
        files: Type.Optional(Type.Record(Type.String(), Type.String())),
        /** SHA-256 of the revision that was current at the plan; null if there was no such module. */
        replaces: nullable(Type.String()),
      }),
    ),
  ),
  agents: Type.Array(
    closed({
      node_id: KeyId,
      name: nullable(Type.String()),
      /** Named modules; those of assignments are added as at the plan. */
      modules: Type.Array(Type.String()),
      plan_hash: Type.String(),
      result: RunResultSchema,
    }),
    { minItems: 1 },
  ),
});
type SavedPlan = Type.Static<typeof SavedPlanSchema>;
type SavedAgent = SavedPlan['agents'][number];
type SavedSource = NonNullable<SavedPlan['sources']>[number];

const plans = validator(SavedPlanSchema);

/** Maximum size; a plan may contain the diffs of a whole fleet. */
const MAX_BYTES = 256 * 1024 * 1024;

export const isPlanFile = (word: string): boolean => word.endsWith(ENDING);

/** Checks the file name before the plan runs. Throws `usage` for a name that `orch apply` would not accept. */
export function requirePlanName(path: string): void {
  if (isPlanFile(path)) return;
  throw new Fault('usage', `--out takes a file whose name ends in ${ENDING}, not "${path}"`, {
    hint: `such as --out next${ENDING}; orch apply knows it by that ending`,
  });
}

/** Writes or replaces the file with access for the owner only, because diffs contain file contents. */
function writePlanFile(path: string, plan: Omit<SavedPlan, 'orchplan'>): void {
  const whole: SavedPlan = { orchplan: plan.values == null ? 2 : VERSION, ...plan };
  try {
    writeOwnFile(path, `${JSON.stringify(whole, null, 1)}\n`);
  } catch (cause) {
    throw new Fault('invalid_plan_file', `the plan cannot be written to ${path}: ${messageOf(cause)}`, { cause });
  }
}

/** Reads a plan. Throws `usage` if the file cannot be read, `invalid_plan_file` if it is not a plan or other users may write it. */
function readPlanFile(path: string): SavedPlan {
  const text = readTextFile(path, MAX_BYTES);
  if (process.platform !== 'win32' && (statSync(path).mode & 0o022) !== 0) {
    throw new Fault(
      'invalid_plan_file',
      `${path} can be changed by other users, so it may not hold what you have seen`,
      {
        hint: 'plan again, and keep the file to yourself: chmod 600',
      },
    );
  }
  const data = parse(path, text);
  if (plans.check(data)) return requireSameModules(path, data);
  const [problem] = plans.problems(data);
  throw invalid(path, problem ? `${problem.path || '/'} ${problem.message}` : 'it has another shape');
}

/**
 * Throws `invalid_plan_file` unless all agents have the same modules and only one goes back to an operation, as in every plan that
 * `savePlan` writes.
 */
function requireSameModules(path: string, plan: SavedPlan): SavedPlan {
  const lists = new Set(plan.agents.map(({ modules }) => JSON.stringify(modules)));
  if (lists.size === 1 && (plan.to == null || plan.agents.length === 1)) return plan;
  throw invalid(path, 'its agents have different modules, or go back to one operation');
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(path, 'it is not JSON');
  }
}

const invalid = (path: string, why: string): Fault =>
  new Fault('invalid_plan_file', `${path} holds no plan that this version of orch can apply: ${why}`, {
    hint: 'make one with: orch plan --out FILE.orchplan NODE…',
  });
