/** Runs drift checks against the believed state, and reads their records. */

import type { DriftDetail, DriftRecord } from '../../../src/contract/runs.js';
import { Fault, isFault } from '../../../src/kernel/fault.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { resourceKey } from '../../../src/resources/resource-key.js';
import { summarize } from '../../../src/resources/result.js';
import { isTainted } from '../../../src/resources/tainted-body.js';
import type { Core } from '../../core/core.js';
import { type Party, SYSTEM } from '../../core/domain-event.js';
import type { Rights } from '../../core/rights.js';
import { agentParty } from '../../fleet/agent-store.js';
import type { Machines } from '../../fleet/machines.js';
import { type AgentSecrets, noteSecretUse, type ResolvedSecrets } from '../agent-secrets.js';
import { selectedNodeIds } from '../assignments/assignment-store.js';
import type { Lanes } from '../lanes.js';
import { type AgentGate, agentLabel, approvedAgent, type KnownAgent, knownAgent } from '../runs/agent-gate.js';
import type { Leases } from '../runs/leases.js';
import { Observation, type Observations, underLease } from '../runs/observations.js';
import type { DecodedContent, RunContents } from '../runs/run-contents.js';
import { inSlices } from '../slices.js';
import { appliedResource, listAppliedResources } from '../state/applied-resource-store.js';
import {
  type AppliedSecrets,
  changedSecretNotes,
  reviveApplied,
  secretsOf,
  secretsOfRows,
} from '../state/applied-secrets.js';
import { hashesOf, stateContentOf } from '../state/believed-state.js';
import { likelyCauses } from './drift-causes.js';
import { excused } from './drift-excuses.js';
import { countExcuses, isDrifted, resultView } from './drift-results.js';
import {
  type DriftOutcome,
  type DriftRow,
  type DriftStatus,
  driftDetail,
  driftEvents,
  driftView,
  findDrift,
  insertDrift,
  latestDrift,
  latestDriftState,
  latestDriftStatus,
  listDrift,
  outcomeOf,
  outcomeOfFailure,
  shortResults,
} from './drift-store.js';

interface DriftOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly machines: Machines;
  readonly gate: AgentGate;
  readonly leases: Leases;
  readonly observations: Observations;
  readonly secrets: AgentSecrets;
  readonly lanes: Lanes;
  readonly contents: RunContents;
}

/** A request for a drift check. `requestedBy` is null for a scheduled one. */
interface DriftRequest {
  readonly nodeId: string;
  readonly signal: AbortSignal;
  readonly requestedBy: { readonly actor: Party; readonly requestId: string } | null;
}

interface Check {
  readonly agent: KnownAgent;
  readonly driftId: string;
  /** ID of the apply to compare with. */
  readonly operationId: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly request: DriftRequest;
}

interface Believed {
  /** With masks in the place of secrets. */
  readonly resources: readonly DesiredResource[];
  readonly secrets: readonly AppliedSecrets[];
  /** True if a resource holds a secret. */
  readonly hasSecrets: boolean;
  readonly contentId: number | null;
  /** Characters of the resources as JSON, or more; null when unknown. */
  readonly size: number | null;
}

function believedOf(content: DecodedContent, contentId: number): Believed {
  const { secrets: hashes, size } = content;
  return {
    // Order and triggers do not matter to a read-only check.
    resources: content.resources.map(({ after: _after, triggers: _triggers, ...resource }) => ({
      ...resource,
      after: [],
    })),
    secrets: content.resources.flatMap((resource) => {
      const held = hashesOf(resource, hashes);
      return held === null ? [] : [{ key: resourceKey(resource), hashes: held }];
    }),
    hasSecrets: content.resources.some(isTainted),
    contentId,
    size,
  };
}

interface DriftPage {
  readonly rights: Rights;
  readonly limit: number;
  readonly status: DriftStatus | null;
  /** Selector of agents; only their records. */
  readonly filter?: string | null | undefined;
  /** Cursor: only records older than this ID. */
  readonly before?: string | null | undefined;
}

export class Drift {
  private readonly options: DriftOptions;
  /** The compared state of checks, by the content that holds it. */
  private readonly compared = new WeakMap<DecodedContent, Believed>();

  constructor(options: DriftOptions) {
    this.options = options;
  }

  /**
   * Compares an agent with its believed state and stores a record, including for a failed or cancelled check. Throws the faults
   * of `AgentGate.pass`, `no_snapshot` and `operation_in_progress`. Throws `agent_timeout` after storing the record.
   */
  async check(request: DriftRequest): Promise<DriftDetail> {
    const { clock, newId, gate, leases } = this.options;
    const agent = await gate.pass(request.nodeId);
    if (agent.row.state_operation_id === null) throw noSnapshot(agent);
    return underLease({ kind: 'drift', nodeId: agent.nodeId, leases, signal: request.signal }, async (signal) => {
      // An apply may have ended while this check waited for the lease.
      const operationId = (await knownAgent(this.options.db, agent.nodeId)).row.state_operation_id;
      if (operationId === null) throw noSnapshot(agent);
      const check = { agent, driftId: newId(), operationId, startedAt: clock.now(), request };
      const { outcome, contentId, thrown } = await this.observe(check, signal);
      const record = await this.record(check, outcome, contentId);
      if (!isFault(thrown, 'agent_timeout')) return record;
      throw new Fault('agent_timeout', thrown.message, { data: { drift_id: check.driftId }, cause: thrown });
    });
  }

