/** Stores rollouts and their agents. */

import { expressionBuilder, sql } from 'kysely';
import { encodeTime } from 'ulid';
import type { RolloutAgent, RolloutRecord } from '../../../src/contract/rollouts.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { Party } from '../../core/domain-event.js';
import { chunks, upTo } from '../../database/batches.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { Database, Queryable, Row } from '../../database/schema.js';
import { isReadable, type Readable } from '../../fleet/machines.js';
import { type ApplyLimits, NO_LIMITS } from '../applies/apply-limits.js';
import { ACTIVE_STATES } from '../operations/operation-state.js';
import { deleteUnusedOneOffValues } from '../values/one-off-store.js';

/** The content that a rollout applies to each agent. */
export interface RolloutOrder extends ApplyLimits {
  /** Modules beside those of the assignments. */
  readonly modules: readonly string[];
}

/** Bounds of a rollout; percentages are resolved. */
export interface RolloutPace {
  readonly concurrency: number;
  /** Number of canaries, which are the first wave; 0 for none. */
  readonly canary: number;
  /** Number of agents in each wave. */
  readonly waves: readonly number[];
  readonly soakSecs: number;
  readonly maxFailures: number | null;
  readonly onFailure: 'halt' | 'revert';
  readonly skipOffline: boolean;
  /** How long offline agents are waited for; null when they are not. */
  readonly whenOnlineSecs: number | null;
}

export type RolloutCounts = RolloutRecord['counts'];

interface RolloutValues {
  readonly order: RolloutOrder;
  readonly pace: RolloutPace;
  readonly counts: RolloutCounts;
  readonly actor: Party;
  /** Inputs that its one-off values set; null for none. */
  readonly value_inputs: readonly string[] | null;
}

interface AgentValues {
  readonly summary: RolloutAgent['summary'];
  readonly error: RolloutAgent['error'];
}

const rolloutColumns = jsonColumns<RolloutValues>({
  order: true,
  pace: true,
  counts: true,
  actor: true,
  value_inputs: true,
});
const agentColumns = jsonColumns<AgentValues>({ summary: true, error: true });

export type RolloutState = RolloutRecord['state'];
export type RolloutAgentState = RolloutAgent['state'];

type Typed<R, State> = Omit<R, 'state'> & { readonly state: State };

export type RolloutRow = Typed<Decoded<Row<'rollouts'>, RolloutValues>, RolloutState>;
export type RolloutAgentRow = Typed<Decoded<Row<'rollout_agents'>, AgentValues>, RolloutAgentState>;

const rolloutOf = (row: Row<'rollouts'>): RolloutRow => {
  const decoded = rolloutColumns.decode(row);
  // The records of older versions have fewer limits.
  return { ...decoded, order: { ...NO_LIMITS, ...decoded.order }, state: decoded.state as RolloutState };
};

const agentOf = (row: Row<'rollout_agents'>): RolloutAgentRow => {
  const decoded = agentColumns.decode(row);
  return { ...decoded, state: decoded.state as RolloutAgentState };
};

/** Returns the row of an agent that waits for its turn. */
export const waitingAgent = (
  agent: Pick<RolloutAgentRow, 'rollout_id' | 'position' | 'node_id' | 'name' | 'wave' | 'expect'>,
): RolloutAgentRow => ({
  ...agent,
  state: 'waiting',
  forgiven: 0,
  operation_id: null,
  summary: null,
  error: null,
});

/** Rows per statement: each has eleven values. */
const ROWS = 500;

export async function insertRollout(
  tx: Queryable,
  rollout: RolloutRow,
  agents: readonly RolloutAgentRow[],
): Promise<void> {
  await tx.insertInto('rollouts').values(rolloutColumns.encode(rollout)).execute();
  for (const part of chunks(agents, ROWS)) {
    await tx
      .insertInto('rollout_agents')
      .values(part.map((agent) => agentColumns.encode(agent)))
      .execute();
  }
}

/** The columns of a rollout that change. */
export type RolloutChange = Pick<
  RolloutRow,
  'state' | 'reason' | 'counts' | 'actor' | 'finished_at' | 'passed' | 'soaking_until' | 'expires_at'
>;

