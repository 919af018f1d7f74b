/** Lists, approves, rejects and removes agents for operators. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AgentStatus } from '../../src/contract/agent-statuses.js';
import { AGENT_LIST_LIMIT, type Agent, type agentRoutes, type NamedAgent } from '../../src/contract/agents.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { isName } from '../../src/kernel/ids.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import { matches, parseSelector, type Selector } from '../../src/language/selector.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext } from '../core/domain-event.js';
import { requireMatch, tagged } from '../core/entity-tag.js';
import type { Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import { type HandlersFor, JsonText } from '../http/handler.js';
import { linkTo } from '../http/query-string.js';
import {
  type AgentRow,
  agentLabel,
  agentParty,
  deleteAgent,
  findAgent,
  findShownAgent,
  otherAgentNames,
  placeOfAgent,
  type ShownAgent,
  updateAgent,
} from './agent-store.js';
import type { ConnectionRegistry } from './connection-registry.js';
import type { Contests, Machine } from './contests.js';
import { type EarlierHolder, noteGivenName, noteLostName, reuseOf } from './given-names.js';
import type { Machines } from './machines.js';
import type { ShownAgents } from './shown-agents.js';
import { type Tags, tagsOf } from './tag-store.js';

/** Effects of an operator's decision on the agent's connection. */
interface AgentConnections {
  approved(nodeId: NodeId): Promise<void>;
  revoked(nodeId: NodeId): Promise<void>;
  renamed(nodeId: NodeId): Promise<void>;
}

interface AgentServiceOptions extends Pick<Core, 'clock' | 'db' | 'uow'> {
  readonly registry: ConnectionRegistry;
  readonly connections: AgentConnections;
  readonly shown: Pick<ShownAgents, 'find' | 'list'>;
  readonly contests: Contests;
  readonly machines: Pick<Machines, 'readable'>;
  /** Returns the members of an agent about its standing. */
  readonly standingOf: StandingOf;
}

export type StandingOf = (
  nodeId: string,
) => Pick<Agent, 'standing' | 'standing_since' | 'standing_reason' | 'automation_stopped'>;

interface AgentFilter {
  readonly status?: AgentStatus | null | undefined;
  readonly standing?: Agent['standing'] | undefined;
  /** Selector over attributes and tags. */
  readonly filter?: string | null | undefined;
  /** Name of the only agent to return. */
  readonly name?: string | null | undefined;
  /** Maximum number of agents [default: all]. */
  readonly limit?: number | undefined;
  /** Node ID of the last agent on the previous page. */
  readonly cursor?: string | null | undefined;
  /** Only agents that this operator may read. */
  readonly rights: Rights;
}

interface ListedAgent {
  readonly node_id: string;
  /** JSON of the agent. */
  readonly text: string;
}

interface StatusChange {
  readonly status: 'approved' | 'rejected';
  readonly name?: string | null | undefined;
}

export class AgentService {
  private readonly options: AgentServiceOptions;
  /** The JSON of standings. */
  private readonly texts = new WeakMap<ReturnType<StandingOf>, string>();

  constructor(options: AgentServiceOptions) {
    this.options = options;
  }

  /**
   * Returns agents by name, unnamed ones last. Reads in slices, between which other requests are served. Throws
   * `invalid_selector`, `invalid_cursor`.
   */
  async list({
    status,
    standing,
    filter,
    name,
    limit = Number.POSITIVE_INFINITY,
    cursor,
    rights,
  }: AgentFilter): Promise<readonly ListedAgent[]> {
    const { shown, standingOf } = this.options;
    const isStanding = (nodeId: string) => standing == null || standingOf(nodeId).standing === standing;
    const selector = filter == null ? null : parseSelector(filter);
    const mayRead = readers(rights);
    const agents: ListedAgent[] = [];
    let place = cursor == null ? null : await this.placeOf(cursor, rights);
    let size = Math.min(SLICE, limit);
    while (true) {
      const rows = await shown.list({ status, name, after: place, limit: size });
      const before = agents.length;
      for (const row of rows) {
        if (!isStanding(row.node_id)) continue;
        if (!mayRead(row)) continue;
        const text = this.present(row);
        if (selector === null || isSelected(selector, JSON.parse(text))) agents.push({ node_id: row.node_id, text });
      }
      place = rows.at(-1) ?? null;
      if (rows.length < size || agents.length >= limit) return agents.slice(0, limit);
      const isWhole = agents.length - before === rows.length;
      // As long as nothing is left out, no more than the page takes is read.
      size = Math.min(SLICE, isWhole ? limit - agents.length : 2 * size);
      await nextTurn();
    }
  }