  /** Returns the records of an agent, newest first. Throws `agent_not_found`. */
  async listOfAgent(nodeId: string, page: DriftPage): Promise<DriftRecord[]> {
    const { row } = await knownAgent(this.options.db, nodeId);
    const readable = await this.options.machines.history(page.rights);
    const filter = { nodeId: row.node_id, since: row.created_id, ...page, readable };
    return (await listDrift(this.options.db, filter)).map(driftView);
  }

  /** Returns records, newest first. Throws `invalid_selector`. */
  async list({ filter, ...page }: DriftPage): Promise<DriftRecord[]> {
    const { db } = this.options;
    const nodeIds = filter == null ? undefined : await selectedNodeIds(db, filter);
    const readable = await this.options.machines.history(page.rights);
    return (await listDrift(db, { ...page, nodeIds, readable })).map(driftView);
  }

  /** Returns the newest record of an agent, or null before its first check. Throws `agent_not_found`. */
  async latest(nodeId: string, rights: Rights): Promise<DriftDetail | null> {
    const { db, machines } = this.options;
    const { row } = await knownAgent(db, nodeId);
    const readable = await machines.history(rights);
    const latest = await latestDrift(db, { nodeId: row.node_id, since: row.created_id, readable });
    return latest === null ? null : this.detail(latest);
  }

  /** Returns a record. Throws `drift_not_found`. */
  async get(driftId: string, rights: Rights): Promise<DriftDetail> {
    const { db, machines } = this.options;
    const row = await findDrift(db, driftId);
    if (row !== null && (await machines.mayRead(rights, row.node_id, driftId))) return this.detail(row);
    throw new Fault('drift_not_found', `there is no drift record "${driftId}"`, {
      hint: 'see what there is: orch drift list',
    });
  }

  private async observe(
    check: Check,
    signal: AbortSignal,
  ): Promise<{ readonly outcome: DriftOutcome; readonly contentId: number | null; readonly thrown: unknown }> {
    const { db, clock, observations, secrets, lanes } = this.options;
    const { nodeId, row } = check.agent;
    try {
      const applied = await lanes.enter(nodeId, () => this.believed(nodeId));
      const names = applied.hasSecrets ? await inSlices(secretsOf(applied.resources)) : new Set<string>();
      const resolved = await secrets.resolve(db, row, names);
      const { resources, failures } = applied.hasSecrets
        ? await inSlices(reviveApplied(applied.resources, resolved.source))
        : { resources: applied.resources, failures: [] };
      await this.noteSecrets(check, resolved);
      const content = { resources, removals: [] };
      const onResult = () => undefined;
      const size = applied.hasSecrets ? null : applied.size;
      const observation = new Observation({ runId: check.driftId, nodeId, mode: 'drift', content, size, onResult });
      const found = await observations.run(observation, signal);
      const noted = changedSecretNotes(applied.secrets, resolved.hashes);
      const judged = await excused(db, { nodeId, now: clock.now() }, found.results);
      const results = [...judged.map((result) => ({ ...result, ...noted(result) })), ...failures];
      const isWhole = failures.length === 0 && found.results.length === resources.length;
      const contentId = isWhole ? applied.contentId : null;
      return { outcome: outcomeOf({ ...found, results }), contentId, thrown: null };
    } catch (error) {
      return { outcome: outcomeOfFailure(error), contentId: null, thrown: error };
    }
  }

  /** Returns the believed state in the order of application. `contentId` is null if it equals no content. */
  private async believed(nodeId: string): Promise<Believed> {
    const { db, contents } = this.options;
    const state = await stateContentOf(db, nodeId);
    if (state === null) {
      const rows = await listAppliedResources(db, nodeId);
      const resources = rows.map(appliedResource);
      const hasSecrets = resources.some(isTainted);
      return { resources, secrets: secretsOfRows(rows), hasSecrets, contentId: null, size: null };
    }
    const content = await contents.get(db, state.content_id);
    const known = this.compared.get(content);
    if (known !== undefined) return known;
    const believed = believedOf(content, state.content_id);
    this.compared.set(content, believed);
    return believed;
  }

  private async detail(row: DriftRow): Promise<DriftDetail> {
    const { db, contents } = this.options;
    const content = row.content_id === null ? null : await contents.get(db, row.content_id);
    return this.withCauses(driftDetail(row, content?.resources ?? []));
  }

