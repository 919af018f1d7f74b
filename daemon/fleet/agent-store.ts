/** Rows of agents, and the records, events and names derived from them. */
import { type OrderByItemBuilder, type SqlBool, sql, type Updateable } from 'kysely';
import type { AgentStatus } from '../../src/contract/agent-statuses.js';
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { DomainEvent, EventType, Party } from '../core/domain-event.js';
import { chunks } from '../database/batches.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { AgentTable, NewRow, Queryable, Row } from '../database/schema.js';
import { jsonGroup, jsonObject, jsonValue } from '../database/sql-json.js';
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

/** Returns the agent of a row as it is stored. */
export const agentOf = (row: Row<'agents'>): AgentRow => columns.decode(row);

export async function findAgent(db: Queryable, nodeId: string): Promise<AgentRow | null> {
  const [row] = await agentById(db, nodeId);
  return row === undefined ? null : agentOf(row);
}

const agentById = preparedQuery((db, nodeId: string) =>
  db.selectFrom('agents').selectAll().where('node_id', '=', nodeId),
);

/** Returns true if the agent has a record, of whatever status. */
export const hasAgent = async (db: Queryable, nodeId: string): Promise<boolean> =>
  (await agentIdById(db, nodeId)).length > 0;

const agentIdById = preparedQuery((db, nodeId: string) =>
  db.selectFrom('agents').select('node_id').where('node_id', '=', nodeId),
);

