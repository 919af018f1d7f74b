/** The commands of `orch agents`, and `orch tags`. */

import type { ApiClient } from '../../client/api-client.js';
import { AGENT_STATUSES, type AgentStatus } from '../../contract/agent-statuses.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { defineCommand, optionalArgument, optionalList } from '../define-command.js';
import { agentHandle, agentName, count, formatTags, timeCells } from '../format.js';
import { showsWideColumns } from '../global-options.js';
import { allAgents } from '../list-pages.js';
import { type AgentCondition, conditionOption, meetsAny } from '../nodes/agent-conditions.js';
import { AGENT_COLUMNS, agentDetails, agentTable } from '../nodes/agent-view.js';
import { approve, approvedLine, approveOne, presentPending } from '../nodes/approve-agent.js';
import { isSelection, requireSelection, selectAgents, selectionOptions } from '../nodes/choose-agents.js';
import { nodeArgument, optionalNodeArgument, pickAgent, resolveNode } from '../nodes/resolve-node.js';
import { flag, text } from '../options.js';
import { type Column, type Line, lines, linesOf, type Outcome, proseOf, type View } from '../outcome.js';
import { parseTag } from '../tag-arguments.js';
import { watchList, watchOption } from '../watch-list.js';

/** `orch agents list`. */
export const listAgents = defineCommand({
  examples: [
    'orch agents',
    'orch agents --status pending',
    'orch agents --status offline,drifted -l role=web',
    'orch agents --selector "platform=linux,role=web" --watch',
  ],
  detail: [
    'Several states select the agents in any of them. All but pending, approved and rejected are states of approved',
    'agents.',
  ],
  access: 'viewer',
  columns: AGENT_COLUMNS,
  options: {
    status: conditionOption,
    selector: text('SELECTOR', 'only agents that match (orch help selectors)', {
      short: 'l',
      completes: 'selector',
    }),
    filter: text('SELECTOR', 'the same as --selector'),
    watch: watchOption,
  },
  run: async (context, { status: conditions, selector, filter = selector, watch }) => {
    if (selector !== undefined && selector !== filter) {
      throw new Fault('usage', '--selector and --filter are the same: give one of them');
    }
    const api = await context.api();
    const read = async ({ signal, globals, clock }: Context): Promise<Outcome> => {
      const query = { status: statusOf(conditions), filter, signal };
      const [all, { version }] = await Promise.all([allAgents(api, query), api.call('getStatus', { signal })]);
      const agents = all.filter((agent) => meetsAny(agent, conditions));
      const filtered = conditions.length > 0 || filter !== undefined;
      return {
        body: agents,
        records: agents,
        names: agents.map(agentHandle),
        view: agentTable(agents, {
          wide: showsWideColumns(globals),
          fullIds: globals.output === 'wide' || globals.arrangement?.columns != null,
          timeOf: timeCells(clock.now(), globals),
          version,
          filtered,
        }),
      };
    };
    return watch ? watchList(context, api, { read, category: 'agent' }) : read(context);
  },
});

