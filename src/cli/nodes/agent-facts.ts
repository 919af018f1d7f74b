/** Reads the facts of agents for commands that resolve modules themselves. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent, AgentFactsAnswer } from '../../contract/agents.js';
import type { CompiledModule } from '../../language/compile-module.js';
import type { AgentFacts, ReportedFacts } from '../../language/evaluate.js';
import { factsRead } from '../../language/facts-read.js';
import type { Value } from '../../language/values.js';

/** Maximum number of parallel requests. */
const AT_ONCE = 8;

interface FactsOptions {
  /** Modules that are resolved for the agents. */
  readonly modules: readonly { readonly compiled: CompiledModule }[];
  readonly signal: AbortSignal;
  /** Returns the name of an agent as expressions see it [default: its name, empty without one]. */
  readonly nameOf?: (agent: Agent) => string;
}

/** Returns agents as modules see them. Asks for what they report beside their attributes only if a module reads it. */
export async function factsOfAgents(
  api: ApiClient,
  agents: readonly Agent[],
  { modules, signal, nameOf = ({ name }) => name ?? '' }: FactsOptions,
): Promise<readonly AgentFacts[]> {
  const named = agents.map((agent) => ({ ...agent, name: nameOf(agent) }));
  if (!modules.some(({ compiled }) => factsRead(compiled).areReported)) return named;
  const all: AgentFacts[] = [];
  for (let at = 0; at < named.length; at += AT_ONCE) {
    const some = named.slice(at, at + AT_ONCE).map(async (agent): Promise<AgentFacts> => {
      const answer = await api.call('getAgentFacts', { params: { node_id: agent.node_id }, signal });
      return { ...agent, facts: reportedIn(answer) };
    });
    all.push(...(await Promise.all(some)));
  }
  return all;
}

function reportedIn({ attributes, facts }: AgentFactsAnswer): ReportedFacts {
  const known = Object.entries(facts).flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]]));
  const { interfaces, disks, mounts, packages } = attributes;
  // The orchestrator has checked the types of these.
  return {
    parts: { interfaces, disks, mounts, packages } as ReportedFacts['parts'],
    own: Object.fromEntries(known) as Readonly<Record<string, Value>>,
  };
}
