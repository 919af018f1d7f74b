/** Keeps what a plan showed in a file, for `orch apply FILE`. */
import type { ApiClient } from '../../client/api-client.js';
import { toSeconds } from '../../kernel/clock.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { currentDigest, type RunModules } from '../modules/run-modules.js';
import { type AgentRun, hasResult } from '../runs/agent-run.js';
import { type SavedAgent, type SavedSource, writePlanFile } from './saved-plan.js';

export interface PlanToSave {
  readonly path: string;
  /** The modules that were named. */
  readonly modules: RunModules;
  readonly runs: readonly AgentRun[];
}

/** Agents without a whole plan are left out, and named. Nothing is written when no agent has one. */
export async function savePlan(context: Context, api: ApiClient, { path, modules, runs }: PlanToSave): Promise<void> {
  const saved = runs.map((run) => savedAgent(run, modules.names));
  const agents = saved.filter((one) => one !== null);
  for (const [index, run] of runs.entries()) {
    if (saved[index] === null) context.warn(`${agentName(run.agent)} could not be planned, so it is not in ${path}`);
  }
  if (agents.length === 0) return;
  const { public_key } = await api.call('getStatus', { signal: context.signal });
  const orchestrator = { public_key, url: api.url.href.replace(/\/$/, '') };
  const sources = await sourcesOf(context, api, modules);
  writePlanFile(path, { created_at: toSeconds(context.clock.now()), orchestrator, sources, agents });
  context.progress.end();
  context.note(`Saved the plan of ${count(agents.length, 'agent')}. Apply exactly this with: orch apply ${path}`);
}

async function sourcesOf(context: Context, api: ApiClient, { files }: RunModules): Promise<SavedSource[]> {
  const sources: SavedSource[] = [];
  for (const { path, name, source } of files) {
    sources.push({ name, path, content: source, replaces: await currentDigest(context, api, name) });
  }
  return sources;
}

function savedAgent(run: AgentRun, modules: readonly string[]): SavedAgent | null {
  if (!hasResult(run) || !('plan_hash' in run.result)) return null;
  const { agent, result } = run;
  if (result.status !== 'succeeded' || result.plan_hash === null) return null;
  return { node_id: agent.node_id, name: agent.name, modules: [...modules], plan_hash: result.plan_hash, result };
}