  /** Adds what ran on the machine when files were changed. */
  private async withCauses(detail: DriftDetail): Promise<DriftDetail> {
    const { node_id, drift_id: driftId, operation_id, finished_at, resources: given } = detail;
    const query = { nodeId: node_id, appliedBy: operation_id, driftId, until: finished_at };
    const resources = await likelyCauses(this.options.db, query, given);
    return { ...detail, resources };
  }

  private async noteSecrets({ agent, driftId, request }: Check, { hashes }: ResolvedSecrets): Promise<void> {
    if (hashes.size === 0) return;
    const { uow, secrets } = this.options;
    const by = request.requestedBy;
    const metadata = { drift_id: driftId, ...(by === null ? {} : { request_id: by.requestId }) };
    const use = { names: [...hashes.keys()], actor: by?.actor ?? SYSTEM, purpose: 'a drift check', metadata };
    await uow.write(async (tx, emit) => {
      await noteSecretUse({ tx, emit, secrets }, { agent: await approvedAgent(tx, agent.nodeId), ...use });
    });
  }

  private async record(check: Check, outcome: DriftOutcome, contentId: number | null): Promise<DriftDetail> {
    const { db, uow, clock, contents } = this.options;
    const content = contentId === null ? null : await contents.get(db, contentId);
    const row = rowOf(check, outcome, { finishedAt: clock.now(), contentId, resources: content?.resources ?? [] });
    await uow.write(async (tx, emit) => {
      const filter = { nodeId: row.node_id, since: check.agent.row.created_id };
      const wasInSync = (await latestDriftStatus(tx, filter)) === 'in_sync';
      const before = wasInSync ? 'in_sync' : await latestDriftState(tx, filter);
      await insertDrift(tx, row);
      // The record is enough for a scheduled check that finds what the check before it has found.
      if (wasInSync && outcome.status === 'in_sync' && check.request.requestedBy === null) return;
      for (const type of driftEvents(outcome.status, before)) emit(eventOf(type, check, outcome));
    });
    const detail = { ...driftView(row), resources: outcome.results.map(resultView) };
    return check.request.requestedBy === null ? detail : this.withCauses(detail);
  }
}

interface Compared {
  /** Unix milliseconds. */
  readonly finishedAt: number;
  readonly contentId: number | null;
  /** Resources of that content. */
  readonly resources: readonly DesiredResource[];
}

function rowOf(
  check: Check,
  { status, results, error }: DriftOutcome,
  { finishedAt, contentId, resources }: Compared,
): DriftRow {
  const { agent, driftId, operationId, startedAt, request } = check;
  return {
    drift_id: driftId,
    node_id: agent.nodeId,
    status,
    trigger: request.requestedBy === null ? 'scheduled' : 'manual',
    requested_by: request.requestedBy?.actor.id ?? null,
    operation_id: operationId,
    started_at: startedAt,
    finished_at: finishedAt,
    has_changes: results.some(isDrifted) ? 1 : 0,
    summary: summarize(results),
    resources: contentId === null ? results : shortResults(results, resources),
    error,
    content_id: contentId,
    snoozed: countExcuses(results, 'snoozed'),
    accepted: countExcuses(results, 'accepted'),
  };
}

const TEXTS = {
  'drift.checked': 'was checked for drift',
  'drift.detected': 'has drifted from what was applied',
  'drift.resolved': 'is as it was applied again',
  'drift.failed': 'could not be checked for drift',
} as const;

function eventOf(type: keyof typeof TEXTS, check: Check, { status, results, error }: DriftOutcome) {
  const { agent, driftId, operationId, request } = check;
  const counts = summarize(results);
  const [snoozed, accepted] = [countExcuses(results, 'snoozed'), countExcuses(results, 'accepted')];
  const excused = [
    ...(snoozed > 0 ? [`${snoozed} snoozed`] : []),
    ...(accepted > 0 ? [`${accepted} accepted`] : []),
  ].join(', ');
  const found = status === 'drifted' ? `: ${results.filter(isDrifted).length} of ${counts.total} resources differ` : '';
  const text = type === 'drift.resolved' && excused !== '' ? 'no longer has drift that counts' : TEXTS[type];
  return {
    type,
    actor: request.requestedBy?.actor ?? SYSTEM,
    target: agentParty(agent.row),
    summary: `${agentLabel(agent)} ${text}${found}${excused === '' ? '' : ` (${excused})`}${error === null ? '' : `: ${error.message}`}`,
    metadata: {
      drift_id: driftId,
      operation_id: operationId,
      status,
      trigger: request.requestedBy === null ? 'scheduled' : 'manual',
      summary: { ...counts },
      ...(excused === '' ? {} : { snoozed, accepted }),
      ...(request.requestedBy === null ? {} : { request_id: request.requestedBy.requestId }),
    },
  };
}

const noSnapshot = (agent: KnownAgent): Fault =>
  new Fault('no_snapshot', `nothing was ever applied to ${agentLabel(agent)}, so there is nothing to compare with`, {
    hint: `apply something first: orch apply ${agentLabel(agent)} -m MODULE`,
  });
