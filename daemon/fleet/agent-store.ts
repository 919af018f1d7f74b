/** Agents. Rows as they are stored: `attributes_json` is for the caller to parse. */
import type { Updateable } from 'kysely';
import type { AgentStatus } from '../../src/contract/agent-statuses.js';
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { DomainEvent, EventType, Party } from '../core/domain-event.js';
import { chunks } from '../database/batches.js';
import type { AgentTable, NewRow, Queryable, Row } from '../database/schema.js';
import type { AgentConnection } from './agent-connection.js';

export type AgentRow = Row<'agents'>;

export async function insertAgent(db: Queryable, agent: NewRow<'agents'>): Promise<void> {
  await db.insertInto('agents').values(agent).execute();
}

export async function findAgent(db: Queryable, nodeId: string): Promise<AgentRow | null> {
  return (await db.selectFrom('agents').selectAll().where('node_id', '=', nodeId).executeTakeFirst()) ?? null;
}

export async function findAgentByName(db: Queryable, name: string): Promise<AgentRow | null> {
  return (await db.selectFrom('agents').selectAll().where('name', '=', name).executeTakeFirst()) ?? null;
}

/** Names of agents that begin with that text. */
async function agentNamesFrom(db: Queryable, start: string): Promise<ReadonlySet<string>> {
  const query = db.selectFrom('agents').select('name').where('name', '>=', start);
  const rows = await query.where('name', '<', `${start}\u{10ffff}`).execute();
  return new Set(rows.flatMap(({ name }) => name ?? []));
}

