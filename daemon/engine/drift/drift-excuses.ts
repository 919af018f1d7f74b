/** Drift that does not count: snoozed until a time, or accepted as it was found. */

import type {
  DriftAccept,
  DriftedAddress,
  DriftSnooze,
  driftExcuseRoutes,
} from '../../../src/contract/drift-excuses.js';
import type { DriftExcuse } from '../../../src/contract/runs.js';
import { toSeconds, toTimestamp } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type RequestContext } from '../../core/domain-event.js';
import { notGranted, type Rights } from '../../core/rights.js';
import type { Queryable } from '../../database/schema.js';
import { agentParty } from '../../fleet/agent-store.js';
import { keepsReadable, type Machines } from '../../fleet/machines.js';
import type { HandlersFor } from '../../http/handler.js';
import type { Lanes } from '../lanes.js';
import { agentLabel, type KnownAgent, knownAgent } from '../runs/agent-gate.js';
import { listAppliedResources } from '../state/applied-resource-store.js';
import {
  type AcceptRow,
  addressColumns,
  deleteSnooze,
  findSnooze,
  insertSnooze,
  listAccepts,
  listSnoozes,
  putAccepts,
  type SnoozeRow,
} from './drift-excuse-store.js';
import { type DriftResult, isDrifted } from './drift-results.js';
import { findDrift, latestDriftResult } from './drift-store.js';

/** Returns the results with the excuses that hold for the agent at `now` (Unix milliseconds) in the place of earlier ones. */
export async function excused(
  db: Queryable,
  { nodeId, now }: { readonly nodeId: string; readonly now: number },
  results: readonly DriftResult[],
): Promise<readonly DriftResult[]> {
  if (!results.some(({ status }) => status === 'pending')) return results;
  const snoozes = await listSnoozes(db, now, nodeId);
  const accepts = new Map((await listAccepts(db, nodeId)).map((row) => [keyText(row), row]));
  return results.map((result) => {
    const { excuse: _, ...bare } = result;
    const excuse = bare.status === 'pending' ? excuseOf(bare, { snoozes, accepts }) : null;
    return excuse === null ? bare : { ...bare, excuse };
  });
}

interface Excuses {
  readonly snoozes: readonly SnoozeRow[];
  /** By the key of the resource. */
  readonly accepts: ReadonlyMap<string, AcceptRow>;
}

function excuseOf(result: DriftResult, { snoozes, accepts }: Excuses): DriftExcuse | null {
  const key = resourceKey(result);
  const accept = accepts.get(key);
  const observed = result.trace?.observed ?? null;
  if (accept !== undefined && observed !== null && accept.observed === observed) {
    return { kind: 'accepted', by: accept.accepted_by, reason: accept.reason, until: null };
  }
  const snooze = snoozes.findLast(({ resources }) => resources?.some((one) => resourceKey(one) === key) ?? true);
  if (snooze === undefined) return null;
  return { kind: 'snoozed', by: snooze.created_by, reason: snooze.reason, until: toSeconds(snooze.ends_at) };
}

/**
 * Returns the differences of an agent that count now: those of its newest check with a result, without what is snoozed or accepted
 * now. Returns none before the first check, and after an apply that succeeded since.
 */
export async function standingDrift(
  db: Queryable,
  { nodeId, since, now }: { readonly nodeId: string; readonly since: string; readonly now: number },
): Promise<readonly DriftResult[]> {
  const latest = await latestDriftResult(db, { nodeId, since });
  const record = latest === null ? null : await findDrift(db, latest.drift_id);
  if (record === null) return [];
  const applied = await db
    .selectFrom('operations')
    .select('operation_id')
    .where('node_id', '=', nodeId)
    .where('operation_id', '>', record.drift_id)
    .where('state', '=', 'succeeded')
    .limit(1)
    .executeTakeFirst();
  if (applied !== undefined) return [];
  const different = record.resources.flatMap((one) => ('count' in one ? [] : [one]));
  return (await excused(db, { nodeId, now }, different)).filter(isDrifted);
}

