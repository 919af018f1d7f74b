/** Rows of agents, and the records, events and names derived from them. */
import type { Updateable } from 'kysely';
import type { AgentStatus } from '../../src/contract/agent-statuses.js';
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { DomainEvent, EventType, Party } from '../core/domain-event.js';
import { chunks } from '../database/batches.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { AgentTable, NewRow, Queryable, Row } from '../database/schema.js';
import type { AgentConnection } from './agent-connection.js';

/** Attributes that an agent reports, such as its platform. */
export type Attributes = Readonly<Record<string, string>>;

interface AgentValues {
  readonly attributes: Attributes;
}

const columns = jsonColumns<AgentValues>({ attributes: true });

export type AgentRow = Decoded<Row<'agents'>, AgentValues>;
export type NewAgentRow = Decoded<NewRow<'agents'>, AgentValues>;

export async function insertAgent(db: Queryable, agent: NewAgentRow): Promise<void> {
  await db.insertInto('agents').values(columns.encode(agent)).execute();
}

export async function findAgent(db: Queryable, nodeId: string): Promise<AgentRow | null> {
  const row = await db.selectFrom('agents').selectAll().where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function findAgentByName(db: Queryable, name: string): Promise<AgentRow | null> {
  const row = await db.selectFrom('agents').selectAll().where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Returns the names of agents that begin with `start`. */
async function agentNamesFrom(db: Queryable, start: string): Promise<ReadonlySet<string>> {
  const query = db.selectFrom('agents').select('name').where('name', '>=', start);
  const rows = await query.where('name', '<', `${start}\u{10ffff}`).execute();
  return new Set(rows.flatMap(({ name }) => name ?? []));
}

/** Returns false when there is no such agent. */
export async function updateAgent(
  db: Queryable,
  nodeId: string,
  change: Decoded<Omit<Updateable<AgentTable>, 'node_id'>, AgentValues>,
): Promise<boolean> {
  const query = db.updateTable('agents').set(columns.encode(change)).where('node_id', '=', nodeId);
  const result = await query.executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Deletes an agent with its tags, believed state and metrics; operations and drift records stay. Returns false when
 * there is no such agent.
 */
export async function deleteAgent(db: Queryable, nodeId: string): Promise<boolean> {
  await db.deleteFrom('metrics_samples').where('node_id', '=', nodeId).execute();
  const result = await db.deleteFrom('agents').where('node_id', '=', nodeId).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

interface AgentPage {
  readonly status?: AgentStatus | null | undefined;
  /** Name of the only agent to return. */
  readonly name?: string | null | undefined;
  /** Node ID of the last agent of the previous page. */
  readonly after?: string | null | undefined;
  /** Maximum number of agents [default: all]. */
  readonly limit?: number | undefined;
}

/**
 * Returns agents by name, unnamed ones last, then by node ID. Throws `invalid_cursor` when the agent `after` does not
 * exist.
 */
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
  if (page.limit !== undefined) query = query.limit(page.limit);
  return (await query.execute()).map((row) => columns.decode(row));
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

/** Returns the number of agents per status; a status without agents is absent. */
export async function countAgentsByStatus(db: Queryable): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('agents')
    .select(['status', (count) => count.fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  return new Map(rows.map(({ status, count }) => [status, count]));
}

/** Returns the agents waiting for approval, the least recently connected first. */
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

/** Returns the agents with these node IDs, in no particular order. */
export async function findAgents(db: Queryable, nodeIds: readonly string[]): Promise<readonly AgentRow[]> {
  const rows: AgentRow[] = [];
  for (const part of chunks(nodeIds, 500)) {
    const found = await db.selectFrom('agents').selectAll().where('node_id', 'in', part).execute();
    rows.push(...found.map((row) => columns.decode(row)));
  }
  return rows;
}

/** Returns the node IDs of agents that enrolled with this host name. */
export async function findAgentsByHostname(db: Queryable, hostname: string): Promise<readonly string[]> {
  const rows = await db.selectFrom('agents').select('node_id').where('initial_hostname', '=', hostname).execute();
  return rows.map((row) => row.node_id);
}

/**
 * Notes the apply that the believed state reflects, unless a later one is already noted. Returns false when the
 * apply's agent no longer exists; an agent that enrolled later with the same key does not count.
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

/** Returns the node IDs of approved agents that have had an apply. */
export async function listManagedAgents(db: Queryable): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('agents')
    .select('node_id')
    .where('status', '=', 'approved')
    .where('state_operation_id', 'is not', null)
    .execute();
  return rows.map((row) => row.node_id);
}

/** Returns an agent as the actor or target of an event. */
export const agentParty = (agent: { readonly node_id: string; readonly name: string | null }): Party => ({
  id: agent.node_id,
  name: agent.name ?? agent.node_id,
  type: 'agent',
});

/** An agent as far as events name it. */
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

/** Returns the agent's display name: its name, or its node ID while it has none. */
export const agentLabel = (agent: NamedAgent): string => agent.name ?? agent.node_id;

/** Maximum length of an agent's name. */
const MAX_LENGTH = 64;

/** Returns the first label of the host name, with `-` for characters that names cannot hold. */
function nameOfHostname(hostname: string): string {
  const [label = ''] = hostname.normalize('NFC').split('.');
  const cleaned = label.replace(/[^\p{L}\p{Nd}_-]+/gu, '-').replace(/^[-_]+|-+$/gu, '');
  if (cleaned === '') return 'agent';
  const named = /^\p{L}/u.test(cleaned) ? cleaned : `host-${cleaned}`;
  return cut(named, MAX_LENGTH);
}

/** Returns a free name derived from the host name, with the lowest number appended that makes it unique. */
export async function freeNameOf(tx: Queryable, hostname: string): Promise<string> {
  const name = nameOfHostname(hostname);
  // The number may shorten the name, so every candidate begins with this prefix.
  const taken = await agentNamesFrom(tx, cut(name, MAX_LENGTH - 8));
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `-${number}`;
    const candidate = cut(name, MAX_LENGTH - suffix.length) + suffix;
    if (!taken.has(candidate)) return candidate;
  }
}

const cut = (text: string, length: number): string => [...text].slice(0, length).join('');

/** An agent that connects for the first time. */
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
  attributes: hello.attributes,
  state_operation_id: null,
  enrolment_token_id: null,
});

export function pendingEvent({ connection, hello: { hostname } }: NewAgent): DomainEvent {
  const { publicKey: public_key, remoteAddress: address, nodeId: node_id } = connection;
  const summary = `An unknown agent on ${hostname} (${address}) waits for approval`;
  return agentEvent('agent.pending', { node_id, name: null }, summary, { public_key, hostname, address });
}

/** Maximum names shown; of longer lists, the count of the others. */
const SHOWN = 5;

export function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}
