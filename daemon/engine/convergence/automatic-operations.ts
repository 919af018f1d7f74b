/**
 * Applies that the orchestrator has started by itself, as the stored operations show them. Their `requested_by` is
 * `on-connect:NAME`, `enforce:NAME` or `repair:NAME` with the name of an assignment, so nothing else need be remembered over a restart.
 */

import { sql } from 'kysely';
import { decodeTime, encodeTime } from 'ulid';
import type { ResourceResult } from '../../../src/resources/result.js';
import { listAuditRows } from '../../core/audit-store.js';
import { type Party, SYSTEM } from '../../core/domain-event.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { Queryable } from '../../database/schema.js';
import { storedJson } from '../../database/stored-json.js';
import { ACTIVE_STATES } from '../operations/operation-state.js';
import type { RolloutPace } from '../rollouts/rollout-store.js';

/** Reason for an automatic apply: something is missing on an agent that connects, changed modules, or drift. */
export const CAUSES = ['on-connect', 'enforce', 'repair'] as const;
export type Cause = (typeof CAUSES)[number];

/** Returns the party that automatic applies of an assignment are requested by. */
export const automaticParty = (cause: Cause, assignment: string): Party => ({
  ...SYSTEM,
  id: `${cause}:${assignment}`,
  name: `${cause}:${assignment}`,
});

/** Operator IDs are hex, so a colon tells automatic applies apart. */
const isAutomatic = sql<boolean>`"requested_by" like '%:%'`;
/** PostgreSQL answers a comparison with a boolean, SQLite with a number. */
const automaticAsNumber = sql<number>`case when ${isAutomatic} then 1 else 0 end`;
const isAttended = sql<boolean>`"requested_by" not like '%:%'`;

/** Returns true when an operator has begun an apply of the agent after the ULID. */
export async function lastAttendedOperation(db: Queryable, nodeId: string, after: string): Promise<boolean> {
  return (await attended(db, nodeId, after)).length > 0;
}

const attended = preparedQuery((db, nodeId: string, after: string) =>
  db
    .selectFrom('operations')
    .select('operation_id')
    .where('node_id', '=', nodeId)
    .where('operation_id', '>', after)
    // Going back and one-off values end no stop: what was withdrawn would return at once.
    .where('restores', 'is', null)
    .where('values_sha256', 'is', null)
    .where(isAttended)
    .limit(1),
);

/** Number of the newest operations that a back-off looks at. */
const LOOKED_AT = 20;

export interface PastFailures {
  /** Automatic applies that did not succeed, since the last apply that did. */
  readonly failures: number;
  /** End of the newest automatic apply in Unix milliseconds; null if there is none or it goes on. */
  readonly endedAt: number | null;
  /** Name of the operator who cancelled the newest automatic apply; null otherwise. */
  readonly cancelledBy: string | null;
}

/** Returns what became of the newest automatic applies of an agent. Failures count after the ULID. */
export async function pastFailures(db: Queryable, nodeId: string, after: string): Promise<PastFailures> {
  const all = await newestOf(db, nodeId);
  const rows = all.filter(({ operation_id }) => operation_id > after);
  const newest = all.at(0);
  const failed = rows.findIndex(({ state, automatic }) => state === 'succeeded' || automatic === 0);
  const cancelled = rows.at(0)?.automatic === 1 ? rows.at(0)?.cancelled_by_json : null;
  const by: Party | null = cancelled ? storedJson(cancelled) : null;
  return {
    failures: failed < 0 ? rows.length : failed,
    endedAt: newest?.automatic === 1 ? newest.finished_at : null,
    cancelledBy: by?.name ?? null,
  };
}

const newestOf = preparedQuery((db, nodeId: string) =>
  db
    .selectFrom('operations')
    .select([
      'operation_id',
      'state',
      'finished_at',
      'cancelled_by_json',
      'restores',
      automaticAsNumber.as('automatic'),
    ])
    .where('node_id', '=', nodeId)
    .orderBy('operation_id', 'desc')
    .limit(LOOKED_AT)
    .$castTo<{
      operation_id: string;
      state: string;
      finished_at: number | null;
      cancelled_by_json: string | null;
      restores: string | null;
      automatic: number;
    }>(),
);

/** Where an operator may have withdrawn content from an agent. */
interface Withdrawable {
  readonly nodeId: string;
  /** Assignment that asks for the apply, and the ULID after which what happened to it counts. */
  readonly assignment: string;
  readonly countedFrom: string;
  /** ULID after which applies of the agent count. */
  readonly since: string;
  /** The apply that gave the agent values of its own; null if its last apply brought none. Other content does not outdate it. */
  readonly ownValues: { readonly operationId: string } | null;
}

/**
 * Returns how an operator has withdrawn what an agent is to have: by going back to an earlier state, by an apply with values of its
 * own, or by a rollout that was cancelled or reverted and is the newest over the agent or the assignment. Null for none.
 */
