/** Computes and saves the changes that an apply makes to the believed state of its agent (`docs/protocols/apply.md`). */
import { mapped, type Steps } from '../../src/kernel/steps.js';
import { secretsIn } from '../../src/language/revive.js';
import { type BelievedChange, believedChange, type ReportedApply } from '../../src/resources/believed-state.js';
import type { DesiredResource } from '../../src/resources/desired.js';
import { keyParts, keyText, resourceKey } from '../../src/resources/resource-key.js';
import type { NewRow, Queryable } from '../database/schema.js';
import { noteAppliedState } from '../fleet/agent-store.js';
import type { SecretHashes } from './agent-secrets.js';
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
import { inSlices } from './lanes.js';
import type { LiveOperation } from './operations/live-operations.js';

interface FinishedApply extends ReportedApply {
  readonly nodeId: string;
  /** Unix milliseconds. */
  readonly finishedAt: number;
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
    return row && { origin: originOf(row), operation_id: row.operation_id };
  });
  return { put: yield* mapped(put, (one) => appliedRow(apply, one)), remove: yield* mapped(remove, keyParts) };
}

function appliedRow(
  apply: FinishedApply,
  { resource, index, origin }: BelievedChange['put'][number],
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
  };
}

function hashesOf(resource: DesiredResource, secrets: SecretHashes): SecretHashes | null {
  const held = secretsIn(resource).flatMap((name) => {
    const hash = secrets[name];
    return hash === undefined ? [] : [[name, hash] as const];
  });
  return held.length === 0 ? null : Object.fromEntries(held);
}

/** Returns true when the change covers every row of the agent and alters only the operation. */
function* isConfirmation({ put, remove }: RowChange, existing: readonly AppliedResourceRow[]): Steps<boolean> {
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
  /** Unix milliseconds. */
  readonly finishedAt: number;
  /** True when every resource of the agent was found as believed. */
  readonly isConfirmation: boolean;
}

/** Computes the changes. The caller must hold the agent's lane until the end is saved. */
export async function believedEnd(db: Queryable, operation: LiveOperation, finishedAt: number): Promise<BelievedEnd> {
  const { id: operationId, nodeId, content, outcomes } = operation;
  const existing = await listAppliedResources(db, nodeId);
  const change = await inSlices(rowChange({ ...content, nodeId, operationId, finishedAt, outcomes }, existing));
  return { ...change, operation, finishedAt, isConfirmation: await inSlices(isConfirmation(change, existing)) };
}

/** Saves the changes. Does nothing for a removed agent, even if it has returned under the same key. */
export async function saveBelievedState(tx: Queryable, end: BelievedEnd, succeeded: boolean): Promise<void> {
  const { operation, finishedAt, put, remove } = end;
  const { id, nodeId } = operation;
  if (!succeeded && put.length === 0 && remove.length === 0) return;
  if (!(await noteAppliedState(tx, nodeId, id))) return;
  if (end.isConfirmation) {
    await confirmAppliedResources(tx, nodeId, { operation_id: id, applied_at: finishedAt });
    return;
  }
  await deleteAppliedResources(tx, nodeId, remove);
  await putAppliedResources(tx, put);
}
