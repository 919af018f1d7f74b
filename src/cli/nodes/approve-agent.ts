/** Approving an agent: what is shown of it, the question, and the request. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent, NamedAgent } from '../../contract/agents.js';
import { groupsOfFour } from '../../identity/key-object.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentHandle, formatTime } from '../format.js';
import { allAgents } from '../list-pages.js';
import { fields, lines, type Outcome } from '../outcome.js';
import { pickAgent } from './resolve-node.js';

interface Approval {
  /** All agents, among which the name and the hostname may occur again. */
  readonly agents: readonly Agent[];
  readonly agent: Agent;
  /** Name of an agent that has none yet. */
  readonly name: string | undefined;
}

/** Shows the key of a pending agent, asks for consent, and approves it. Throws `name_required`, `name_immutable` or `cancelled`. */
export async function approveOne(context: Context, api: ApiClient, approval: Approval): Promise<Outcome> {
  const { agent, name } = approval;
  if (agent.name === null && name === undefined) {
    throw new Fault('name_required', `${agent.node_id} has no name yet`, { hint: 'add --name NAME' });
  }
  if (agent.name !== null && name !== undefined && name !== agent.name) {
    throw new Fault('name_immutable', `this agent is ${agent.name}, and an approval does not rename it`, {
      hint: `approve it without --name, and rename it: orch agents rename ${agent.name} ${name}`,
    });
  }
  await presentPending(context, approval);
  await context.prompt.consent(`Approve this agent${name === undefined ? '' : ` as ${name}`}?`);
  const approved = await approve(context, api, agent, name);
  return { body: approved, names: [agentHandle(approved)], view: lines(approvedLine(approved)) };
}

/** Approves a pending agent at a terminal: asks for the name of one that has none, shows the key, and asks. Throws like `approveOne`. */
export async function askToApprove(context: Context, api: ApiClient, nodeId: string): Promise<Outcome> {
  const agents = await allAgents(api, { signal: context.signal });
  const agent = pickAgent(agents, nodeId, nodeId.length);
  const name = agent.name === null ? await context.prompt.text('Name of the agent', agent.initial_hostname) : undefined;
  return approveOne(context, api, { agents, agent, name });
}

export const approvedLine = ({ name, node_id }: Agent): string => `Approved ${name ?? ''} (${node_id}).`;

/** Approves an agent, without a question. Gives it the name if it has none. */
export async function approve(
  context: Context,
  api: ApiClient,
  agent: Agent,
  name: string | undefined,
): Promise<NamedAgent> {
  const approved = await api.call('setAgentStatus', {
    params: { node_id: agent.node_id },
    body: { status: 'approved', name: agent.name === null ? (name ?? null) : null },
    signal: context.signal,
  });
  warnOfReuse(context, approved);
  return approved;
}

/** Warns when the agent just got a name that another one had, because records of the past may mean that one. */
export function warnOfReuse(context: Context, { name, name_reused: earlier }: NamedAgent): void {
  if (earlier === undefined) return;
  const until = earlier.until === null ? 'before' : `until ${formatTime(earlier.until)}`;
  context.warn(
    `${name} was the name of ${earlier.node_id === null ? 'another agent' : `agent ${earlier.node_id}`} ${until}`,
  );
}

/** Shows the key and origin of an agent, and warns about approved agents with the same hostname. */
export async function presentPending(context: Context, { agents, agent, name }: Approval): Promise<void> {
  await context.present(
    fields(
      ['Public key', groupsOfFour(agent.public_key)],
      ['Node ID', groupsOfFour(agent.node_id)],
      ['Hostname', agent.initial_hostname],
      ['Address', agent.initial_ip],
      ['Last connected', formatTime(agent.connected_at)],
      ['Agent version', agent.agent_version],
    ),
  );
  for (const other of agents) {
    const hostname = other.attributes.hostname ?? other.initial_hostname;
    const alike = hostname === agent.initial_hostname || other.name === agent.initial_hostname || other.name === name;
    if (other.node_id === agent.node_id || other.status !== 'approved' || !alike) continue;
    context.warn(
      `the approved agent ${other.name} (${other.node_id}) has the hostname ${hostname}: this is another key`,
    );
  }
}
