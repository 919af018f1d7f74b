/** Agents. Rows as they are stored: `attributes_json` is for the caller to parse. */
import type { Updateable } from 'kysely';
import type { AgentStatus } from '../../src/contract/agent-statuses.js';
import { Fault } from '../../src/kernel/fault.js';
import { chunks } from './chunks.js';
import type { Queryable } from './queryable.js';
import type { AgentTable, NewRow, Row } from './schema.js';

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
export async function agentNamesFrom(db: Queryable, start: string): Promise<ReadonlySet<string>> {
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

export interface AgentPage {
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