export async function updateRollout(tx: Queryable, rolloutId: string, change: RolloutChange): Promise<void> {
  await tx.updateTable('rollouts').set(rolloutColumns.encode(change)).where('rollout_id', '=', rolloutId).execute();
}

export async function findRollout(db: Queryable, rolloutId: string): Promise<RolloutRow | null> {
  const row = await db.selectFrom('rollouts').selectAll().where('rollout_id', '=', rolloutId).executeTakeFirst();
  return row === undefined ? null : rolloutOf(row);
}

/** Returns the agents of a rollout, in its order. */
export async function listRolloutAgents(db: Queryable, rolloutId: string): Promise<readonly RolloutAgentRow[]> {
  const query = db.selectFrom('rollout_agents').selectAll().where('rollout_id', '=', rolloutId);
  return (await query.orderBy('position').execute()).map(agentOf);
}

/** Returns the rollouts that still have something to do: those that run, and those with agents in flight. */
export async function listActiveRollouts(db: Queryable): Promise<readonly RolloutRow[]> {
  const rows = await db
    .selectFrom('rollouts')
    .selectAll()
    .where('finished_at', 'is', null)
    .where(({ eb, exists, or, selectFrom }) =>
      or([
        eb('state', 'in', ['running', 'reverting', 'cancelled']),
        exists(
          selectFrom('rollout_agents')
            .select('position')
            .whereRef('rollout_agents.rollout_id', '=', 'rollouts.rollout_id')
            .where('rollout_agents.state', '=', 'running'),
        ),
      ]),
    )
    .orderBy('rollout_id')
    .execute();
  return rows.map(rolloutOf);
}

/** Patterns of stored errors that say that the end of an apply is not known. */
const UNKNOWN_END = ['%"code":"agent_timeout"%', '%"code":"interrupted"%'] as const;

/** Returns whether a rollout counts an agent as failed because the end of its apply was not known. */
export async function wasGivenUp(db: Queryable, rolloutId: string, nodeId: string): Promise<boolean> {
  const row = await givenUp(db)
    .select('position')
    .where('rollout_id', '=', rolloutId)
    .where('node_id', '=', nodeId)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the agents that rollouts gave up although all their applies have known ends by now. */
export const listHeardAgents = (db: Queryable): Promise<readonly Pick<RolloutAgentRow, 'rollout_id' | 'node_id'>[]> =>
  givenUp(db)
    .select(['rollout_id', 'node_id'])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('operations')
            .select('operation_id')
            .whereRef('operations.rollout_id', '=', 'rollout_agents.rollout_id')
            .whereRef('operations.node_id', '=', 'rollout_agents.node_id')
            .whereRef('operations.operation_id', '>=', 'rollout_agents.operation_id')
            .where('operations.state', 'in', ['interrupted', ...ACTIVE_STATES]),
        ),
      ),
    )
    .execute();

const givenUp = (db: Queryable) =>
  db
    .selectFrom('rollout_agents')
    .where('state', '=', 'failed')
    .where('operation_id', 'is not', null)
    .where(({ eb, or }) => or(UNKNOWN_END.map((pattern) => eb('error_json', 'like', pattern))));

/** Returns the rollouts that have not ended, whether they run, are paused or halted. */
export const listUnfinishedRollouts = (
  db: Queryable,
): Promise<readonly Pick<RolloutRow, 'rollout_id' | 'assignment'>[]> =>
  db.selectFrom('rollouts').select(['rollout_id', 'assignment']).where('finished_at', 'is', null).execute();

/** Returns the node IDs of the agents of a rollout. */
export async function nodesOfRollout(db: Queryable, rolloutId: string): Promise<readonly string[]> {
  const query = db.selectFrom('rollout_agents').select('node_id').where('rollout_id', '=', rolloutId);
  return (await query.execute()).map(({ node_id }) => node_id);
}

/** Returns the node IDs of agents with an operation that has not ended, and of those in rollouts that have not. */
export async function busyNodes(db: Queryable): Promise<ReadonlySet<string>> {
  const operations = db.selectFrom('operations').select('node_id').where('state', 'in', ACTIVE_STATES);
  const unfinished = db.selectFrom('rollouts').select('rollout_id').where('finished_at', 'is', null);
  const inRollouts = db.selectFrom('rollout_agents').select('node_id').where('rollout_id', 'in', unfinished);
  const rows = [...(await operations.execute()), ...(await inRollouts.execute())];
  return new Set(rows.map(({ node_id }) => node_id));
}

