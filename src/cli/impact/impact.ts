/** Which agents a change of module files reaches, and what it changes for each. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Context } from '../context.js';
import { agentHandle } from '../format.js';
import type { ReadModule } from '../modules/read-modules.js';
import { matchingAssignments, storedModules } from '../modules/stored-modules.js';
import { allAgents } from '../nodes/agent-pages.js';
import { type Comparison, compareDesired } from './compare-desired.js';

/** Agents whose state is read at once. */
const AT_ONCE = 8;

export interface AgentImpact extends Comparison {
  readonly node_id: string;
  readonly name: string;
  /** Of the changed modules, those that the agent has. */
  readonly modules: readonly string[];
}

/** Every approved agent that has one of the modules, applied or assigned, by name. */
export async function impactOf(
  { signal }: Context,
  api: ApiClient,
  changed: readonly ReadModule[],
): Promise<readonly AgentImpact[]> {
  const agents = await allAgents(api, { status: 'approved', signal });
  const assignments = await api.call('listAssignments', { signal });
  const having: { readonly agent: Agent; readonly names: ReadonlySet<string> }[] = [];
  for (let at = 0; at < agents.length; at += AT_ONCE) {
    const some = agents.slice(at, at + AT_ONCE).map(async (agent) => {
      const state = await api.call('getState', { params: { node_id: agent.node_id }, signal });
      const assigned = matchingAssignments(assignments, agent).flatMap(({ modules }) => modules);
      return { agent, names: new Set([...assigned, ...state.applied.map(({ module }) => module)]) };
    });
    having.push(...(await Promise.all(some)));
  }
  const isChanged = (name: string) => changed.some((module) => module.name === name);
  const reached = having.filter(({ names }) => [...names].some(isChanged));
  const stored = await storedModules(
    api,
    reached.flatMap(({ names }) => [...names]),
    signal,
  );
  return reached.map(({ agent, names }) => {
    const before = stored.filter(({ name }) => names.has(name));
    const after = [...names].flatMap(
      (name) => changed.find((module) => module.name === name) ?? before.find((module) => module.name === name) ?? [],
    );
    const facts = factsOf(agent);
    const { node_id, name } = facts;
    return { node_id, name, modules: [...names].filter(isChanged), ...compareDesired(facts, { before, after }) };
  });
}

const factsOf = (agent: Agent) => ({ ...agent, name: agentHandle(agent) });