/** Returns the status that the API filters by, if one covers all conditions. */
function statusOf(conditions: readonly AgentCondition[]): AgentStatus | undefined {
  const statuses = conditions.map((condition) => AGENT_STATUSES.find((status) => status === condition) ?? 'approved');
  return new Set(statuses).size === 1 ? statuses[0] : undefined;
}

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
    'Shows the key of the agent and its node ID, then asks. Compare the node ID with that of "orch agent status" on',
    'the machine: the holder of the key receives the secrets of the machine.',
  ],
  access: 'operator',
  consent: true,
  args: {
    node: optionalArgument('NODE', `node ID, or a unique prefix of ${LEAST_PREFIX} characters or more`, 'node'),
  },
  options: {
    name: text('NAME', 'name of the agent; orch agents rename changes it'),
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

/** Options that select agents of any status. */
const anySelectionOptions = { ...selectionOptions, status: conditionOption } as const;

/** `orch agents reject`. */
export const rejectAgent = defineCommand({
  examples: ['orch agents reject web-01', 'orch agents reject -l role=old --status offline'],
  detail: [
    'The connection and the terminals of the agent close at once. Applied resources stay on the machine.',
    'With --selector or --status it asks once for all agents.',
  ],
  access: 'operator',
  consent: true,
  args: { node: optionalNodeArgument },
  options: anySelectionOptions,
  run: async (context, { node, ...selection }) => {
    const api = await context.api();
    const { agents, isOne } = await pickOrSelect(context, api, { node, ...selection }, 'agents reject');
    const open = isOne ? agents : agents.filter(({ status }) => status !== 'rejected');
    await consentToAll(context, 'Reject', open);
    const rejected: Agent[] = [];
    for (const { node_id } of open) {
      const body = { status: 'rejected' as const };
      rejected.push(await api.call('setAgentStatus', { params: { node_id }, body, signal: context.signal }));
    }
    return {
      body: isOne ? rejected[0] : rejected,
      names: rejected.map(agentHandle),
      view: changedLines(rejected, (agent) => `Rejected ${agentName(agent)}.`),
    };
  },
});

/** `orch agents remove`. */
export const removeAgent = defineCommand({
  examples: ['orch agents remove web-01', 'orch agents remove --status rejected'],
  detail: [
    'Reject it first: orch agents reject NODE.',
    'With --selector or --status it leaves out the agents that are not rejected.',
  ],
  access: 'operator',
  consent: true,
  args: { node: optionalNodeArgument },
  options: anySelectionOptions,
  run: async (context, { node, ...selection }) => {
    const api = await context.api();
    const { agents, isOne } = await pickOrSelect(context, api, { node, ...selection }, 'agents remove');
    const removable = isOne ? agents : agents.filter(({ status }) => status === 'rejected');
    await consentToAll(context, 'Remove the record of', removable);
    for (const { node_id } of removable) {
      await api.call('removeAgent', { params: { node_id }, signal: context.signal });
    }
    return {
      names: removable.map(agentHandle),
      view: changedLines(removable, (agent) => `Removed ${agentName(agent)}.`),
    };
  },
});

interface PickedAgents {
  readonly node: string | undefined;
  readonly selector: string | undefined;
  readonly status: readonly AgentCondition[];
  readonly allowEmpty: boolean;
}

/** Returns the named agent, or all that the options select, whatever their status. Throws `usage` unless they choose in one way. */
async function pickOrSelect(
  { signal }: Context,
  api: ApiClient,
  { node, ...selection }: PickedAgents,
  path: string,
): Promise<{ readonly agents: readonly Agent[]; readonly isOne: boolean }> {
  requireSelection({ nodes: node === undefined ? [] : [node], ...selection }, path);
  if (node !== undefined) return { agents: [await resolveNode(api, node, { signal })], isOne: true };
  const all = await allAgents(api, { filter: selection.selector, signal });
  const agents = all.filter((agent) => meetsAny(agent, selection.status));
  if (agents.length === 0 && !selection.allowEmpty) {
    throw new Fault('agent_not_found', 'no agent is selected', { hint: 'look with the same options at: orch agents' });
  }
  return { agents, isOne: false };
}

/** Names the agents and asks once. Throws `cancelled`. */
async function consentToAll(context: Context, verb: string, agents: readonly Agent[]): Promise<void> {
  const [first, ...others] = agents;
  if (first === undefined) return;
  if (others.length === 0) {
    return context.prompt.consent(`${verb} ${agentName(first)} (${first.status}, ${first.node_id})?`);
  }
  const named = agents.map((agent): Line => `  ${agentName(agent)}  ${agent.status}  ${agent.node_id}`);
  if (!context.globals.yes) await context.present(linesOf(named));
  await context.prompt.consent(`${verb} these ${count(agents.length, 'agent')}?`);
}

const changedLines = (agents: readonly Agent[], lineOf: (agent: Agent) => string): View =>
  proseOf(agents.length === 0 ? ['No agent is selected.'] : agents.map(lineOf));

/** `orch agents tag`. */
export const tagAgent = defineCommand({
  examples: [
    'orch agents tag web-01 role=web env=prod',
    'orch agents tag web-01 canary',
    'orch agents tag -l distro=debian --status online os=debian',
  ],
  detail: ['With --selector or --status all words are tags, and it asks before it changes several agents.'],
  access: 'operator',
  consent: true,
  args: {
    node: optionalNodeArgument,
    tags: optionalList('KEY[=VALUE]', 'tags to add; an existing tag gets the new value', 'tag'),
  },
  options: selectionOptions,
  run: async (context, { node, tags, ...selection }) => {
    const { agents, words, isOne } = await taggedAgents(context, { node, words: tags, ...selection }, 'tag');
    const added = [...new Map(words.map(parseTag))];
    if (agents.length > 1) await consentToAll(context, 'Tag', agents);
    const api = await context.api();
    return changeTags(context, api, { agents, isOne }, async (node_id) => {
      for (const [key, value] of added) {
        await api.call('setTag', { params: { node_id, key }, body: { value }, signal: context.signal });
      }
    });
  },
});

/** `orch agents untag`. */
export const untagAgent = defineCommand({
  examples: ['orch agents untag web-01 canary', 'orch agents untag -l canary canary'],
  detail: [
    'With --selector or --status all words are keys, agents without the tag are left out, and it asks if there are several.',
  ],
  access: 'operator',
  consent: true,
  args: { node: optionalNodeArgument, keys: optionalList('KEY', 'keys of the tags to remove', 'tag') },
  options: selectionOptions,
  run: async (context, { node, keys, ...selection }) => {
    const chosen = await taggedAgents(context, { node, words: keys, ...selection }, 'untag');
    const { words, isOne } = chosen;
    const agents = isOne ? chosen.agents : chosen.agents.filter(({ tags }) => words.some((key) => key in tags));
    if (agents.length > 1) await consentToAll(context, `Remove ${words.join(', ')} from`, agents);
    const api = await context.api();
    return changeTags(context, api, { agents, isOne }, async (node_id, tags) => {
      for (const key of new Set(words)) {
        if (!isOne && !(key in tags)) continue;
        await api.call('removeTag', { params: { node_id, key }, signal: context.signal });
      }
    });
  },
});

interface TaggedChoice extends PickedAgents {
  /** Words after the first one. */
  readonly words: readonly string[];
}

/** Returns the agents, and the words that are no agent: with a selection, every one. Throws `usage`. */
async function taggedAgents(context: Context, { node, words, ...selection }: TaggedChoice, verb: 'tag' | 'untag') {
  const { signal } = context;
  const isOne = !isSelection(selection);
  const named = isOne ? words : [...(node === undefined ? [] : [node]), ...words];
  if (isOne) requireSelection({ nodes: node === undefined ? [] : [node], ...selection }, `agents ${verb}`);
  if (named.length === 0) {
    throw new Fault('usage', `"orch agents ${verb}" needs a tag`, { hint: `see: orch agents ${verb} --help` });
  }
  const api = await context.api();
  const agents =
    isOne && node !== undefined
      ? [await resolveNode(api, node, { signal })]
      : await selectAgents(api, { nodes: [], ...selection }, { signal });
  return { agents, words: named, isOne };
}

/** Changes the tags of each agent, and shows the agents as they are then. */
async function changeTags(
  { signal }: Context,
  api: ApiClient,
  { agents, isOne }: { readonly agents: readonly Agent[]; readonly isOne: boolean },
  change: (nodeId: string, tags: Agent['tags']) => Promise<void>,
): Promise<Outcome> {
  const changed: Agent[] = [];
  for (const { node_id, tags } of agents) {
    await change(node_id, tags);
    changed.push(await api.call('getAgent', { params: { node_id }, signal }));
  }
  const [only] = changed;
  if (isOne && only !== undefined) return taggedOutcome(only);
  return { body: changed, names: changed.map(agentHandle), view: changedLines(changed, tagsLine) };
}

const TAG_COLUMNS: readonly Column[] = [{ title: 'TAG', whole: true }, { title: 'VALUES' }];

/** `orch tags`. */
export const listTags = defineCommand({
  examples: ['orch tags'],
  access: 'viewer',
  columns: TAG_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const body = await api.call('listTags', { signal: context.signal });
    const keys = Object.keys(body.tags).sort();
    return {
      body,
      names: keys,
      view: {
        kind: 'table',
        columns: TAG_COLUMNS,
        rows: keys.map((key) => [key, (body.tags[key] ?? []).filter((value) => value !== '').join(', ')]),
        empty: 'No agent has a tag. Put one on with: orch agents tag NODE role=web',
      },
    };
  },
});