  /** Returns the place of an agent in the list. Throws `invalid_cursor`, also for an agent that the operator may not read. */
  private async placeOf(nodeId: string, rights: Rights) {
    const { db, machines } = this.options;
    const isHidden = rights.isLimited && (await machines.readable(rights, nodeId)) === null;
    return placeOfAgent(db, isHidden ? '' : nodeId);
  }

  /** Returns an agent. Throws `agent_not_found`. */
  async get(nodeId: string): Promise<Agent> {
    return JSON.parse(await this.getText(nodeId));
  }

  /** Returns an agent as JSON. Throws `agent_not_found`. */
  async getText(nodeId: string): Promise<string> {
    return this.present((await this.options.shown.find(nodeId)) ?? unknownAgent(nodeId));
  }

  /**
   * Approves or rejects an agent; repeating it changes nothing in the store. A name is only used by an approval.
   * Throws `agent_not_found`, `name_required`, `invalid_name`, `name_taken`, `name_immutable`.
   */
  async setStatus(context: RequestContext, nodeId: string, change: StatusChange): Promise<NamedAgent> {
    const { uow, connections, contests } = this.options;
    let isChanged = false;
    let earlier: EarlierHolder | null = null;
    const shown = await uow.write(async (tx, emit) => {
      const agent = await requireAgent(tx, nodeId);
      await refuseChanged(tx, context, agent);
      const name = change.status === 'approved' ? await approvedName(tx, agent, change.name ?? null) : agent.name;
      if (agent.status === change.status && agent.name === name) return findShownAgent(tx, nodeId);
      await updateAgent(tx, nodeId, { status: change.status, name, updated_at: this.options.clock.now() });
      emit(
        eventOfRequest(context, {
          type: change.status === 'approved' ? 'agent.approved' : 'agent.rejected',
          target: agentParty({ node_id: nodeId, name }),
          summary: `${context.actor.name} ${change.status} agent ${name ?? nodeId}`,
          metadata: { before: agent.status, public_key: agent.public_key },
        }),
      );
      if (name !== null && name !== agent.name) earlier = await noteGivenName(tx, emit, { node_id: nodeId, name });
      await contests.forget(tx, nodeId);
      isChanged = true;
      return findShownAgent(tx, nodeId);
    });
    if (isChanged) contests.forgotten(nodeId);
    // Also runs when nothing changed, so that repeating the request repairs an incomplete first attempt.
    if (change.status === 'approved') await connections.approved(nodeId as NodeId);
    else await connections.revoked(nodeId as NodeId);
    return { ...JSON.parse(this.present(shown ?? unknownAgent(nodeId))), ...reuseOf(earlier, context.rights) };
  }

  /**
   * Gives an approved agent another name, and tells it. Records of the past keep the earlier one. Throws `agent_not_found`,
   * `agent_not_approved`, `invalid_name`, `name_taken`.
   */
  async rename(context: RequestContext, nodeId: string, given: string): Promise<NamedAgent> {
    const { uow, connections, clock } = this.options;
    let earlier: EarlierHolder | null = null;
    const shown = await uow.write(async (tx, emit) => {
      const agent = await requireAgent(tx, nodeId);
      await refuseChanged(tx, context, agent);
      if (agent.status !== 'approved' || agent.name === null) throw notApproved(agent);
      const name = given.normalize('NFC');
      if (name === agent.name) return findShownAgent(tx, nodeId);
      await requireFreeName(tx, agent, name);
      await updateAgent(tx, nodeId, { name, updated_at: clock.now() });
      emit(
        eventOfRequest(context, {
          type: 'agent.renamed',
          target: agentParty({ node_id: nodeId, name }),
          summary: `${context.actor.name} renamed agent ${agent.name} to ${name}`,
          metadata: { before: agent.name, after: name },
        }),
      );
      await noteLostName(tx, nodeId, clock.now());
      earlier = await noteGivenName(tx, emit, { node_id: nodeId, name });
      return findShownAgent(tx, nodeId);
    });
    await connections.renamed(nodeId as NodeId);
    return { ...JSON.parse(this.present(shown ?? unknownAgent(nodeId))), ...reuseOf(earlier, context.rights) };
  }

