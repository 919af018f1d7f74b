/** Works out what an apply changed in the believed state of its agent, and writes it in the transaction that stores its end. */
import type { Queryable } from '../database/schema.js';
import { noteAppliedState } from '../fleet/agent-store.js';
import {
  confirmAppliedResources,
  deleteAppliedResources,
  listAppliedResources,
  putAppliedResources,
} from './applied-resource-store.js';
import { type BelievedChange, believedChange, isConfirmation } from './believed-state.js';
import type { LiveOperation } from './live-operation.js';
import { inSlices } from './slices.js';

export interface BelievedEnd extends BelievedChange {
  readonly operation: LiveOperation;
  /** Unix milliseconds. */
  readonly finishedAt: number;
  /** Every resource of the agent was found as it is believed to be. */
  readonly isConfirmation: boolean;
}

/** To be called in the lane of the agent, which has to be held until the end is saved. */
export async function believedEnd(db: Queryable, operation: LiveOperation, finishedAt: number): Promise<BelievedEnd> {
  const { id: operationId, nodeId, content, outcomes } = operation;
  const existing = await listAppliedResources(db, nodeId);
  const change = await inSlices(believedChange({ ...content, nodeId, operationId, finishedAt, outcomes }, existing));
  return { ...change, operation, finishedAt, isConfirmation: await inSlices(isConfirmation(change, existing)) };
}

/** Does nothing for an agent that was removed, even if it has come back under the same key. */
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
