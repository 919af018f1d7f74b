/** Routes and schemas of agents and their tags. */
import * as Type from 'typebox';
import { VolatileFactsSchema } from '../kernel/facts.js';
import { closed, nullable, optional } from '../kernel/schema.js';
import { AGENT_STATUSES } from './agent-statuses.js';
import { route } from './route.js';
import { AgentName, limitOf, NEXT_PAGE, NodeId, NodeParams, PublicKey, Seconds, StringMap } from './shapes.js';
import { STANDINGS } from './standing-names.js';
import { StandingCountsSchema, standingMembers } from './standings.js';

export const AgentSchema = closed({
  node_id: NodeId,
  name: AgentName,
  status: Type.Enum(AGENT_STATUSES, {
    description: 'pending: waits for approval; approved: managed; rejected: turned away',
  }),
  connected: Type.Boolean({ description: 'True while the agent is connected' }),
  connected_at: Type.Integer({ description: 'Unix time in seconds of the last connection, 0 when never' }),
  updated_at: Seconds,
  initial_hostname: Type.String({ description: 'Host name at the first connection' }),
  initial_ip: Type.String({ description: 'Address of the first connection' }),
  agent_version: Type.String({ description: 'Version of the agent at its last connection' }),
  public_key: PublicKey,
  attributes: { ...StringMap, description: 'What the agent reports of its system, as `getAgentAttributes`' },
  tags: { ...StringMap, description: 'Tags that operators have set' },
  ephemeral_secs: Type.Optional(
    Type.Integer({
      description:
        'Seconds without a connection after which the agent is removed; absent for one that stays. Only time counts in which the orchestrator ran',
    }),
  ),
  ...standingMembers,
  contest: optional(
    closed(
      {
        since: Seconds,
        machines: Type.Array(
          closed({
            hostname: Type.String({ description: 'Host name of the machine' }),
            address: Type.String({ description: 'Address of its connection' }),
            last_seen_at: Seconds,
            connected: Type.Boolean({ description: 'True while this machine is connected' }),
          }),
          { description: 'The one that was seen last first' },
        ),
      },
      {
        description:
          'Machines that were connected with its key at the same time; nothing is sent to it until an operator has ' +
          'decided with `keepMachine`. Absent without such a contest',
      },
    ),
  ),
});
export type Agent = Type.Static<typeof AgentSchema>;

/** An agent that may just have got its name. */
export const NamedAgentSchema = closed({
  ...AgentSchema.properties,
  name_reused: Type.Optional(
    closed(
      {
        node_id: nullable(
          Type.String({ description: 'Node ID of the agent that had it; null for operators with grants' }),
        ),
        until: nullable(
          Type.Integer({ description: 'Unix time in seconds at which that agent lost it; null when unknown' }),
        ),
      },
      { description: 'The agent just got a name that another one had before; absent otherwise' },
    ),
  ),
});
export type NamedAgent = Type.Static<typeof NamedAgentSchema>;

/** Facts of an agent, under the names by which modules use them. */
export const AgentFactsSchema = closed({
  attributes: Type.Record(Type.String(), Type.Unknown(), {
    description: 'What the agent reports of its system; `attributes.NAME` in modules',
  }),
  volatile: { ...VolatileFactsSchema, description: 'Facts that change by themselves; no module can name them' },
  facts: Type.Record(
    Type.String(),
    closed({
      value: Type.Optional(Type.Unknown({ description: 'The last value; absent for a fact that never had one' })),
      error: nullable(Type.String({ description: 'Why the value is stale or missing; null for a current one' })),
      since: nullable(Seconds),
    }),
    { description: "Facts of one's own; `facts.NAME` in modules" },
  ),
  problem: nullable(Type.String({ description: 'Why facts of its own may be missing; null if these are all' })),
  reported_at: nullable(
    Type.Integer({ description: 'Unix time in seconds of the last report, null before the first' }),
  ),
});
export type AgentFactsAnswer = Type.Static<typeof AgentFactsSchema>;