  /**
   * Decides that the connected machine is the agent when several have its key. Throws `agent_not_found`, and
   * `agent_not_connected` if `machine` is not the connected one.
   */
  async keep(context: RequestContext, nodeId: string, machine: Machine): Promise<Agent> {
    const { db, connections, contests } = this.options;
    await contests.keep(context, await requireAgent(db, nodeId), machine);
    await connections.approved(nodeId as NodeId);
    return this.get(nodeId);
  }

  /** Removes the record of a rejected agent. Throws `agent_not_found`, `agent_not_rejected`. */
  async remove(context: RequestContext, nodeId: string): Promise<void> {
    const { uow, connections, contests } = this.options;
    await uow.write(async (tx, emit) => {
      const agent = await requireAgent(tx, nodeId);
      await refuseChanged(tx, context, agent);
      if (agent.status !== 'rejected') {
        throw new Fault('agent_not_rejected', `agent ${agentLabel(agent)} is ${agent.status}, so it is not removed`, {
          hint: 'reject it first, which also closes its connection',
        });
      }
      await deleteAgent(tx, nodeId);
      await noteLostName(tx, nodeId, this.options.clock.now());
      emit(
        eventOfRequest(context, {
          type: 'agent.removed',
          target: agentParty(agent),
          summary: `${context.actor.name} removed agent ${agentLabel(agent)}`,
          metadata: { public_key: agent.public_key },
        }),
      );
    });
    contests.forgotten(nodeId);
    await connections.revoked(nodeId as NodeId);
  }

  /** Returns the JSON of the members about a standing. Most are asked for many times before they change. */
  private textOf(standing: ReturnType<StandingOf>): string {
    const known = this.texts.get(standing);
    if (known !== undefined) return known;
    const text = JSON.stringify(standing);
    this.texts.set(standing, text);
    return text;
  }

  /** Returns the JSON of an agent. */
  private present({ node_id, ephemeral_secs, head, tail, tags }: ShownAgent): string {
    const isConnected = this.options.registry.has(node_id as NodeId);
    const standing = this.textOf(this.options.standingOf(node_id));
    const contest = this.options.contests.shown(node_id);
    const ephemeral = ephemeral_secs === null ? '' : `,"ephemeral_secs":${ephemeral_secs}`;
    const end = contest === null ? '}' : `,"contest":${JSON.stringify(contest)}}`;
    const members = `${tail.slice(1, -1)},"tags":${tags}${ephemeral},${standing.slice(1, -1)}`;
    return `${head.slice(0, -1)},"connected":${isConnected},${members}${end}`;
  }
}

/** Agents read at once, which takes a few milliseconds. */
const SLICE = 500;

/** Returns the check whether the operator may read an agent. Decides once for all agents with the same tags, if it can. */
function readers(rights: Rights): (agent: Pick<ShownAgent, 'node_id' | 'tags'>) => boolean {
  if (!rights.isLimited) return () => true;
  const { areOfTags } = rights;
  const known = new Map<string, boolean>();
  return ({ node_id: nodeId, tags }) => {
    const decided = areOfTags ? known.get(tags) : undefined;
    if (decided !== undefined) return decided;
    const may = rights.may('read', { nodeId, tags: JSON.parse(tags) });
    known.set(tags, may);
    return may;
  };
}

/** Applies the selector; `*` alone selects every approved agent. */
const isSelected = (selector: Selector, agent: Agent): boolean =>
  selector.terms.length > 0 ? matches(selector, agent) : agent.status === 'approved';

/** Returns the record of an agent. Throws `agent_not_found`. */
export async function requireAgent(db: Queryable, nodeId: string): Promise<AgentRow> {
  return (await findAgent(db, nodeId)) ?? unknownAgent(nodeId);
}

/** Returns what a change of an agent can replace. */
const contentOf = ({ name, status }: Pick<AgentRow, 'name' | 'status'>, tags: Tags) => ({
  name,
  status,
  tags: { ...tags },
});

/** Throws `precondition_failed` when the request was made for another state of the agent. */
export const requireAgentMatch = (context: RequestContext, agent: AgentRow, tags: Tags): void =>
  requireMatch(context, `agent ${agentLabel(agent)}`, contentOf(agent, tags));

/** Reads the tags, which most requests do not need, and throws as `requireAgentMatch`. */
async function refuseChanged(tx: Queryable, context: RequestContext, agent: AgentRow): Promise<void> {
  if (context.ifMatch) requireAgentMatch(context, agent, await tagsOf(tx, agent.node_id));
}

