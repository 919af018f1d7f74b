/** The commands of `orch agents`, and `orch tags`. */

import type { ApiClient } from '../../client/api-client.js';
import { AGENT_STATUSES } from '../../contract/agent-statuses.js';
import type { Agent } from '../../contract/agents.js';
import { STANDINGS } from '../../contract/standing-names.js';
import { groupsOfFour } from '../../identity/key-object.js';
import { Fault } from '../../kernel/fault.js';
import { compareVersions } from '../../release/version-order.js';
import type { Context } from '../context.js';
import { argumentList, choice, defineCommand, flag, optionalArgument, text } from '../define-command.js';
import { agentHandle, agentName, formatTags, formatTime, NONE, textOrNone } from '../format.js';
import { allAgents } from '../list-pages.js';
import { nodeArgument, pickAgent, resolveNode } from '../nodes/resolve-node.js';
import {
  type FieldsView,
  fields,
  fieldsOf,
  headed,
  lines,
  linesOf,
  type Outcome,
  type Span,
  stack,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { standingFields, standingSpan } from '../render/standing.js';
import { parseTag } from '../tag-arguments.js';

/** `orch agents list`. */
export const listAgents = defineCommand({
  examples: [
    'orch agents',
    'orch agents --status pending',
    'orch agents --offline',
    'orch agents --standing behind',
    'orch agents --selector "platform=linux,role=web"',
  ],
  access: 'viewer',
  options: {
    status: choice('STATUS', AGENT_STATUSES, 'filter by status'),
    standing: choice('STANDING', STANDINGS, 'filter by standing'),
    selector: text('SELECTOR', 'only agents that match (see: orch help selectors)', { short: 'l' }),
    filter: text('SELECTOR', 'the same as --selector'),
    offline: flag('only approved agents that are not connected'),
  },
  run: async (context, { status, standing, selector, filter = selector, offline }) => {
    if (selector !== undefined && selector !== filter) {
      throw new Fault('usage', '--selector and --filter are the same: give one of them');
    }
    if (offline && status !== undefined && status !== 'approved') {
      throw new Fault('usage', `--offline is about approved agents, so --status ${status} does not go with it`);
    }
    const query = { status: offline ? 'approved' : status, standing, filter, signal: context.signal } as const;
    const api = await context.api();
    const [all, { version }] = await Promise.all([
      allAgents(api, query),
      api.call('getStatus', { signal: query.signal }),
    ]);
    const agents = offline ? all.filter(({ connected }) => !connected) : all;
    return {
      body: agents,
      names: agents.map(agentHandle),
      view: agentTable(agents, {
        wide: context.globals.output === 'wide',
        version,
        filtered: status !== undefined || standing !== undefined || filter !== undefined || offline,
      }),
    };
  },
});

/** `orch agents show`. */
export const showAgent = defineCommand({
  examples: ['orch agents show web-01'],
  access: 'viewer',
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const agent = await resolveNode(await context.api(), node, { signal: context.signal });
    return { body: agent, names: [agentHandle(agent)], view: agentDetails(agent) };
  },
});

/** Eight hex digits: too many to forge a matching key by brute force at the prompt. */
const LEAST_PREFIX = 8;