export const FleetSummarySchema = closed({
  outdated_agents: Type.Integer({
    description: 'Number of approved agents with another version than the orchestrator',
  }),
  rollouts: closed(
    {
      running: Type.Integer({ description: 'Rollouts that go on' }),
      paused: Type.Integer({ description: 'Rollouts that an operator has paused' }),
      halted: Type.Integer({ description: 'Rollouts that reached a bound' }),
    },
    { description: 'Number of rollouts in each state that has not ended; reverting ones count as running' },
  ),
  standings: { ...StandingCountsSchema, description: 'Number of approved agents of each standing' },
});
export type FleetSummary = Type.Static<typeof FleetSummarySchema>;

export const AGENT_LIST_LIMIT = { standard: 1000, maximum: 1000 } as const;

const AgentCursor = optional(
  Type.String({ description: 'node_id of the last agent on the previous page, from the Link header' }),
);

export const agentRoutes = {
  listAgents: route({
    id: 'listAgents',
    summary: 'List agents by name, then node ID; a Link header names the next page',
    tag: 'agents',
    method: 'GET',
    path: '/agents',
    access: 'read',
    grants: 'filtered',
    query: closed({
      status: optional(Type.Enum(AGENT_STATUSES, { description: 'Only agents with this approval status' })),
      standing: optional(Type.Enum(STANDINGS, { description: 'Only agents with this standing' })),
      filter: optional(Type.String({ description: 'Selector over attributes and tags' })),
      name: optional(Type.String({ description: 'Only the agent with exactly this name' })),
      limit: optional(limitOf(AGENT_LIST_LIMIT.standard, AGENT_LIST_LIMIT.maximum)),
      cursor: AgentCursor,
      after: optional(Type.String({ deprecated: true, description: 'The former name of `cursor`' })),
    }),
    answers: { 200: Type.Array(AgentSchema) },
    headers: NEXT_PAGE,
    faults: ['invalid_selector', 'invalid_cursor'],
  }),
  getAgent: route({
    id: 'getAgent',
    summary: 'Get one agent',
    tag: 'agents',
    method: 'GET',
    path: '/agents/{node_id}',
    access: 'read',
    tagged: true,
    params: NodeParams,
    answers: { 200: AgentSchema },
    faults: ['agent_not_found'],
  }),
  setAgentStatus: route({
    id: 'setAgentStatus',
    summary: 'Approve or reject an agent; rejecting an approved one revokes it at once',
    tag: 'agents',
    method: 'POST',
    path: '/agents/{node_id}',
    access: 'approve-agents',
    tagged: true,
    params: NodeParams,
    body: closed({
      status: Type.Enum(['approved', 'rejected'], {
        description: 'approved: the agent is managed; rejected: it is turned away',
      }),
      name: optional(Type.String({ description: 'Required at the first approval; `renameAgent` changes it' })),
    }),
    answers: { 200: NamedAgentSchema },
    faults: ['agent_not_found', 'name_required', 'invalid_name', 'name_taken', 'name_immutable'],
  }),
  renameAgent: route({
    id: 'renameAgent',
    summary: 'Give an approved agent another name; records of the past keep the earlier one',
    tag: 'agents',
    method: 'PUT',
    path: '/agents/{node_id}/name',
    access: 'approve-agents',
    tagged: true,
    params: NodeParams,
    body: closed({
      name: Type.String({ description: 'The new name: a letter, then up to 63 letters, digits, `-` and `_`' }),
    }),
    answers: { 200: NamedAgentSchema },
    faults: ['agent_not_found', 'agent_not_approved', 'invalid_name', 'name_taken'],
  }),
  keepMachine: route({
    id: 'keepMachine',
    summary: 'Decide that the connected machine is the agent when several have its key; the others are turned away',
    tag: 'agents',
    method: 'POST',
    path: '/agents/{node_id}/keep',
    access: 'approve-agents',
    params: NodeParams,
    body: closed({
      hostname: Type.String({ maxLength: 255, description: 'Host name of the machine to keep, as `contest` names it' }),
      address: Type.String({ maxLength: 64, description: 'Address of the machine to keep, as `contest` names it' }),
    }),
    answers: { 200: AgentSchema },
    faults: ['agent_not_found', 'agent_not_connected'],
  }),
  removeAgent: route({
    id: 'removeAgent',
    summary: "Remove a rejected agent's record",
    tag: 'agents',
    method: 'DELETE',
    path: '/agents/{node_id}',
    access: 'remove-agent',
    tagged: true,
    params: NodeParams,
    answers: { 204: null },
    faults: ['agent_not_found', 'agent_not_rejected'],
  }),
  getAgentAttributes: route({
    id: 'getAgentAttributes',
    summary: 'Attributes that the agent reports about its machine',
    tag: 'agents',
    method: 'GET',
    path: '/agents/{node_id}/attributes',
    access: 'read',
    params: NodeParams,
    answers: { 200: StringMap },
    faults: ['agent_not_found'],
  }),
} as const;