async function approveAll(context: Context, api: ApiClient, agents: readonly Agent[]) {
  const pending = agents.filter(({ status }) => status === 'pending');
  const approved: Agent[] = [];
  for (const agent of pending) {
    const name = agent.name ?? agent.initial_hostname;
    await presentPending(context, { agents, agent, name });
    const instead = 'approve each by itself: orch agents approve NODE --name NAME --yes';
    if (await context.prompt.confirm(`Approve it as ${name}?`, instead)) {
      approved.push(await approve(context, api, agent, name));
    }
  }
  const rows = approved.map(approvedLine);
  return {
    body: approved,
    names: approved.map(agentHandle),
    view: proseOf(pending.length === 0 ? ['No agent is waiting for approval.'] : [...rows, total(approved, pending)]),
  };
}

const total = (approved: readonly Agent[], pending: readonly Agent[]): string =>
  `Approved ${approved.length} of ${pending.length} pending agents.`;

/** The outcome of a tag change: the agent with its new tags. */
export function taggedOutcome(agent: Agent): Outcome {
  return { body: agent, names: [agentHandle(agent)], view: lines(tagsLine(agent)) };
}

function tagsLine(agent: Agent): string {
  const tags = formatTags(agent.tags);
  return tags === '' ? `${agentName(agent)} has no tags now.` : `${agentName(agent)} has the tags: ${tags}`;
}