interface DriftExcusesOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly machines: Machines;
  readonly lanes: Lanes;
}

interface SnoozeRequest {
  /** Managed resources; null for all. */
  readonly resources: readonly DriftedAddress[] | null;
  /** Unix seconds. */
  readonly endsAt: number;
  readonly reason: string;
}

interface AcceptRequest {
  readonly driftId: string;
  readonly resources: readonly DriftedAddress[];
  readonly reason: string | null;
}

export class DriftExcuses {
  private readonly options: DriftExcusesOptions;

  constructor(options: DriftExcusesOptions) {
    this.options = options;
  }

  /** Returns the excuses of an agent, or of all. Throws `agent_not_found`. */
  async list(nodeId: string | null, rights: Rights): Promise<{ snoozes: DriftSnooze[]; accepts: DriftAccept[] }> {
    const { db, clock, machines } = this.options;
    if (nodeId !== null) await machines.require(rights, nodeId);
    const node = nodeId === null ? undefined : (await knownAgent(db, nodeId)).nodeId;
    const isShown = keepsReadable(await machines.history(rights));
    const snoozes = (await listSnoozes(db, clock.now(), node)).filter((row) =>
      isShown({ nodeId: row.node_id, id: row.snooze_id }),
    );
    const accepts = (await listAccepts(db, node)).filter((row) => isShown({ nodeId: row.node_id, id: row.drift_id }));
    return { snoozes: snoozes.map(snoozeView), accepts: accepts.map(acceptView) };
  }

  /** Throws `agent_not_found`, `resource_not_found` for a resource that is not managed, and `invalid_body`. */
  async snooze(nodeId: string, request: SnoozeRequest, context: RequestContext): Promise<DriftSnooze> {
    const { db, clock, newId, uow, lanes } = this.options;
    const { resources, reason } = request;
    const now = clock.now();
    const endsAt = request.endsAt * 1000;
    if (endsAt <= now) throw invalidEnd();
    const { nodeId: known } = await knownAgent(db, nodeId);
    const managed = await lanes.enter(known, () => listAppliedResources(db, known));
    return uow.write(async (tx, emit) => {
      const agent = await knownAgent(tx, known);
      const keys = new Set(managed.map(keyText));
      const stranger = resources?.find((one) => !keys.has(resourceKey(one)));
      if (stranger !== undefined) throw notManaged(agent, stranger);
      const row: SnoozeRow = {
        snooze_id: newId(),
        node_id: agent.nodeId,
        resources: resources === null ? null : resources.map(bareAddress),
        reason,
        created_at: now,
        created_by: context.actor.id,
        ends_at: endsAt,
      };
      await insertSnooze(tx, row, now);
      emit(
        eventOfRequest(context, {
          type: 'drift.snoozed',
          target: partyOf(agent),
          summary: `${context.actor.name} snoozed drift of ${whatOf(row.resources)} on ${agentLabel(agent)} until ${toTimestamp(endsAt)}: ${reason}`,
          metadata: snoozeDetails(row),
        }),
      );
      return snoozeView(row);
    });
  }

  /** Ends a snooze. Throws `snooze_not_found`, `not_granted`. */
  async endSnooze(snoozeId: string, context: RequestContext, rights: Rights): Promise<void> {
    const { clock, uow } = this.options;
    await this.requireRight(snoozeId, rights);
    await uow.write(async (tx, emit) => {
      const row = await findSnooze(tx, snoozeId);
      if (row === null || row.ends_at <= clock.now()) throw snoozeNotFound(snoozeId);
      const agent = await knownAgent(tx, row.node_id);
      await deleteSnooze(tx, snoozeId);
      emit(
        eventOfRequest(context, {
          type: 'drift.snooze_ended',
          target: partyOf(agent),
          summary: `${context.actor.name} ended a snooze of drift of ${whatOf(row.resources)} on ${agentLabel(agent)}`,
          metadata: snoozeDetails(row),
        }),
      );
    });
  }

