/** Computes and saves the changes that an apply makes to the believed state of its agent (`docs/protocols/apply.md`). */

import type { ExpressionBuilder } from 'kysely';
import { mapped, type Steps } from '../../../src/kernel/steps.js';
import { secretsIn } from '../../../src/language/revive.js';
import { type BelievedChange, believedChange, type ReportedApply } from '../../../src/resources/believed-state.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { keyParts, keyText, resourceKey } from '../../../src/resources/resource-key.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { Database, NewRow, Queryable } from '../../database/schema.js';
import { noteAppliedState } from '../../fleet/agent-store.js';
import type { LiveOperation } from '../operations/live-operations.js';
import { inSlices } from '../slices.js';
import {
  type AppliedResourceKey,
  type AppliedResourceRow,
  confirmAppliedResources,
  deleteAppliedResources,
  isSameResource,
  listAppliedResources,
  originOf,
  putAppliedResources,
  resourceColumns,
} from './applied-resource-store.js';
import type { SecretHashes } from './secret-hashes.js';

interface FinishedApply extends ReportedApply {
  readonly nodeId: string;
  /** Unix milliseconds. */
  readonly finishedAt: number;
  /** Apply that confirmed every row last, without writing it; empty if there is none. */
  readonly confirmedBy: string;
  /** Modules that no assignment names. */
  readonly adHoc: ReadonlySet<string>;
  /** Hashes of the secrets in the resources. */
  readonly secrets: SecretHashes;
}

interface RowChange {
  readonly put: readonly NewRow<'applied_resources'>[];
  readonly remove: readonly AppliedResourceKey[];
}

function* rowChange(apply: FinishedApply, existing: readonly AppliedResourceRow[]): Steps<RowChange> {
  const rows = new Map(yield* mapped(existing, (row) => [keyText(row), row] as const));
  const { put, remove } = yield* believedChange(apply, (item) => {
    const row = rows.get(resourceKey(item));
    const { confirmedBy } = apply;
    if (row === undefined) return undefined;
    return {
      kind: row.kind,
      origin: originOf(row),
      operation_id: row.operation_id > confirmedBy ? row.operation_id : confirmedBy,
    };
  });
  return { put: yield* mapped(put, (one) => appliedRow(apply, one)), remove: yield* mapped(remove, keyParts) };
}

function appliedRow(
  apply: FinishedApply,
  { resource, index, origin, listeners }: BelievedChange['put'][number],
): NewRow<'applied_resources'> {
  const { module, kind, identity, id, name } = resource;
  return {
    node_id: apply.nodeId,
    ...keyParts(resource),
    module,
    kind,
    identity,
    id,
    name,
    ...resourceColumns(resource, hashesOf(resource, apply.secrets)),
    origin,
    operation_id: apply.operationId,
    applied_at: apply.finishedAt,
    position: index,
    ad_hoc: apply.adHoc.has(module) ? 1 : 0,
    listeners_json: listeners === undefined ? null : JSON.stringify(listeners),
  };
}

/** Returns the hashes of the secrets in the resource; null when it holds none. */
export function hashesOf(resource: DesiredResource, secrets: SecretHashes): SecretHashes | null {
  const held = secretsIn(resource).flatMap((name) => {
    const hash = secrets[name];
    return hash === undefined ? [] : [[name, hash] as const];
  });
  return held.length === 0 ? null : Object.fromEntries(held);
}

/** Returns true when the change covers every row of the agent and alters only the operation. */
function* isConfirmed({ put, remove }: RowChange, existing: readonly AppliedResourceRow[]): Steps<boolean> {
  if (remove.length > 0 || put.length !== existing.length) return false;
  const before = new Map(yield* mapped(existing, (row) => [keyText(row), row] as const));
  for (const row of put) {
    const last = before.get(keyText(row));
    if (last === undefined || !isSameResource(row, last)) return false;
    yield;
  }
  return true;
}

/** Changes to the believed state at the end of an apply, to be saved in the transaction that stores the end. */
interface BelievedEnd extends RowChange {
  readonly operation: LiveOperation;
  /** Content that the state equalled before; null for none. */
  readonly before: StateContent | null;
  /** True when the state equals the content of the apply afterwards. */
  readonly isExact: boolean;
}

/** Computes the changes. The caller must hold the agent's lane until the end is saved. */
export async function believedEnd(db: Queryable, operation: LiveOperation, finishedAt: number): Promise<BelievedEnd> {
  const { id: operationId, nodeId, content, contentId, outcomes } = operation;
  const before = await stateContentOf(db, nodeId);
  const isWhole = isWholeSuccess(operation);
  if (before?.content_id === contentId && isWhole) return { operation, before, put: [], remove: [], isExact: true };
  const existing = await listAppliedResources(db, nodeId);
  const confirmedBy = before?.operation_id ?? '';
  const apply = { ...content, nodeId, operationId, finishedAt, confirmedBy, outcomes };
  const change = await inSlices(rowChange(apply, existing));
  const isExact = isWhole && change.put.length === content.resources.length && coversAll(change, existing);
  const isConfirmation = isExact && (await inSlices(isConfirmed(change, existing)));
  return { operation, before, isExact, ...(isConfirmation ? { put: [], remove: [] } : change) };
}