/** `orch agents approve`. */
export const approveAgents = defineCommand({
  examples: ['orch agents approve 3f2a91c4 --name web-01', 'orch agents approve --all-pending'],
  detail: [
    'Shows the key of the agent and its hash, the node ID, then asks. Compare the node ID with that of "orch agent status"',
    'on the machine: the holder of the key acts as the machine from then on, and receives its secrets.',
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
    name: text('NAME', 'name of the agent; cannot be changed later'),
    allPending: flag('ask about each pending agent; the hostname becomes the name'),
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

/** `orch agents reject`. */
export const rejectAgent = defineCommand({
  examples: ['orch agents reject web-01'],
  detail: [
    'Revokes an approved agent: its connection and its terminals close at once. Applied resources stay on the machine.',
  ],
  access: 'operator',
  consent: true,
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    await context.prompt.consent(`Reject ${agentName(agent)} (${agent.status}, ${agent.node_id})?`);
    const rejected = await api.call('setAgentStatus', {
      params: { node_id: agent.node_id },
      body: { status: 'rejected' },
      signal: context.signal,
    });
    return { body: rejected, names: [agentHandle(rejected)], view: lines(`Rejected ${agentName(rejected)}.`) };
  },
});

/** `orch agents remove`. */
export const removeAgent = defineCommand({
  examples: ['orch agents remove web-01'],
  detail: ['Removes the record of a rejected agent. Reject it first: orch agents reject NODE'],
  access: 'operator',
  consent: true,
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    await context.prompt.consent(`Remove the record of ${agentName(agent)} (${agent.status}, ${agent.node_id})?`);
    await api.call('removeAgent', { params: { node_id: agent.node_id }, signal: context.signal });
    return { names: [agentHandle(agent)], view: lines(`Removed ${agentName(agent)}.`) };
  },
});

/** `orch agents tag`. */
export const tagAgent = defineCommand({
  examples: ['orch agents tag web-01 role=web env=prod', 'orch agents tag web-01 canary'],
  access: 'operator',
  args: {
    node: nodeArgument,
    tags: argumentList('KEY[=VALUE]', 'tags to add; an existing tag gets the new value'),
  },
  run: async (context, { node, tags }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    const params = { node_id: agent.node_id };
    for (const [key, value] of new Map(tags.map(parseTag))) {
      await api.call('setTag', { params: { ...params, key }, body: { value }, signal: context.signal });
    }
    return taggedOutcome(await api.call('getAgent', { params, signal: context.signal }));
  },
});

/** `orch agents untag`. */
export const untagAgent = defineCommand({
  examples: ['orch agents untag web-01 canary'],
  access: 'operator',
  args: { node: nodeArgument, keys: argumentList('KEY', 'keys of the tags to remove') },
  run: async (context, { node, keys }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    const params = { node_id: agent.node_id };
    for (const key of new Set(keys)) {
      await api.call('removeTag', { params: { ...params, key }, signal: context.signal });
    }
    return taggedOutcome(await api.call('getAgent', { params, signal: context.signal }));
  },
});

/** `orch tags`. */
export const listTags = defineCommand({
  examples: ['orch tags'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const body = await api.call('listTags', { signal: context.signal });
    const keys = Object.keys(body.tags).sort();
    return {
      body,
      names: keys,
      view: {
        kind: 'table',
        columns: [{ title: 'TAG', whole: true }, { title: 'VALUES' }],
        rows: keys.map((key) => [key, (body.tags[key] ?? []).filter((value) => value !== '').join(', ')]),
        empty: 'No agent has a tag. Put one on with: orch agents tag NODE role=web',
      },
    };
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
      hint: 'approve it without --name, or reject and remove it, and enrol it again',
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
  const rows = approved.map(approvedLine);
  return {
    body: approved,
    names: approved.map(agentHandle),
    view: linesOf(pending.length === 0 ? ['No agent is waiting for approval.'] : [...rows, total(approved, pending)]),
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

/** Shows the key and origin of an agent, and warns about approved agents with the same hostname. */
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

/** The outcome of a tag change: the agent with its new tags. */
export function taggedOutcome(agent: Agent): Outcome {
  const tags = formatTags(agent.tags);
  const message = tags === '' ? `${agentName(agent)} has no tags now.` : `${agentName(agent)} has the tags: ${tags}`;
  return { body: agent, names: [agentHandle(agent)], view: lines(message) };
}

/** Characters of a shown node ID; approval needs 8. */
const SHORT_ID = 12;

export interface AgentTableOptions {
  readonly wide: boolean;
  /** Version of the orchestrator. */
  readonly version: string;
  /** True if the list was filtered, so that other agents may exist. */
  readonly filtered: boolean;
}

export const agentTable = (agents: readonly Agent[], { wide, version, filtered }: AgentTableOptions): TableView => ({
  kind: 'table',
  columns: [
    { title: 'NAME', whole: true },
    { title: 'STATUS', whole: true },
    { title: 'CONNECTED', whole: true },
    { title: 'STANDING', whole: true },
    { title: 'HOSTNAME' },
    { title: 'PLATFORM' },
    { title: 'NODE ID', whole: true },
    { title: 'TAGS' },
    // In a fleet of one version the column says nothing.
    {
      title: 'VERSION',
      whole: true,
      wide: agents.every(({ agent_version }) => agent_version === version),
    },
    { title: 'ADDRESS', wide: true },
    { title: 'LAST CONNECTED', wide: true },
  ],
  rows: agents.map((agent) => [
    textOrNone(agent.name),
    agentStatus(agent.status),
    agent.connected ? styled('good', 'yes') : styled('dim', 'no'),
    standingSpan(agent),
    agent.attributes.hostname ?? agent.initial_hostname,
    textOrNone(platformOf(agent)),
    wide ? agent.node_id : agent.node_id.slice(0, SHORT_ID),
    formatTags(agent.tags),
    versionOf(agent, version),
    agent.initial_ip,
    wide ? textOrNone(formatTime(agent.connected_at)) : '',
  ]),
  empty: filtered
    ? 'No matching agents. List all with: orch agents'
    : 'No agents. Run on a machine: orch agent connect HOST --orchestrator-key KEY (the key is in: orch status)',
});

/** Returns the version of an agent, and how it differs from that of the orchestrator. */
function versionOf({ agent_version }: Agent, version: string): Span {
  if (agent_version === version) return agent_version;
  const difference = compareVersions(agent_version, version);
  const [word] = [difference < 0 && 'older', difference > 0 && 'newer', 'other'].filter((one) => one !== false);
  return styled('warn', `${agent_version} (${word})`);
}

export function agentDetails(agent: Agent): View {
  const attributes = Object.entries(agent.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  return stack(
    agentFields(agent),
    headed('Attributes', fieldsOf(attributes.map(([key, value]) => [`  ${key}`, value] as const))),
  );
}

function agentFields(agent: Agent): FieldsView {
  return fields(
    ['Name', textOrNone(agent.name)],
    ['Status', agentStatus(agent.status)],
    ['Connected', agent.connected ? styled('good', 'yes') : 'no'],
    ['Last connected', agent.connected_at === 0 ? 'never' : formatTime(agent.connected_at)],
    ...standingFields(agent),
    ['Node ID', groupsOfFour(agent.node_id)],
    ['Public key', agent.public_key],
    ['First hostname', agent.initial_hostname],
    ['First address', agent.initial_ip],
    ['Agent version', agent.agent_version],
    ['Tags', formatTags(agent.tags) || NONE],
    ['Updated', formatTime(agent.updated_at)],
  );
}

export function agentStatus(status: Agent['status']): Span {
  if (status === 'approved') return styled('good', status);
  return styled(status === 'pending' ? 'warn' : 'bad', status);
}

/** Returns `debian 12 amd64`, without the parts that the agent does not report. */
function platformOf({ attributes }: Agent): string {
  const { distro, platform, version, arch } = attributes;
  return [distro ?? platform, version, arch].filter((part) => part).join(' ');
}