export const factRoutes = {
  getAgentFacts: route({
    id: 'getAgentFacts',
    summary: 'Attributes with their types, volatile facts, and facts of its own that the agent has reported',
    tag: 'agents',
    method: 'GET',
    path: '/agents/{node_id}/facts',
    access: 'read',
    params: NodeParams,
    answers: { 200: AgentFactsSchema },
    faults: ['agent_not_found'],
  }),
  refreshAgentFacts: route({
    id: 'refreshAgentFacts',
    summary: 'Have a connected agent read its facts again, for which it runs the programs of its own facts',
    tag: 'agents',
    method: 'POST',
    path: '/agents/{node_id}/facts',
    access: 'plan',
    params: NodeParams,
    answers: { 200: AgentFactsSchema },
    faults: ['agent_not_found', 'agent_not_connected', 'agent_too_old', 'agent_timeout'],
  }),
} as const;

const params = closed({ ...NodeParams.properties, key: Type.String({ minLength: 1, description: 'Key of the tag' }) });

export const tagRoutes = {
  listTags: route({
    id: 'listTags',
    summary: 'All distinct tag keys and values',
    tag: 'tags',
    method: 'GET',
    path: '/tags',
    access: 'read',
    grants: 'filtered',
    answers: {
      200: closed({
        tags: Type.Record(Type.String(), Type.Array(Type.String()), { description: 'Values in use of each key' }),
      }),
    },
    faults: [],
  }),
  replaceTags: route({
    id: 'replaceTags',
    summary: 'Replace all tags of an agent',
    tag: 'tags',
    method: 'PUT',
    path: '/agents/{node_id}/tags',
    access: 'tag',
    tagged: true,
    params: NodeParams,
    body: closed({
      tags: Type.Record(Type.String(), Type.String(), { description: 'All tags of the agent from now on' }),
    }),
    answers: { 204: null },
    faults: ['agent_not_found', 'invalid_tag'],
  }),
  setTag: route({
    id: 'setTag',
    summary: 'Set one tag of an agent',
    tag: 'tags',
    method: 'PUT',
    path: '/agents/{node_id}/tags/{key}',
    access: 'tag',
    tagged: true,
    params,
    body: closed({ value: Type.String({ description: 'Value of the tag' }) }),
    answers: { 204: null },
    faults: ['agent_not_found', 'invalid_tag'],
  }),
  removeTag: route({
    id: 'removeTag',
    summary: 'Remove one tag of an agent',
    tag: 'tags',
    method: 'DELETE',
    path: '/agents/{node_id}/tags/{key}',
    access: 'tag',
    tagged: true,
    params,
    answers: { 204: null },
    faults: ['agent_not_found', 'tag_not_found'],
  }),
} as const;

export const fleetRoutes = {
  getFleet: route({
    id: 'getFleet',
    summary: 'Number of agents by standing, of agents with another version, and of open rollouts',
    tag: 'agents',
    method: 'GET',
    path: '/fleet',
    access: 'read',
    grants: 'filtered',
    answers: { 200: FleetSummarySchema },
    faults: [],
  }),
} as const;