  private async requireRight(snoozeId: string, rights: Rights): Promise<void> {
    const { db, machines } = this.options;
    const row = rights.isLimited ? await findSnooze(db, snoozeId) : null;
    if (row === null) return;
    const machine = await machines.find(row.node_id);
    const isShown = await machines.mayRead(rights, row.node_id, snoozeId);
    if (machine === null || !isShown) throw snoozeNotFound(snoozeId);
    if (!rights.may('accept-drift', machine)) throw notGranted('accept-drift', 'its machine');
  }

  /**
   * Accepts the drift that a record shows, until the next apply changes the believed state. Throws `agent_not_found`,
   * `drift_not_found` and `drift_unacceptable`.
   */
  async accept(nodeId: string, request: AcceptRequest, context: RequestContext): Promise<DriftAccept[]> {
    const { clock, uow } = this.options;
    const { driftId, reason } = request;
    return uow.write(async (tx, emit) => {
      const agent = await knownAgent(tx, nodeId);
      const record = await findDrift(tx, driftId);
      if (record === null || record.node_id !== agent.nodeId) throw driftNotFound(driftId, agent);
      await refuseOld(tx, agent, record);
      const found = new Map(
        record.resources.flatMap((one) => ('count' in one ? [] : [[resourceKey(one), one] as const])),
      );
      const rows = request.resources.map((address): AcceptRow => {
        const observed = observedOf(agent, address, found.get(resourceKey(address)));
        return {
          node_id: agent.nodeId,
          ...addressColumns(address),
          operation_id: record.operation_id,
          observed,
          drift_id: driftId,
          reason,
          accepted_at: clock.now(),
          accepted_by: context.actor.id,
        };
      });
      await putAccepts(tx, rows);
      const why = reason === null ? '' : `: ${reason}`;
      emit(
        eventOfRequest(context, {
          type: 'drift.accepted',
          target: partyOf(agent),
          summary: `${context.actor.name} accepted the drift of ${whatOf(rows)} on ${agentLabel(agent)}${why}`,
          metadata: { drift_id: driftId, resources: rows.map(bareAddress), reason },
        }),
      );
      return rows.map(acceptView);
    });
  }
}

type RecordHead = Pick<NonNullable<Awaited<ReturnType<typeof findDrift>>>, 'drift_id' | 'operation_id'>;

/** Throws `drift_unacceptable` unless the record is the newest one and compares with the believed state of now. */
async function refuseOld(tx: Queryable, agent: KnownAgent, { drift_id, operation_id }: RecordHead): Promise<void> {
  const newest = await latestDriftResult(tx, { nodeId: agent.nodeId, since: agent.row.created_id });
  if (newest?.drift_id === drift_id && operation_id === agent.row.state_operation_id) return;
  const why = newest?.drift_id === drift_id ? 'an apply has changed the agent since' : 'there is a newer check';
  throw new Fault('drift_unacceptable', `the drift record ${drift_id} is out of date: ${why}`, {
    hint: `check again, and accept that: orch drift ${agentLabel(agent)}`,
  });
}

/** Returns the hash of what was found. Throws `drift_unacceptable`. */
function observedOf(agent: KnownAgent, address: DriftedAddress, found: DriftResult | undefined): string {
  const name = `${address.kind} ${address.identity}`;
  if (found?.status !== 'pending') {
    throw new Fault('drift_unacceptable', `${name} on ${agentLabel(agent)} has not drifted`, {
      hint: `see what has: orch drift latest ${agentLabel(agent)}`,
    });
  }
  const observed = found.trace?.observed ?? null;
  if (observed !== null) return observed;
  const why =
    found.trace === undefined
      ? 'its agent does not report what would tell a further change'
      : 'it holds a secret, so nothing tells a further change';
  const hint =
    found.trace === undefined
      ? `upgrade the agent (orch agents upgrade ${agentLabel(agent)}), or snooze it for a time: orch drift snooze`
      : 'snooze it for a time instead: orch drift snooze';
  throw new Fault('drift_unacceptable', `the drift of ${name} on ${agentLabel(agent)} cannot be accepted: ${why}`, {
    hint,
  });
}

