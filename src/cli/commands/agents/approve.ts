/** `orch agents approve`. */
import type { ApiClient } from '../../../client/api-client.js';
import type { Agent } from '../../../contract/agents.js';
import { groupsOfFour } from '../../../identity/key-id.js';
import { Fault } from '../../../kernel/fault.js';
import { optionalArgument } from '../../argument.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { agentHandle, formatTime } from '../../format.js';
import { allAgents } from '../../nodes/agent-pages.js';
import { pickAgent } from '../../nodes/resolve-node.js';
import { flag, text } from '../../option.js';
import { fields, lines, linesOf } from '../../view.js';

/** Nobody computes a key whose ID begins with eight given digits in passing. */
const LEAST_PREFIX = 8;

export const command = defineCommand({
  examples: ['orch agents approve 3f2a91c4 --name web-01', 'orch agents approve --all-pending'],
  detail: [
    'Shows the key of the agent and its hash, the node ID, before it asks. Compare the node ID with what "orch agent status"',
    'says on the machine: whoever holds the key is the machine from then on, and gets the secrets that are meant for it.',
  ],
  access: 'operator',
  consent: true,
  args: {
    node: optionalArgument(
      'NODE',
      `node ID, or a unique beginning of one (${LEAST_PREFIX} characters or more)`,
      'node',
    ),
  },
  options: {
    name: text('NAME', 'how the agent is called; never changes'),
    allPending: flag('go through every pending agent; each takes its hostname as its name'),
  },
  run: async (context, { node, name, allPending }) => {
    if (allPending === (node !== undefined)) {
      throw new Fault('usage', 'name one NODE, or give --all-pending', { hint: 'see: orch agents approve --help' });
    }
    if (allPending && name !== undefined) throw new Fault('usage', '--name goes with one NODE, not with --all-pending');
    if (allPending && context.globals.yes) {
      throw new Fault('usage', '--all-pending asks about each agent, so --yes does not go with it');
    }
    const api = await context.api();
    const agents = await allAgents(api, { signal: context.signal });
    if (node !== undefined)
      return approveOne(context, api, { agents, agent: pickAgent(agents, node, LEAST_PREFIX), name });
    return approveAll(context, api, agents);
  },
});

interface Approval {
  readonly agents: readonly Agent[];
  readonly agent: Agent;
  readonly name: string | undefined;
}

async function approveOne(context: Context, api: ApiClient, approval: Approval) {
  const { agent, name } = approval;
  if (agent.name === null && name === undefined) {
    throw new Fault('name_required', `${agent.node_id} has no name yet`, { hint: 'add --name NAME' });
  }
  if (agent.name !== null && name !== undefined && name !== agent.name) {
    throw new Fault('name_immutable', `this agent is ${agent.name} and keeps that name`, {
      hint: 'approve it without --name, or reject and remove it and let it enrol anew',
    });
  }
  await present(context, approval);
  await context.prompt.consent(`Approve this agent${name === undefined ? '' : ` as ${name}`}?`);
  const approved = await approve(context, api, agent, name);
  return { body: approved, names: [agentHandle(approved)], view: lines(approvedLine(approved)) };
}

async function approveAll(context: Context, api: ApiClient, agents: readonly Agent[]) {
  const pending = agents.filter(({ status }) => status === 'pending');
  const approved: Agent[] = [];
  for (const agent of pending) {
    const name = agent.name ?? agent.initial_hostname;
    await present(context, { agents, agent, name });
    const instead = 'approve each by itself: orch agents approve NODE --name NAME --yes';
    if (await context.prompt.confirm(`Approve it as ${name}?`, instead)) {
      approved.push(await approve(context, api, agent, name));
    }
  }
  const told = approved.map(approvedLine);
  return {
    body: approved,
    names: approved.map(agentHandle),
    view: linesOf(pending.length === 0 ? ['No agent is waiting for approval.'] : [...told, total(approved, pending)]),
  };
}

const total = (approved: readonly Agent[], pending: readonly Agent[]): string =>
  `Approved ${approved.length} of ${pending.length} pending agents.`;

const approvedLine = ({ name, node_id }: Agent): string => `Approved ${name ?? ''} (${node_id}).`;

const approve = (context: Context, api: ApiClient, agent: Agent, name: string | undefined): Promise<Agent> =>
  api.call('setAgentStatus', {
    params: { node_id: agent.node_id },
    body: { status: 'approved', name: agent.name === null ? (name ?? null) : null },
    signal: context.signal,
  });

/** What a person needs to see before the answer. */
async function present(context: Context, { agents, agent, name }: Approval): Promise<void> {
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