/** Throws `agent_not_found`. */
function unknownAgent(nodeId: string): never {
  throw new Fault('agent_not_found', `there is no agent with node ID ${JSON.stringify(nodeId)}`, {
    hint: 'orch agents list shows every agent',
  });
}

/**
 * Returns the agent's name once it is approved. Throws `name_required`, `name_immutable`, `invalid_name`,
 * `name_taken`.
 */
async function approvedName(tx: Queryable, agent: AgentRow, given: string | null): Promise<string> {
  const name = given ?? agent.name;
  if (name === null) {
    throw new Fault('name_required', 'an agent is approved under a name, and none was given', {
      hint: 'give "name": 1 to 64 letters, digits, "-" or "_", beginning with a letter',
    });
  }
  if (name === agent.name) return name;
  if (agent.name !== null) {
    throw new Fault(
      'name_immutable',
      `this agent is ${JSON.stringify(agent.name)}, and an approval does not rename it`,
      {
        hint: `approve it without a name, and rename it: orch agents rename ${agent.name} ${name}`,
      },
    );
  }
  return requireFreeName(tx, agent, name);
}

/** Returns the name if the agent can have it. Throws `invalid_name`, `name_taken`. */
async function requireFreeName(tx: Queryable, { node_id }: AgentRow, name: string): Promise<string> {
  if (!isName(name)) {
    throw new Fault('invalid_name', `${JSON.stringify(name)} is no name for an agent`, {
      hint: 'use 1 to 64 letters, digits, "-" or "_", beginning with a letter',
    });
  }
  const like = new LookAlikes(await otherAgentNames(tx, node_id)).like(name);
  if (like === null) return name;
  const isSame = like === name;
  const message = isSame
    ? `another agent is already named ${JSON.stringify(name)}`
    : `${JSON.stringify(name)} looks like ${JSON.stringify(like)}, which is the name of another agent`;
  throw new Fault('name_taken', message, {
    hint: `choose another name, or ${isSame ? 'reject and remove' : 'rename'} the agent that has it`,
    data: { name: like },
  });
}

const notApproved = (agent: AgentRow): Fault =>
  new Fault('agent_not_approved', `agent ${agentLabel(agent)} is ${agent.status}, so it is not renamed`, {
    hint: 'it gets its name when it is approved: orch agents approve NODE --name NAME',
    data: { status: agent.status },
  });

/** Returns an agent with its tag. */
const shown = (agent: Agent) => tagged(agent, contentOf(agent, agent.tags));

/** Handlers of the agent routes. */
export const agentHandlers = (agents: AgentService): HandlersFor<typeof agentRoutes> => ({
  listAgents: async ({ query, rights }) => {
    const limit = clampLimit(query.limit, AGENT_LIST_LIMIT.standard, AGENT_LIST_LIMIT.maximum);
    // Reads one more than the limit, to learn whether there is a next page.
    const { after, ...asked } = { ...query, cursor: query.cursor ?? query.after };
    const page = await agents.list({ ...asked, rights, limit: limit + 1 });
    const shown = page.slice(0, limit);
    const body = new JsonText<Agent[]>(`[${shown.map(({ text }) => text).join(',')}]`);
    const last = shown.at(-1);
    if (page.length <= limit || last === undefined) return { status: 200, body };
    return { status: 200, body, headers: linkTo('/agents', { ...asked, limit, cursor: last.node_id }) };
  },
  getAgent: async ({ params }) => {
    const text = await agents.getText(params.node_id);
    const agent: Agent = JSON.parse(text);
    return { status: 200, ...tagged(new JsonText<Agent>(text), contentOf(agent, agent.tags)) };
  },
  setAgentStatus: async ({ params, body, context }) => ({
    status: 200,
    ...shown(await agents.setStatus(context, params.node_id, body)),
  }),
  renameAgent: async ({ params, body, context }) => ({
    status: 200,
    ...shown(await agents.rename(context, params.node_id, body.name)),
  }),
  keepMachine: async ({ params, body, context }) => ({
    status: 200,
    body: await agents.keep(context, params.node_id, body),
  }),
  removeAgent: async ({ params, context }) => {
    await agents.remove(context, params.node_id);
    return { status: 204, body: undefined };
  },
  getAgentAttributes: async ({ params }) => ({ status: 200, body: (await agents.get(params.node_id)).attributes }),
});