/** Returns the node IDs of the agents in rollouts that name a module, and have neither ended nor been cancelled. */
export async function agentsOfOpenRollouts(db: Queryable, module: string): Promise<readonly string[]> {
  const open = db.selectFrom('rollouts').selectAll().where('finished_at', 'is', null).where('state', '!=', 'cancelled');
  const rows = await open.execute();
  const naming = rows.map(rolloutOf).filter(({ order }) => order.modules.includes(module));
  const agents = await Promise.all(naming.map(({ rollout_id }) => listRolloutAgents(db, rollout_id)));
  return [...new Set(agents.flat().map(({ node_id }) => node_id))];
}

/** Halts the rollouts that would start further applies by themselves. Returns their IDs. */
export async function haltOpenRollouts(tx: Queryable, reason: string): Promise<readonly string[]> {
  const halted = await tx
    .updateTable('rollouts')
    .set({ state: 'halted', reason, soaking_until: null })
    .where('finished_at', 'is', null)
    .where('state', 'in', ['running', 'reverting'])
    .returning('rollout_id')
    .execute();
  return halted.map(({ rollout_id }) => rollout_id).sort();
}

interface RolloutFilter {
  readonly state: RolloutState | null;
  readonly assignment: string | null;
  /** Machines and records that every agent has to be among; null for no limit. */
  readonly readable: Readable | null;
}

/** Returns a page of rollouts, most recent first. */
export async function listRollouts(
  db: Queryable,
  filter: RolloutFilter,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<readonly RolloutRow[]> {
  const query = db.selectFrom('rollouts').selectAll().where(matches(db, filter)).orderBy('rollout_id', 'desc');
  return (await query.limit(limit).offset(offset).execute()).map(rolloutOf);
}

export async function countRollouts(db: Queryable, filter: RolloutFilter): Promise<number> {
  const { count } = await db
    .selectFrom('rollouts')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where(matches(db, filter))
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the number of rollouts in each state that has not ended. */
export async function countOpenRollouts(db: Queryable): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('rollouts')
    .select((select) => ['state', select.fn.countAll<number>().as('count')] as const)
    .where('finished_at', 'is', null)
    .groupBy('state')
    .execute();
  return new Map(rows.map(({ state, count }) => [state, count]));
}

/** Selects the agents of a rollout that are not to be read. */
const hiddenAgents = (db: Queryable, readable: Readable) =>
  db
    .selectFrom('rollout_agents')
    .select('node_id')
    .where(sql<boolean>`${sql.ref('rollout_agents.rollout_id')} = ${sql.ref('rollouts.rollout_id')}`)
    .where(sql<boolean>`not ${isReadable(db, readable, 'rollout_agents.rollout_id')}`);

function matches(db: Queryable, { state, assignment, readable }: RolloutFilter) {
  const is = expressionBuilder<Database, 'rollouts'>();
  return is.and([
    ...(state === null ? [] : [is('state', '=', state)]),
    ...(assignment === null ? [] : [is('assignment', '=', assignment)]),
    ...(readable === null ? [] : [is.not(is.exists(hiddenAgents(db, readable)))]),
  ]);
}

/**
 * Notes that the apply of a waiting agent begins; must run in the transaction that stores the operation. Returns false when the
 * agent no longer waits or its rollout no longer runs: then nothing may begin.
 */
export async function beginRolloutAgent(
  tx: Queryable,
  { rolloutId, position }: { readonly rolloutId: string; readonly position: number },
  operationId: string,
): Promise<boolean> {
  const [begun] = await beginAgent(tx, operationId, rolloutId, position);
  return begun !== undefined;
}

const beginAgent = preparedQuery((db, operationId: string, rolloutId: string, position: number) =>
  db
    .updateTable('rollout_agents')
    .set({ state: 'running', operation_id: operationId, summary_json: null, error_json: null })
    .where('rollout_id', '=', rolloutId)
    .where('position', '=', position)
    .where('state', '=', 'waiting')
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('rollouts')
          .select('rollouts.rollout_id')
          .whereRef('rollouts.rollout_id', '=', 'rollout_agents.rollout_id')
          .where('rollouts.state', '=', 'running'),
      ),
    )
    .returning('position'),
);