/** Returns true when every resource and every removal of the apply succeeded. */
export const isWholeSuccess = ({ outcomes, items, content }: LiveOperation): boolean =>
  outcomes.length === items.count &&
  content.failures.length === 0 &&
  outcomes.every(({ status }) => status === 'unchanged' || status === 'changed');

/** Returns true when no row stays that the change neither replaces nor removes. */
function coversAll({ put, remove }: RowChange, existing: readonly AppliedResourceRow[]): boolean {
  const covered = new Set([...put, ...remove].map(keyText));
  return existing.every((row) => covered.has(keyText(row)));
}

/** The drift of an agent, as the end of an apply finds it. */
export interface FoundDrift {
  /** ULID of the moment at which the agent enrolled; empty for a removed agent. */
  readonly created_id: string;
  /** The newest drift check with a result, if it found drift. */
  readonly drifted_id: string | null;
}

const GONE: FoundDrift = { created_id: '', drifted_id: null };

/** Selects the ID of the newest drift check of an agent with a result, null unless it found drift. */
const driftedId = (db: ExpressionBuilder<Database, 'agents'>) =>
  db
    .selectFrom('drift_records')
    .select((of) =>
      of.case().when('drift_records.status', '=', 'drifted').then(of.ref('drift_id')).end().as('drift_id'),
    )
    .whereRef('drift_records.node_id', '=', 'agents.node_id')
    .whereRef('drift_id', '>=', 'agents.created_id')
    .where('drift_records.status', 'in', ['drifted', 'in_sync'])
    .orderBy('drift_records.drift_id', 'desc')
    .limit(1)
    .as('drifted_id');

export async function foundDrift(tx: Queryable, nodeId: string): Promise<FoundDrift> {
  const [agent] = await agentWithDrift(tx, nodeId);
  return agent ?? GONE;
}

const agentWithDrift = preparedQuery((db, nodeId: string) =>
  db
    .selectFrom('agents')
    .select((of) => ['created_id', 'state_operation_id', 'state_content_id', driftedId(of)])
    .where('agents.node_id', '=', nodeId),
);

/**
 * Notes an apply that found the believed state as it is. Returns null, without a change, when the state differs from the
 * content of the apply. Changes nothing for a removed agent, even if it has returned under the same key.
 */
export async function confirmBelievedState(
  tx: Queryable,
  { id, nodeId, contentId }: LiveOperation,
): Promise<FoundDrift | null> {
  const [confirmed] = await confirmState(tx, id, nodeId, contentId);
  if (confirmed !== undefined) return confirmed;
  const [agent] = await agentWithDrift(tx, nodeId);
  if (agent === undefined) return GONE;
  const { created_id, state_operation_id: last, state_content_id } = agent;
  // The state that a later apply has confirmed stays that of the later one.
  return created_id > id || (state_content_id === contentId && last !== null) ? agent : null;
}

const confirmState = preparedQuery((db, operationId: string, nodeId: string, contentId: number) =>
  db
    .updateTable('agents')
    .set({ state_operation_id: operationId })
    .where('agents.node_id', '=', nodeId)
    .where('created_id', '<=', operationId)
    .where('state_content_id', '=', contentId)
    .where('state_operation_id', '<', operationId)
    .returning((of) => ['created_id', driftedId(of)]),
);

/** Saves the changes. Does nothing for a removed agent, even if it has returned under the same key. */
export async function saveBelievedState(tx: Queryable, end: BelievedEnd, succeeded: boolean): Promise<void> {
  const { operation, before, isExact, put, remove } = end;
  const { id, nodeId, contentId } = operation;
  const isKept = put.length === 0 && remove.length === 0;
  if (!succeeded && isKept) return;
  const content = isExact ? { contentId } : isKept ? {} : { contentId: null };
  if (!(await noteAppliedState(tx, nodeId, { operationId: id, ...content }))) return;
  if (isKept) return;
  if (before !== null) await confirmAppliedResources(tx, nodeId, before);
  await deleteAppliedResources(tx, nodeId, remove);
  await putAppliedResources(tx, put);
}

/** Content whose resources are exactly the believed state of an agent. */
interface StateContent {
  readonly content_id: number;
  readonly sha256: string;
  /** Apply that confirmed all of them last, and its time in Unix milliseconds. */
  readonly operation_id: string;
  readonly applied_at: number;
}

/** Returns the content that the believed state equals; null when it may differ from every content. */
export async function stateContentOf(db: Queryable, nodeId: string): Promise<StateContent | null> {
  const [row] = await stateContent(db, nodeId);
  if (row === undefined) return null;
  const { content_id, sha256, operation_id, finished_at, started_at } = row;
  return { content_id, sha256, operation_id, applied_at: finished_at ?? started_at };
}

const stateContent = preparedQuery((db, nodeId: string) =>
  db
    .selectFrom('agents')
    .innerJoin('run_contents', 'run_contents.content_id', 'agents.state_content_id')
    .innerJoin('operations', 'operations.operation_id', 'agents.state_operation_id')
    .select(['run_contents.content_id', 'sha256', 'operation_id', 'finished_at', 'started_at'])
    .where('agents.node_id', '=', nodeId),
);