export async function withdrawal(
  db: Queryable,
  { nodeId, assignment, countedFrom, since, ownValues }: Withdrawable,
): Promise<string | null> {
  if (ownValues !== null && !(await isResumed(db, assignment, ownValues.operationId))) {
    return `operation ${ownValues.operationId} applied values of its own, which an automatic apply would take away`;
  }
  const newest = (await newestOf(db, nodeId)).at(0);
  if (newest !== undefined && newest.operation_id > since && newest.restores !== null) {
    return `operation ${newest.operation_id} went back to an earlier state`;
  }
  const found = [
    ...(await newestOfAssignment(db, assignment, countedFrom)),
    ...(await newestWithAgent(db, nodeId, countedFrom)),
  ];
  const rollout = found.sort((a, b) => (a.rollout_id < b.rollout_id ? 1 : -1)).at(0);
  if (rollout === undefined) return null;
  const { rollout_id, state, pace_json } = rollout;
  if (state === 'cancelled' || state === 'reverted') return `rollout ${rollout_id} was ${state}`;
  const pace: RolloutPace = storedJson(pace_json);
  return state === 'failed' && pace.onFailure === 'revert' ? `rollout ${rollout_id} was to be reverted` : null;
}

/** Returns true if an operator has resumed the automatic applies of the assignment since the operation began. */
async function isResumed(db: Queryable, assignment: string, operationId: string): Promise<boolean> {
  const resumptions = await listAuditRows(db, {
    eventTypes: ['enforcement.resumed'],
    from: decodeTime(operationId),
    limit: RESUMPTIONS,
  });
  return resumptions.some(({ target_id }) => target_id === assignment);
}

/** Maximum number of resumptions that are searched for that of an assignment. */
const RESUMPTIONS = 200;

const newestOfAssignment = preparedQuery((db, assignment: string, after: string) =>
  db
    .selectFrom('rollouts')
    .select(['rollout_id', 'state', 'pace_json'])
    .where('assignment', '=', assignment)
    .where('rollout_id', '>', after)
    .where('finished_at', 'is not', null)
    .orderBy('rollout_id', 'desc')
    .limit(1),
);

const newestWithAgent = preparedQuery((db, nodeId: string, after: string) =>
  db
    .selectFrom('rollout_agents')
    .innerJoin('rollouts', 'rollouts.rollout_id', 'rollout_agents.rollout_id')
    .select(['rollouts.rollout_id', 'rollouts.state', 'pace_json'])
    .where('rollout_agents.node_id', '=', nodeId)
    .where('rollout_agents.rollout_id', '>', after)
    .where('finished_at', 'is not', null)
    .orderBy('rollout_agents.rollout_id', 'desc')
    .limit(1),
);

/** An automatic apply that has not ended. */
export interface ActiveApply {
  readonly operationId: string;
  readonly nodeId: string;
  /** Name of its assignment. */
  readonly assignment: string;
}

/** Returns the automatic applies that have not ended, also those whose agent is silent. */
export async function activeAutomatic(db: Queryable): Promise<readonly ActiveApply[]> {
  const rows = await db
    .selectFrom('operations')
    .select(['operation_id', 'node_id', 'requested_by'])
    .where('state', 'in', ACTIVE_STATES)
    // Lets SQLite use the index of states.
    .where(sql<boolean>`"state" != 'succeeded'`)
    .where(isAutomatic)
    .execute();
  return rows.map(({ operation_id, node_id, requested_by }) => ({
    operationId: operation_id,
    nodeId: node_id,
    assignment: requested_by.slice(requested_by.indexOf(':') + 1),
  }));
}

/** Returns how often repairs have changed each resource of an agent, by `kind identity`, after the ULID. */
export async function pastRepairs(db: Queryable, nodeId: string, after: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const { result_json } of await repairResults(db, nodeId, after)) {
    const { kind, identity, status }: ResourceResult = storedJson(result_json);
    const key = `${kind} ${identity}`;
    if (status === 'changed') counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

const repairResults = preparedQuery((db, nodeId: string, after: string) =>
  db
    .selectFrom('operations')
    .innerJoin('operation_results', 'operation_results.operation_id', 'operations.operation_id')
    .select('result_json')
    .where('operations.node_id', '=', nodeId)
    .where('operations.operation_id', '>', after)
    .where('requested_by', 'like', 'repair:%')
    .where('unchanged', 'is', null),
);

/** Errors of applies that never reached their agent, so they say nothing about the content. */
const UNREACHED: readonly string[] = ['not_delivered', 'agent_timeout'];

/** Returns the number of agents on which changed content of an assignment failed, after the ULID. */
export async function failedAgents(db: Queryable, assignment: string, after: string): Promise<number> {
  const by = (['on-connect', 'enforce'] as const).map((cause) => automaticParty(cause, assignment).id);
  const rows = await db
    .selectFrom('operations')
    .select(['node_id', 'error_json'])
    .where('state', 'in', ['failed', 'interrupted', 'rolled_back'])
    // Lets SQLite use the index of states.
    .where(sql<boolean>`"state" != 'succeeded'`)
    .where('operation_id', '>', after)
    .where('requested_by', 'in', by)
    .execute();
  const failed = rows.filter(({ error_json }) => {
    const code: unknown = error_json === null ? null : storedJson<{ readonly code?: unknown }>(error_json).code;
    return typeof code !== 'string' || !UNREACHED.includes(code);
  });
  return new Set(failed.map(({ node_id }) => node_id)).size;
}

/** Returns the later of a ULID and the ULID of a time, in Unix milliseconds. */
export const laterOf = (ulid: string, time: number): string => {
  const other = encodeTime(Math.max(0, time));
  return other > ulid ? other : ulid;
};
