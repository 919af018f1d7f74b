/** The fate of the files of an apply, published with it or on trial on its machines, as lines before and after the apply. */
import type { ApiClient } from '../../client/api-client.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import { isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { digestOf, othersOf, type Reach, reached, reachOf } from '../modules/reach.js';
import type { NamedFile } from '../modules/send-modules.js';
import type { AgentRun, RunAgent } from './agent-run.js';

const NOT_YOURS = 'you may not store it for every machine that could get it';

type Agents = readonly Pick<RunAgent, 'node_id' | 'name' | 'initial_hostname'>[];

/** Returns the files, each with the revision that is current now, as the only one that it may replace. */
export async function withBases(
  context: Context,
  api: ApiClient,
  files: readonly NamedFile[],
  agents: Agents,
): Promise<{ readonly files: readonly NamedFile[]; readonly reaches: readonly Reach[] }> {
  const without = new Set(agents.map(({ node_id }) => node_id));
  const reaches: Reach[] = [];
  for (const file of files) reaches.push(await reachOf(context, api, file, without));
  return {
    files: files.map((file, index) => ({ ...file, replaces: file.replaces ?? reaches[index]?.current ?? NO_REVISION })),
    reaches,
  };
}

/** Returns what an apply of the files is about to do with their modules. */
export function beforeLines(reaches: readonly Reach[], agents: Agents): readonly string[] {
  const [only] = agents;
  const where = agents.length === 1 && only !== undefined ? agentName(only) : count(agents.length, 'agent');
  return reaches.flatMap((reach) => {
    const { name, sha256, current } = reach;
    if (sha256 === current) return [];
    const isAlone = reached(reach) === 0;
    if (isAlone && reach.mayStore) return [`Module ${name} is published with it: no other machine follows it.`];
    const why = isAlone ? NOT_YOURS : othersOf(reach);
    return [`Module ${name} goes on trial on ${where} and is not published: ${why}.`];
  });
}

/** Returns the lines about trials of other texts that the applies of these plans end. */
export function endedLines(plans: readonly AgentRun[]): readonly string[] {
  const ended = new Map<string, string[]>();
  for (const plan of plans) {
    const modules = 'result' in plan && 'ends_trial' in plan.result ? (plan.result.ends_trial ?? []) : [];
    const names = modules.join(', ');
    if (names !== '') ended.set(names, [...(ended.get(names) ?? []), agentName(plan.agent)]);
  }
  return [...ended].map(
    ([modules, agents]) =>
      `This ends the trial of ${modules.includes(', ') ? 'modules' : 'module'} ${modules} on ${agents.join(', ')}.`,
  );
}

/** Returns what has become of the files of an apply. An apply that was refused has done nothing with them. */
export async function afterLines(
  context: Context,
  api: ApiClient,
  files: readonly NamedFile[],
  agents: Agents,
): Promise<readonly string[]> {
  const lines: string[] = [];
  const nodes = new Map(agents.map((agent) => [agent.node_id, agent]));
  for (const { name, source, files: beside, replaces } of files) {
    const sha256 = digestOf(source, beside);
    if (sha256 === replaces) continue;
    const reach = await readReach(context, api, { name, source, files: beside });
    if (reach === null) continue;
    if (reach.current === sha256) lines.push(`Published module ${name}.`);
    const [node] = reach.triedBy.filter((id) => nodes.size === 0 || nodes.has(id));
    if (node === undefined) continue;
    const agent = nodes.get(node);
    const from = agent === undefined ? node : (agent.name ?? agent.node_id);
    const others = reached(reach);
    const changed = reach.mayStore ? 'its stored revision has changed meanwhile' : NOT_YOURS;
    const why = others > 0 ? othersOf(reach) : changed;
    lines.push(
      `Module ${name} is on trial, not published: ${why}; publish with: orch module publish --from ${from} ${name}`,
    );
  }
  return lines;
}

/** A session may have ended during a long apply; its result matters more than these lines. */
async function readReach(context: Context, api: ApiClient, file: Parameters<typeof reachOf>[2]) {
  try {
    return await reachOf(context, api, file);
  } catch (error) {
    if (!isFault(error)) throw error;
    return null;
  }
}