/** False when there is no such agent. */
export async function updateAgent(
  db: Queryable,
  nodeId: string,
  change: Omit<Updateable<AgentTable>, 'node_id'>,
): Promise<boolean> {
  const result = await db.updateTable('agents').set(change).where('node_id', '=', nodeId).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Takes tags, believed state and metrics with it; operations and drift records stay. False when there is none. */
export async function deleteAgent(db: Queryable, nodeId: string): Promise<boolean> {
  await db.deleteFrom('metrics_samples').where('node_id', '=', nodeId).execute();
  const result = await db.deleteFrom('agents').where('node_id', '=', nodeId).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

interface AgentPage {
  readonly status?: AgentStatus | null | undefined;
  /** The name of the only agent that is wanted. */
  readonly name?: string | null | undefined;
  /** Node ID of the last agent of the page before. */
  readonly after?: string | null | undefined;
  /** All when absent. */
  readonly limit?: number | undefined;
}

/** By name, agents without one last, then by node ID. Throws `invalid_cursor` when there is no agent `after`. */
export async function listAgents(db: Queryable, page: AgentPage = {}): Promise<readonly AgentRow[]> {
  let query = db.selectFrom('agents').selectAll();
  if (page.status) query = query.where('status', '=', page.status);
  if (page.name != null) query = query.where('name', '=', page.name);
  if (page.after) {
    const { name, node_id } = await lastOfPage(db, page.after);
    query =
      name === null
        ? query.where('name', 'is', null).where('node_id', '>', node_id)
        : query.where((is) => is.or([is('name', '>', name), is('name', 'is', null)]));
  }
  query = query.orderBy('name', (by) => by.asc().nullsLast()).orderBy('node_id');
  return page.limit === undefined ? query.execute() : query.limit(page.limit).execute();
}

async function lastOfPage(db: Queryable, nodeId: string): Promise<Pick<AgentRow, 'name' | 'node_id'>> {
  const last = await db
    .selectFrom('agents')
    .select(['name', 'node_id'])
    .where('node_id', '=', nodeId)
    .executeTakeFirst();
  if (last) return last;
  throw new Fault('invalid_cursor', `"after" names agent ${nodeId}, which is not in the store`, {
    hint: 'start again with the first page',
  });
}

/** How many agents there are in each status, absent for none. */
export async function countAgentsByStatus(db: Queryable): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('agents')
    .select(['status', (count) => count.fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  return new Map(rows.map(({ status, count }) => [status, count]));
}

/** Agents that wait for approval, the one that connected the longest ago first. */
export async function listPendingAgents(
  db: Queryable,
): Promise<
  readonly Pick<AgentRow, 'node_id' | 'initial_ip' | 'connected_at' | 'last_seen_at' | 'enrolment_token_id'>[]
> {
  return db
    .selectFrom('agents')
    .select(['node_id', 'initial_ip', 'connected_at', 'last_seen_at', 'enrolment_token_id'])
    .where('status', '=', 'pending')
    .orderBy('connected_at')
    .orderBy('node_id')
    .execute();
}

/** The agents among these node IDs, in no order. */
export async function findAgents(db: Queryable, nodeIds: readonly string[]): Promise<readonly AgentRow[]> {
  const rows: AgentRow[] = [];
  for (const part of chunks(nodeIds, 500)) {
    rows.push(...(await db.selectFrom('agents').selectAll().where('node_id', 'in', part).execute()));
  }
  return rows;
}

/** Node IDs of agents whose host name was this when they enrolled. */
export async function findAgentsByHostname(db: Queryable, hostname: string): Promise<readonly string[]> {
  const rows = await db.selectFrom('agents').select('node_id').where('initial_hostname', '=', hostname).execute();
  return rows.map((row) => row.node_id);
}

/**
 * Notes the apply that the believed state stands for, unless a later one is noted already. False when the agent that it
 * was made for is not there any more; one that came back under the same key later is another one.
 */
export async function noteAppliedState(db: Queryable, nodeId: string, operationId: string): Promise<boolean> {
  const same = await db
    .selectFrom('agents')
    .select('state_operation_id')
    .where('node_id', '=', nodeId)
    .where('created_id', '<=', operationId)
    .executeTakeFirst();
  if (same === undefined) return false;
  if ((same.state_operation_id ?? '') < operationId) {
    await updateAgent(db, nodeId, { state_operation_id: operationId });
  }
  return true;
}

/** Node IDs of the approved agents to which something was applied. */
export async function listManagedAgents(db: Queryable): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('agents')
    .select('node_id')
    .where('status', '=', 'approved')
    .where('state_operation_id', 'is not', null)
    .execute();
  return rows.map((row) => row.node_id);
}

/** An agent as actor or target of an event. */
export const agentParty = (agent: { readonly node_id: string; readonly name: string | null }): Party => ({
  id: agent.node_id,
  name: agent.name ?? agent.node_id,
  type: 'agent',
});

/** Events of what an agent does by itself: it is the actor as well as the target. */
interface NamedAgent {
  readonly node_id: string;
  readonly name: string | null;
}

export function agentEvent(
  type: EventType,
  agent: NamedAgent,
  summary: string,
  metadata: JsonObject = {},
): DomainEvent {
  const party = agentParty(agent);
  return { type, actor: party, target: party, summary, metadata };
}

/** What people call the agent: its name, or its node ID while it has none. */
export const agentLabel = (agent: NamedAgent): string => agent.name ?? agent.node_id;

/** The name of an agent that nobody has named: its host name, as far as it can be one. */
const MAX_LENGTH = 64;

/** The first label of the host name with `-` for what a name cannot hold. */
function nameOfHostname(hostname: string): string {
  const [label = ''] = hostname.normalize('NFC').split('.');
  const cleaned = label.replace(/[^\p{L}\p{Nd}_-]+/gu, '-').replace(/^[-_]+|-+$/gu, '');
  if (cleaned === '') return 'agent';
  const named = /^\p{L}/u.test(cleaned) ? cleaned : `host-${cleaned}`;
  return cut(named, MAX_LENGTH);
}

/** That name, with the first number behind it that makes it one that no agent has. */
export async function freeNameOf(tx: Queryable, hostname: string): Promise<string> {
  const name = nameOfHostname(hostname);
  // Room for the number is taken from the name, so every candidate begins with this.
  const taken = await agentNamesFrom(tx, cut(name, MAX_LENGTH - 8));
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `-${number}`;
    const candidate = cut(name, MAX_LENGTH - suffix.length) + suffix;
    if (!taken.has(candidate)) return candidate;
  }
}

const cut = (text: string, length: number): string => [...text].slice(0, length).join('');

/** The record of an agent that comes for the first time. */
export interface NewAgent {
  readonly connection: AgentConnection;
  readonly hello: AgentMessageOf<'hello'>;
}

export const recordOfNew = (
  { connection, hello }: NewAgent,
  { id, now }: { readonly id: string; readonly now: number },
): AgentRow => ({
  node_id: connection.nodeId,
  public_key: connection.publicKey,
  name: null,
  status: 'pending',
  created_at: now,
  created_id: id,
  updated_at: now,
  connected_at: now,
  last_seen_at: now,
  initial_hostname: hello.hostname,
  initial_ip: connection.remoteAddress,
  agent_version: hello.agent_version,
  protocol_version: hello.protocol_version,
  attributes_json: JSON.stringify(hello.attributes),
  state_operation_id: null,
  enrolment_token_id: null,
});

export function pendingEvent({ connection, hello: { hostname } }: NewAgent): DomainEvent {
  const { publicKey: public_key, remoteAddress: address, nodeId: node_id } = connection;
  const summary = `An unknown agent on ${hostname} (${address}) waits for approval`;
  return agentEvent('agent.pending', { node_id, name: null }, summary, { public_key, hostname, address });
}

/** Names in a sentence. */

/** Names that are shown; of more, the number. */
const SHOWN = 5;

export function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}
