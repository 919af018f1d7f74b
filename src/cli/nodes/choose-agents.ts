/** Chooses the agents of a command: named ones, those of an assignment, or those that a selector matches. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import { flag, text } from '../define-command.js';
import { allAgents } from '../list-pages.js';
import type { RunAgent } from '../runs/agent-run.js';
import { resolveNodes } from './resolve-node.js';

export const fleetOptions = {
  assignment: text('ASSIGNMENT', 'all agents that the assignment matches now', { completes: 'assignment' }),
  selector: text('SELECTOR', 'all agents that match (see: orch help selectors)', { short: 'l' }),
  allowEmpty: flag('succeed if no agent matches'),
} as const;

interface AgentChoice {
  readonly nodes: readonly string[];
  readonly assignment: string | undefined;
  readonly selector: string | undefined;
  readonly allowEmpty: boolean;
}

/** Returns which fleet options were given, by flag, for the check against `--local`. */
export const fleetFlags = ({
  assignment,
  selector,
}: Pick<AgentChoice, 'assignment' | 'selector'>): Readonly<Record<string, boolean>> => ({
  '--assignment': assignment !== undefined,
  '--selector': selector !== undefined,
});

/** Throws `usage` unless the agents are chosen in exactly one way. */
export function requireOneChoice({ nodes, assignment, selector }: AgentChoice, path: string): void {
  const ways = [nodes.length > 0, assignment !== undefined, selector !== undefined].filter(Boolean).length;
  if (ways === 1) return;
  if (ways > 1) throw new Fault('usage', 'name agents, or --assignment, or --selector: one of them');
  throw new Fault('usage', `"orch ${path}" needs an agent`, {
    hint: `name it, or choose several with --assignment or --selector, or this machine: orch ${path} --local -f FILE`,
  });
}

/** Returns the chosen agents. Throws the faults of `resolveNodes` and `requireAgents`, `assignment_not_found` and `invalid_selector`. */
export async function chooseAgents(
  api: ApiClient,
  choice: AgentChoice,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Agent[]> {
  const { nodes, assignment } = choice;
  if (nodes.length > 0) return resolveNodes(api, nodes, { signal });
  const filter =
    assignment === undefined
      ? choice.selector
      : (await api.call('getAssignment', { params: { name: assignment }, signal })).selector;
  const agents = await allAgents(api, { status: 'approved', filter, signal });
  requireAgents(agents.length, choice);
  return agents;
}

/** Agents that the orchestrator walks over. */
export type Fleet =
  | { readonly kind: 'assignment'; readonly assignment: string }
  | { readonly kind: 'selector'; readonly selector: string }
  | { readonly kind: 'agents'; readonly agents: readonly RunAgent[] };

/** Returns the only named agent, or a fleet, whose assignment or selector the orchestrator evaluates. Throws the faults of `resolveNodes`. */
export async function chooseTarget(
  api: ApiClient,
  { nodes, assignment, selector }: Omit<AgentChoice, 'allowEmpty'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly kind: 'agent'; readonly agent: Agent } | Fleet> {
  if (assignment !== undefined) return { kind: 'assignment', assignment };
  if (selector !== undefined) return { kind: 'selector', selector };
  const agents = await resolveNodes(api, nodes, { signal });
  const [agent, ...others] = agents;
  return agent !== undefined && others.length === 0 ? { kind: 'agent', agent } : { kind: 'agents', agents };
}

/** Throws `agent_not_found` if no agent matches, except with --allow-empty. */
export function requireAgents(agents: number, { assignment, selector, allowEmpty }: Omit<AgentChoice, 'nodes'>): void {
  if (agents > 0 || allowEmpty) return;
  const what = assignment === undefined ? `"${selector ?? ''}"` : `the selector of assignment ${assignment}`;
  throw new Fault('agent_not_found', `no approved agent matches ${what}`, {
    hint: 'see who has which tags: orch agents -o wide; with --allow-empty this is no error',
  });
}
