/** Writes what an apply changed in the believed state, in the transaction that stores its end. */
import { noteAppliedState } from '../store/agents.js';
import {
  confirmAppliedResources,
  deleteAppliedResources,
  listAppliedResources,
  putAppliedResources,
} from '../store/applied-resources.js';
import type { Queryable } from '../store/queryable.js';
import { believedChange, isConfirmation } from './believed-state.js';
import type { LiveOperation } from './live-operation.js';

export interface BelievedStateInput {
  readonly operation: LiveOperation;
  /** Unix milliseconds. */
  readonly finishedAt: number;
  readonly succeeded: boolean;
}

/** Does nothing for an agent that was removed, even if it has come back under the same key. */
export async function saveBelievedState(tx: Queryable, input: BelievedStateInput): Promise<void> {
  const { operation, finishedAt, succeeded } = input;
  const { nodeId, content, outcomes } = operation;
  const existing = await listAppliedResources(tx, nodeId);
  const change = believedChange({ ...content, nodeId, operationId: operation.id, finishedAt, outcomes }, existing);
  const { put, remove } = change;
  if (!succeeded && put.length === 0 && remove.length === 0) return;
  if (!(await noteAppliedState(tx, nodeId, operation.id))) return;
  if (isConfirmation(change, existing)) {
    await confirmAppliedResources(tx, nodeId, { operation_id: operation.id, applied_at: finishedAt });
    return;
  }
  await deleteAppliedResources(tx, nodeId, remove);
  await putAppliedResources(tx, put);
}