const partyOf = ({ row }: KnownAgent) => agentParty(row);

const bareAddress = ({ module, kind, identity }: DriftedAddress): DriftedAddress => ({ module, kind, identity });

/** Maximum resources that a summary names. */
const NAMED = 3;

/** Returns `all resources`, `file-unix /a` or `file-unix /a, file-unix /b and 3 more`. */
function whatOf(resources: readonly DriftedAddress[] | null): string {
  if (resources === null) return 'all resources';
  const more = resources.length > NAMED ? ` and ${resources.length - NAMED} more` : '';
  return `${resources
    .slice(0, NAMED)
    .map(({ kind, identity }) => `${kind} ${identity}`)
    .join(', ')}${more}`;
}

const snoozeDetails = ({ snooze_id, resources, reason, ends_at }: SnoozeRow) => ({
  snooze_id,
  resources: resources === null ? null : resources.map((one) => ({ ...one })),
  reason,
  ends_at: toTimestamp(ends_at),
});

const snoozeView = ({ resources, created_at, ends_at, ...row }: SnoozeRow): DriftSnooze => ({
  ...row,
  resources: resources === null ? null : [...resources],
  created_at: toSeconds(created_at),
  ends_at: toSeconds(ends_at),
});

const acceptView = ({ node_id, reason, drift_id, accepted_at, accepted_by, ...row }: AcceptRow): DriftAccept => ({
  node_id,
  ...bareAddress(row),
  reason,
  drift_id,
  accepted_at: toSeconds(accepted_at),
  accepted_by,
});

const invalidEnd = (): Fault =>
  new Fault('invalid_body', 'the body is not valid: /ends_at must be in the future', {
    errors: [{ path: '/ends_at', message: 'must be in the future' }],
  });

const notManaged = (agent: KnownAgent, { kind, identity, module }: DriftedAddress): Fault =>
  new Fault('resource_not_found', `${kind} ${identity} of module ${module} is not managed on ${agentLabel(agent)}`, {
    hint: `see what is: orch state ${agentLabel(agent)}`,
  });

const snoozeNotFound = (id: string): Fault =>
  new Fault('snooze_not_found', `there is no snooze "${id}" that has not ended`, {
    hint: 'see what there is: orch drift snoozes',
  });

const driftNotFound = (id: string, agent: KnownAgent): Fault =>
  new Fault('drift_not_found', `there is no drift record "${id}" of ${agentLabel(agent)}`, {
    hint: `see what there is: orch drift list --agent ${agentLabel(agent)}`,
  });

export const driftExcuseHandlers = (excuses: DriftExcuses): HandlersFor<typeof driftExcuseRoutes> => ({
  listDriftExcuses: async ({ query, rights }) => ({
    status: 200,
    body: await excuses.list(query.node ?? null, rights),
  }),
  snoozeDrift: async ({ params, body: { resources, ends_at, reason }, context }) => ({
    status: 201,
    body: await excuses.snooze(params.node_id, { resources: resources ?? null, endsAt: ends_at, reason }, context),
  }),
  endDriftSnooze: async ({ params, context, rights }) => {
    await excuses.endSnooze(params.snooze_id, context, rights);
    return { status: 204, body: undefined };
  },
  acceptDrift: async ({ params, body: { drift_id, resources, reason }, context }) => ({
    status: 200,
    body: await excuses.accept(params.node_id, { driftId: drift_id, resources, reason: reason ?? null }, context),
  }),
});