/** Stores how far agents of a rollout have come. */
export async function updateRolloutAgents(tx: Queryable, agents: readonly RolloutAgentRow[]): Promise<void> {
  for (const agent of agents) {
    const { rollout_id, position, state, forgiven, operation_id, summary_json, error_json } =
      agentColumns.encode(agent);
    await updateRow(tx, state, forgiven, operation_id, summary_json, error_json, rollout_id, position);
  }
}

const updateRow = preparedQuery(
  (
    db,
    state: string,
    forgiven: number,
    operation_id: string | null,
    summary_json: string | null,
    error_json: string | null,
    rolloutId: string,
    position: number,
  ) =>
    db
      .updateTable('rollout_agents')
      .set({ state, forgiven, operation_id, summary_json, error_json })
      .where('rollout_id', '=', rolloutId)
      .where('position', '=', position),
);

/** Maximum number of rollouts deleted in one transaction. */
const ROLLOUTS_AT_ONCE = 100;

/**
 * Deletes ended rollouts that began before `time` (Unix milliseconds), oldest first, until they have about `agents`
 * agents in total. Returns the number of deleted rollouts.
 */
export async function deleteRolloutsBefore(db: Queryable, time: number, agents: number): Promise<number> {
  const old = await db
    .selectFrom('rollouts')
    .select(['rollout_id', 'counts_json'])
    // Rollout IDs are ULIDs, so they sort by time.
    .where('rollout_id', '<', encodeTime(time))
    // A halted one keeps its change from other agents until an operator ends it.
    .where('finished_at', 'is not', null)
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('rollout_agents')
            .select('position')
            .whereRef('rollout_agents.rollout_id', '=', 'rollouts.rollout_id')
            .where('rollout_agents.state', '=', 'running'),
        ),
      ),
    )
    .orderBy('rollout_id')
    .limit(ROLLOUTS_AT_ONCE)
    .execute();
  const doomed = upTo(old, agents, (row) => 1 + rolloutColumns.decode(row).counts.agents);
  for (const { rollout_id } of doomed) {
    await db.deleteFrom('rollouts').where('rollout_id', '=', rollout_id).execute();
  }
  if (doomed.length > 0) await deleteUnusedOneOffValues(db);
  return doomed.length;
}

/** Returns a rollout for the API. */
export function rolloutRecord(row: RolloutRow): RolloutRecord {
  const { pace, expires_at } = row;
  return {
    rollout_id: row.rollout_id,
    state: row.state,
    reason: row.reason,
    assignment: row.assignment,
    selector: row.selector,
    modules: [...row.order.modules],
    ...(row.value_inputs === null ? {} : { value_inputs: [...row.value_inputs] }),
    requested_by: row.requested_by,
    started_at: toSeconds(row.started_at),
    finished_at: row.finished_at === null ? null : toSeconds(row.finished_at),
    pace: {
      concurrency: pace.concurrency,
      canary: pace.canary,
      waves: [...pace.waves],
      soak_secs: pace.soakSecs,
      max_failures: pace.maxFailures,
      on_failure: pace.onFailure,
      skip_offline: pace.skipOffline,
      expires_at: expires_at === null ? null : toSeconds(expires_at),
    },
    wave: waveOf(row),
    counts: row.counts,
  };
}

/** Returns the current wave; null for a rollout without agents. */
function waveOf({ pace, passed, soaking_until }: RolloutRow): RolloutRecord['wave'] {
  const of = pace.waves.length;
  if (of === 0) return null;
  const until = soaking_until === null ? null : toSeconds(soaking_until);
  return { number: Math.min(passed + 1, of), of, soaking_until: until };
}

/** Returns an agent of a rollout for the API. */
export const rolloutAgentView = (row: RolloutAgentRow): RolloutAgent => ({
  node_id: row.node_id,
  name: row.name,
  wave: row.wave,
  state: row.state,
  operation_id: row.operation_id,
  summary: row.summary,
  error: row.error,
});

export const rolloutNotFound = (id: string): Fault =>
  new Fault('rollout_not_found', `there is no rollout "${id}"`, { hint: 'see what there is: orch rollouts list' });
