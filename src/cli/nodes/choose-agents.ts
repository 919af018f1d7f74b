/** Chooses the agents of a command: named ones, those of an assignment, or those that a selector matches. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import { allAgents } from '../list-pages.js';
import { flag, text } from '../options.js';
import type { RunAgent } from '../runs/agent-run.js';
import { type AgentCondition, approvedConditionOption, meetsAny } from './agent-conditions.js';
import { resolveNodes } from './resolve-node.js';

/** Options that choose agents beside their names. */
export const selectionOptions = {
  selector: text('SELECTOR', 'all agents that match (orch help selectors)', {
    short: 'l',
    completes: 'selector',
  }),
  status: approvedConditionOption,
  allowEmpty: flag('succeed if no agent matches'),
} as const;

export const fleetOptions = {
  assignment: text('ASSIGNMENT', 'all agents of the assignment', { completes: 'assignment' }),
  ...selectionOptions,
} as const;

interface Selection {
  readonly nodes: readonly string[];
  readonly selector: string | undefined;
  readonly status: readonly AgentCondition[];
  readonly allowEmpty: boolean;
}

interface AgentChoice extends Selection {
  readonly assignment: string | undefined;
}

/** `--selector` of lists of records. */
export const listSelectorOption = text('SELECTOR', 'only of approved agents that match (orch help selectors)', {
  short: 'l',
  completes: 'selector',
});

/** Returns the member of a query. Without a selector it is left out, because earlier orchestrators do not know it. */
export const filterOf = (selector: string | undefined) => (selector === undefined ? {} : { filter: selector });

/** Throws `usage` if a list is narrowed down to one agent and by a selector. */
export function refuseBoth(flag: '--agent' | '--node', node: string | undefined, selector: string | undefined): void {
  if (node === undefined || selector === undefined) return;
  throw new Fault('usage', `${flag} names one agent, so --selector does not go with it`);
}

/** Returns which fleet options were given, by flag, for the check against `--local`. */
export const fleetFlags = ({
  assignment,
  selector,
  status,
}: Pick<AgentChoice, 'assignment' | 'selector' | 'status'>): Readonly<Record<string, boolean>> => ({
  '--assignment': assignment !== undefined,
  '--selector': selector !== undefined,
  '--status': status.length > 0,
});

/** Returns whether `--selector` or `--status` selects the agents. */
export const isSelection = ({ selector, status }: Pick<Selection, 'selector' | 'status'>): boolean =>
  selector !== undefined || status.length > 0;

/** Throws `usage` unless the agents are chosen in exactly one way. `--status` alone selects, or narrows a selector down. */
export function requireOneChoice(choice: AgentChoice, path: string, { local = true } = {}): void {
  const { nodes, assignment } = choice;
  const ways = [nodes.length > 0, assignment !== undefined, isSelection(choice)].filter(Boolean).length;
  if (ways === 1) return;
  if (ways > 1) throw new Fault('usage', 'name agents, or --assignment, or --selector and --status: one of them');
  throw new Fault('usage', `"orch ${path}" needs an agent`, {
    hint: `name it, or choose several with --assignment or --selector${local ? `, or this machine: orch ${path} --local -f FILE` : ''}`,
  });
}

/**
 * Like `requireOneChoice`, for commands that take neither an assignment nor this machine. `rest` completes the command
 * line of the hint.
 */
export function requireSelection(
  choice: Omit<Selection, 'allowEmpty'>,
  path: string,
  rest = '--selector role=web',
): void {
  if (choice.nodes.length > 0 !== isSelection(choice)) return;
  if (choice.nodes.length > 0) throw new Fault('usage', 'name agents, or --selector and --status: one of them');
  throw new Fault('usage', `"orch ${path}" needs an agent`, {
    hint: `name it, or choose several: orch ${path} ${rest}`,
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
  const matching = await allAgents(api, { status: 'approved', filter, signal });
  const agents = matching.filter((agent) => meetsAny(agent, choice.status));
  requireAgents(agents.length, choice);
  return agents;
}

/** Returns the named or selected agents. Throws the faults of `resolveNodes` and `requireAgents`, and `invalid_selector`. */
export const selectAgents = (
  api: ApiClient,
  selection: Selection,
  options: { readonly signal: AbortSignal },
): Promise<readonly Agent[]> => chooseAgents(api, { ...selection, assignment: undefined }, options);

/** Most agents that a command reads from at a time. */
const READS = 8;

/** Reads something about each agent, a few at a time, and returns the answers in the order of the agents. */
export async function readEach<T>(agents: readonly Agent[], read: (agent: Agent) => Promise<T>): Promise<readonly T[]> {
  const answers: T[] = [];
  for (let at = 0; at < agents.length; at += READS) {
    answers.push(...(await Promise.all(agents.slice(at, at + READS).map(read))));
  }
  return answers;
}

/** Agents that the orchestrator walks over. */
export type Fleet =
  | { readonly kind: 'assignment'; readonly assignment: string }
  | { readonly kind: 'selector'; readonly selector: string }
  | { readonly kind: 'agents'; readonly agents: readonly RunAgent[] };

/**
 * Returns the only named agent, or a fleet, whose assignment or selector the orchestrator evaluates. A status is evaluated
 * here. Throws the faults of `chooseAgents`.
 */
export async function chooseTarget(
  api: ApiClient,
  choice: AgentChoice,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly kind: 'agent'; readonly agent: Agent } | Fleet> {
  const { nodes, assignment, selector, status } = choice;
  if (assignment !== undefined) return { kind: 'assignment', assignment };
  if (status.length > 0) return { kind: 'agents', agents: await chooseAgents(api, choice, { signal }) };
  if (selector !== undefined) return { kind: 'selector', selector };
  const agents = await resolveNodes(api, nodes, { signal });
  const [agent, ...others] = agents;
  return agent !== undefined && others.length === 0 ? { kind: 'agent', agent } : { kind: 'agents', agents };
}

/** Throws `agent_not_found` if no agent matches, except with --allow-empty. */
export function requireAgents(agents: number, choice: Omit<AgentChoice, 'nodes'>): void {
  if (agents > 0 || choice.allowEmpty) return;
  throw new Fault('agent_not_found', `no approved agent ${matching(choice)}`, {
    hint: 'see who has which tags: orch agents -o wide; with --allow-empty this is no error',
  });
}

function matching({ assignment, selector, status }: Omit<AgentChoice, 'nodes'>): string {
  const states = status.length === 0 ? '' : `is ${status.join(' or ')}`;
  if (assignment !== undefined) return `matches the selector of assignment ${assignment}`;
  if (selector === undefined) return states;
  return `matches "${selector}"${states === '' ? '' : ` and ${states}`}`;
}
