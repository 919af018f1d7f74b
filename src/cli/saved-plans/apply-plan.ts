/** Applies a saved plan: to its agents, its modules, and only what it showed. */
import { createHash } from 'node:crypto';
import type { ApiClient } from '../../client/api-client.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { formatTime } from '../format.js';
import { currentDigest } from '../modules/run-modules.js';
import { sendModule } from '../modules/upload.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import { runsView } from '../render/runs.js';
import type { AgentRun } from '../runs/agent-run.js';
import { applyAgents } from '../runs/apply-agents.js';
import { questionFor } from '../runs/confirm-apply.js';
import { readPlanFile, type SavedPlan, type SavedSource } from './saved-plan.js';

export interface PlanToApply {
  readonly path: string;
  readonly allowRemovals: number | null;
}

/**
 * Stores the modules that the plan brought along, then applies it. Throws `wrong_orchestrator` for the plan of another one,
 * `plan_stale` when a module that it would replace has changed since. An agent that has changed since refuses as `plan_stale`.
 */
export async function applyPlan(
  context: Context,
  api: ApiClient,
  { path, allowRemovals }: PlanToApply,
): Promise<readonly AgentRun[]> {
  const plan = readPlanFile(path);
  await requireSameOrchestrator(context, api, plan);
  await changedSources(context, api, plan);
  const ids = plan.agents.map(({ node_id }) => node_id);
  const agents = await resolveNodes(api, ids, { signal: context.signal });
  const planned = agents.flatMap((agent) => {
    const saved = plan.agents.find(({ node_id }) => node_id === agent.node_id);
    return saved === undefined ? [] : [{ agent, saved, result: saved.result }];
  });
  if (!context.globals.yes) await ask(context, plan, planned);
  await storeSources(context, api, plan);
  const targets = planned.map(({ agent, saved }) => ({
    agent,
    planHash: saved.plan_hash,
    modules: saved.modules,
  }));
  return applyAgents(context, api, { targets, modules: [], allowRemovals });
}

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

/** The modules of the plan that the orchestrator does not have yet. Throws `plan_stale` where it has one of somebody else since. */
async function changedSources(context: Context, api: ApiClient, { sources }: SavedPlan): Promise<SavedSource[]> {
  const changed: SavedSource[] = [];
  for (const source of sources ?? []) {
    const current = await currentDigest(context, api, source.name);
    if (current === createHash('sha256').update(source.content).digest('hex')) continue;
    if (current !== source.replaces) {
      throw new Fault('plan_stale', `module ${source.name} has changed on the orchestrator since the plan`, {
        hint: `the plan would replace what is there now: plan again (orch module diff ${source.path} compares)`,
        data: { module: source.name, planned: source.replaces, current },
      });
    }
    changed.push(source);
  }
  return changed;
}

/** After the answer: what was planned becomes the current revision for everyone. */
async function storeSources(context: Context, api: ApiClient, plan: SavedPlan): Promise<void> {
  for (const { name, path, content } of await changedSources(context, api, plan)) {
    await sendModule(context, api, { name, path, source: content });
    context.note(`Stored module ${name} as it was planned (${path}).`);
  }
}

type Planned = Extract<AgentRun, { readonly result: unknown }>;

async function ask(context: Context, plan: SavedPlan, planned: readonly Planned[]): Promise<void> {
  const changing = planned.filter(({ result }) => result.has_changes);
  if (changing.length === 0) return;
  await context.present(runsView(planned, { kind: 'plan', verbose: context.globals.verbose }));
  context.note(`Planned at ${formatTime(plan.created_at)}.`);
  await context.prompt.consent(questionFor(changing));
}
