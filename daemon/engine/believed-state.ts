/** Computes and saves the changes that an apply makes to the believed state of its agent (`docs/protocols/apply.md`). */
import { mapped, type Steps } from '../../src/kernel/steps.js';
import { secretsIn } from '../../src/language/revive.js';
import type { DesiredResource, Origin, Removal } from '../../src/resources/desired.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { NewRow, Queryable } from '../database/schema.js';
import { noteAppliedState } from '../fleet/agent-store.js';
import type { SecretHashes } from './agent-secrets.js';
import {
  type AppliedResourceKey,
  type AppliedResourceRow,
  confirmAppliedResources,
  deleteAppliedResources,
  isSameResource,
  keyText,
  listAppliedResources,
  putAppliedResources,
  resourceColumns,
  resourceKey,
} from './applied-resource-store.js';
import { inSlices } from './lanes.js';
import type { LiveOperation } from './operations/live-operations.js';

/** The stored result of one item of the run. */
export interface ItemOutcome {
  readonly index: number;
  readonly status: ResourceResult['status'];
  /** True if the resource existed before this run touched it; null when unknown. */
  readonly existed: boolean | null;
}

interface FinishedApply {
  readonly nodeId: string;
  readonly operationId: string;
  /** Unix milliseconds. */
  readonly finishedAt: number;
  /** Resources as dispatched, with secrets masked. */
  readonly resources: readonly DesiredResource[];
  readonly removals: readonly Removal[];
  /** Modules that no assignment names. */
  readonly adHoc: ReadonlySet<string>;
  /** Hashes of the secrets in the resources. */
  readonly secrets: SecretHashes;
  readonly outcomes: readonly ItemOutcome[];
}

interface BelievedChange {
  readonly put: readonly NewRow<'applied_resources'>[];
  readonly remove: readonly AppliedResourceKey[];
}

/**
 * Returns new rows for resources that succeeded and keys of removals that succeeded. Failed and skipped items keep their row. A
 * row that a later apply wrote stays unchanged.
 */
function* believedChange(apply: FinishedApply, existing: readonly AppliedResourceRow[]): Steps<BelievedChange> {
  const before = new Map(yield* mapped(existing, (row) => [keyText(row), row] as const));
  const put: NewRow<'applied_resources'>[] = [];
  const remove: AppliedResourceKey[] = [];
  for (const outcome of apply.outcomes) {
    yield;
    if (outcome.status !== 'unchanged' && outcome.status !== 'changed') continue;
    const resource = apply.resources[outcome.index];
    const removal = apply.removals[outcome.index - apply.resources.length];
    const item = resource ?? removal;
    if (item === undefined) continue;
    const key = resourceKey(item);
    const last = before.get(keyText(key));
    if (last !== undefined && last.operation_id > apply.operationId) continue;
    if (resource === undefined) remove.push(key);
    else put.push(appliedRow(apply, { resource, outcome, last }));
  }
  return { put, remove };
}

interface Applied {
  readonly resource: DesiredResource;
  readonly outcome: ItemOutcome;
  readonly last: AppliedResourceRow | undefined;
}

function appliedRow(apply: FinishedApply, { resource, outcome, last }: Applied): NewRow<'applied_resources'> {
  const { module, kind, identity, id, name } = resource;
  return {
    node_id: apply.nodeId,
    ...resourceKey(resource),
    module,
    kind,
    identity,
    id,
    name,
    ...resourceColumns(resource, hashesOf(resource, apply.secrets)),
    origin: last?.origin ?? originOf(outcome),
    operation_id: apply.operationId,
    applied_at: apply.finishedAt,
    position: outcome.index,
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

/** A resource that may have existed before counts as adopted, and is never removed. */
const originOf = ({ existed }: ItemOutcome): Origin => (existed === false ? 'created' : 'adopted');

/** Returns true when the change covers every row of the agent and alters only the operation. */
function* isConfirmation({ put, remove }: BelievedChange, existing: readonly AppliedResourceRow[]): Steps<boolean> {
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
interface BelievedEnd extends BelievedChange {
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
  const change = await inSlices(believedChange({ ...content, nodeId, operationId, finishedAt, outcomes }, existing));
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