export async function findAgentByName(db: Queryable, name: string): Promise<AgentRow | null> {
  const row = await db.selectFrom('agents').selectAll().where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Returns the node IDs of all agents. */
export const listAgentIds = async (db: Queryable): Promise<readonly string[]> =>
  (await db.selectFrom('agents').select('node_id').execute()).map(({ node_id }) => node_id);

/** Returns the names of all agents except one. */
export async function otherAgentNames(db: Queryable, nodeId: string): Promise<readonly string[]> {
  const query = db.selectFrom('agents').select('name').where('name', 'is not', null).where('node_id', '!=', nodeId);
  return (await query.execute()).flatMap(({ name }) => name ?? []);
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

interface Arrival {
  /** Unix milliseconds. */
  readonly now: number;
  readonly agentVersion: string;
  readonly protocolVersion: number;
}

/** Notes that an agent has connected. */
export async function noteArrival(db: Queryable, nodeId: string, arrival: Arrival): Promise<void> {
  await updateArrival(db, nodeId, arrival.now, arrival.agentVersion, arrival.protocolVersion);
}

const updateArrival = preparedQuery(
  (db, nodeId: string, now: number, agent_version: string, protocol_version: number) =>
    db
      .updateTable('agents')
      .set({ connected_at: now, last_seen_at: now, updated_at: now, agent_version, protocol_version })
      .where('node_id', '=', nodeId),
);

/** Notes when an agent disconnected, in Unix milliseconds. */
export async function noteDeparture(db: Queryable, nodeId: string, now: number): Promise<void> {
  await updateDeparture(db, nodeId, now);
}

const updateDeparture = preparedQuery((db, nodeId: string, now: number) =>
  db.updateTable('agents').set({ last_seen_at: now }).where('node_id', '=', nodeId),
);

/**
 * Deletes an agent with its tags, believed state and metrics; operations and drift records stay. Returns false when
 * there is no such agent.
 */
export async function deleteAgent(db: Queryable, nodeId: string): Promise<boolean> {
  await db.deleteFrom('metrics_samples').where('node_id', '=', nodeId).execute();
  const result = await db.deleteFrom('agents').where('node_id', '=', nodeId).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/**
 * An agent as the API shows it: the JSON of its members before and after `connected`, which is not in the store. The store
 * writes the JSON, because the benchmark rows of agents miss their goals when each column becomes a value first.
 */
export interface ShownAgent extends ListPlace {
  /** Seconds without a connection after which it is removed; null for never. */
  readonly ephemeral_secs: number | null;
  /** JSON object of the members before `connected`. */
  readonly head: string;
  /** JSON object of the members after `connected` and before `tags`. */
  readonly tail: string;
  /** JSON object of the tags. */
  readonly tags: string;
}

const headOf = (db: Queryable) =>
  jsonObject(db, { node_id: sql.ref('node_id'), name: sql.ref('name'), status: sql.ref('status') });

const tailOf = (db: Queryable) =>
  jsonObject(db, {
    connected_at: sql`connected_at / 1000`,
    updated_at: sql`updated_at / 1000`,
    initial_hostname: sql.ref('initial_hostname'),
    initial_ip: sql.ref('initial_ip'),
    agent_version: sql.ref('agent_version'),
    public_key: sql.ref('public_key'),
    attributes: jsonValue(db, sql.ref('attributes_json')),
  });

const tagsTextOf = (db: Queryable) => sql<string>`coalesce((
  select ${jsonGroup(db, 'key', 'value')}
  from (select "key", "value" from agent_tags where agent_tags.node_id = agents.node_id order by "key") as sorted
), '{}')`;

const selectShown = (db: Queryable) =>
  db
    .selectFrom('agents')
    .select([
      'node_id',
      'name',
      'ephemeral_secs',
      headOf(db).as('head'),
      tailOf(db).as('tail'),
      tagsTextOf(db).as('tags'),
    ]);

const shownById = preparedQuery((db, nodeId: string) => selectShown(db).where('node_id', '=', nodeId));

/** Returns what the API shows of an agent, or null. */
export async function findShownAgent(db: Queryable, nodeId: string): Promise<ShownAgent | null> {
  return (await shownById(db, nodeId))[0] ?? null;
}

/** Returns the number of approved agents with another version than the given one. */
export async function countOtherVersions(db: Queryable, version: string): Promise<number> {
  const query = db.selectFrom('agents').select(({ fn }) => fn.countAll<number>().as('agents'));
  const row = await query.where('status', '=', 'approved').where('agent_version', '!=', version).executeTakeFirst();
  return row?.agents ?? 0;
}

/** Place in the list of agents: that of an agent, by name, or of an unnamed one after all names. */
type ListPlace = Pick<AgentRow, 'name' | 'node_id'>;

export interface AgentPage {
  readonly status?: AgentStatus | null | undefined;
  /** Name of the only agent to return. */
  readonly name?: string | null | undefined;
  /** Place of the last agent of the previous page; null for the first page. */
  readonly after: ListPlace | null;
  /** Maximum number of agents. */
  readonly limit: number;
}

/** Returns agents by name, unnamed ones last, then by node ID, as the API shows them. */
export async function listShownAgents(db: Queryable, page: AgentPage): Promise<readonly ShownAgent[]> {
  const { status, name, after, limit } = page;
  if (name != null) return shownByName(db, name, after?.name ?? '', status ?? null, limit);
  const unnamed = (from: Queryable, above: string, most: number) =>
    status ? shownUnnamedOf(from, above, most, status) : shownUnnamed(from, above, most);
  if (after !== null && after.name === null) return unnamed(db, after.node_id, limit);
  // One transaction, because an agent that gets its name between the two reads would be in neither.
  return db.transaction().execute(async (tx) => {
    const above = after?.name ?? '';
    const named = await (status ? shownNamedOf(tx, above, limit, status) : shownNamed(tx, above, limit));
    return named.length === limit ? named : [...named, ...(await unnamed(tx, '', limit - named.length))];
  });
}

const shownByName = preparedQuery((db, name: string, above: string, status: string | null, limit: number) =>
  selectShown(db)
    .where('name', '=', name)
    .where('name', '>', above)
    .where(sql<SqlBool>`status = coalesce(${status}, status)`)
    .limit(limit),
);

const idsOfNamed = (db: Queryable, above: string, limit: number) =>
  db.selectFrom('agents').select('node_id').where('name', '>', above).orderBy('name').limit(limit);

const idsOfUnnamed = (db: Queryable, above: string, limit: number) =>
  db
    .selectFrom('agents')
    .select('node_id')
    .where('name', 'is', null)
    .where('node_id', '>', above)
    .orderBy('node_id')
    .limit(limit);

const shownNamed = preparedQuery((db, above: string, limit: number) =>
  selectShown(db).where('name', '>', above).orderBy('name').limit(limit),
);

// The others sort what they read, so they choose the agents of the page first.
const shownNamedOf = preparedQuery((db, above: string, limit: number, status: string) =>
  selectShown(db)
    .where('node_id', 'in', idsOfNamed(db, above, limit).where('status', '=', status))
    .orderBy('name'),
);

const shownUnnamed = preparedQuery((db, above: string, limit: number) =>
  selectShown(db)
    .where('node_id', 'in', idsOfUnnamed(db, above, limit))
    .orderBy('node_id'),
);

const shownUnnamedOf = preparedQuery((db, above: string, limit: number, status: string) =>
  selectShown(db)
    .where('node_id', 'in', idsOfUnnamed(db, above, limit).where('status', '=', status))
    .orderBy('node_id'),
);

/** Returns the place of an agent. Throws `invalid_cursor` when it does not exist. */
export async function placeOfAgent(db: Queryable, nodeId: string): Promise<ListPlace> {
  const query = db.selectFrom('agents').select(['name', 'node_id']).where('node_id', '=', nodeId);
  const place = await query.executeTakeFirst();
  if (place) return place;
  throw new Fault('invalid_cursor', '"cursor" names an agent that is not in the store', {
    hint: 'start again with the first page',
  });
}

/** Returns all agents of a status by name, unnamed ones last, then by node ID. */
export async function listAgents(
  db: Queryable,
  { status }: Pick<AgentPage, 'status'> = {},
): Promise<readonly AgentRow[]> {
  let query = db.selectFrom('agents').selectAll();
  if (status) query = query.where('status', '=', status);
  const rows = await query.orderBy('name', nullsLast).orderBy('node_id').execute();
  return rows.map((row) => columns.decode(row));
}

const nullsLast = (by: OrderByItemBuilder) => by.asc().nullsLast();

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
 * Notes the apply that the believed state reflects, unless a later one is already noted. With `contentId` also notes the
 * content that the state equals; null for none. Returns false when the apply's agent no longer exists; an agent that enrolled
 * later with the same key does not count.
 */
export async function noteAppliedState(
  db: Queryable,
  nodeId: string,
  { operationId, contentId }: { readonly operationId: string; readonly contentId?: number | null },
): Promise<boolean> {
  const [same] = await stateOperationOf(db, nodeId, operationId);
  if (same === undefined) return false;
  const newest = (same.state_operation_id ?? '') < operationId ? operationId : same.state_operation_id;
  await putState(db, nodeId, newest, contentId === undefined ? same.state_content_id : contentId);
  return true;
}

/**
 * Stores which apply began the trial of an agent; null ends the trial. Does nothing for a removed agent, even if it has returned
 * under the same key.
 */
export async function setTrial(
  db: Queryable,
  nodeId: string,
  { operationId, trialId }: { readonly operationId: string; readonly trialId: string | null },
): Promise<void> {
  await db
    .updateTable('agents')
    .set({ trial_operation_id: trialId })
    .where('node_id', '=', nodeId)
    .where('created_id', '<=', operationId)
    .execute();
}

/** Returns the agents whose last apply began a trial, which may have ended. */
export const listTrials = (db: Queryable): Promise<readonly Pick<AgentRow, 'node_id' | 'trial_operation_id'>[]> =>
  db
    .selectFrom('agents')
    .select(['node_id', 'trial_operation_id'])
    .where('trial_operation_id', 'is not', null)
    .execute();

const stateOperationOf = preparedQuery((db, nodeId: string, operationId: string) =>
  db
    .selectFrom('agents')
    .select(['state_operation_id', 'state_content_id'])
    .where('node_id', '=', nodeId)
    .where('created_id', '<=', operationId),
);

const putState = preparedQuery((db, nodeId: string, operationId: string | null, contentId: number | null) =>
  db
    .updateTable('agents')
    .set({ state_operation_id: operationId, state_content_id: contentId })
    .where('node_id', '=', nodeId),
);

/** Returns the public keys of approved agents. */
export async function listApprovedKeys(db: Queryable): Promise<readonly string[]> {
  const rows = await db.selectFrom('agents').select('public_key').where('status', '=', 'approved').execute();
  return rows.map((row) => row.public_key);
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

/**
 * Returns a free name for an agent, derived from the host name, with the lowest number appended that makes it unlike all
 * other names.
 */
export async function freeNameOf(tx: Queryable, nodeId: string, hostname: string): Promise<string> {
  const name = nameOfHostname(hostname);
  const taken = new LookAlikes(await otherAgentNames(tx, nodeId));
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `-${number}`;
    const candidate = cut(name, MAX_LENGTH - suffix.length) + suffix;
    if (taken.like(candidate) === null) return candidate;
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
  state_content_id: null,
  enrolment_token_id: null,
  trial_operation_id: null,
  ephemeral_secs: null,
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
