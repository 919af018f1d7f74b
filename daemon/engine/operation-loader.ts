/** Brings operations back from the store: at the start, and when an agent still has something to tell about one. */
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { isNodeId } from '../../src/kernel/ids.js';
import type { Queryable } from '../database/schema.js';
import { LiveOperation, outcomeOf } from './live-operation.js';
import { findOperation, listOperationResults, type OperationRow } from './operation-store.js';
import { resultOf, stateOf } from './operation-view.js';
import { readContent, sendable } from './stored-content.js';

export async function loadOperation(db: Queryable, operationId: string, clock: Clock): Promise<LiveOperation | null> {
  const row = await findOperation(db, operationId);
  return row === null ? null : restore(db, row, clock);
}

/** The operation of a row with the results that are stored. */
export async function restore(db: Queryable, row: OperationRow, clock: Clock): Promise<LiveOperation> {
  const { operation_id: id, node_id: nodeId } = row;
  if (!isNodeId(nodeId)) throw new Fault('internal', `operation ${id} is stored with the node ID "${nodeId}"`);
  const content = readContent(row);
  const results = await listOperationResults(db, id);
  return new LiveOperation({
    id,
    nodeId,
    nodeName: row.node_name,
    modules: JSON.parse(row.modules_json),
    requestedBy: row.requested_by,
    requestId: row.request_id,
    startedAt: row.started_at,
    epoch: row.epoch,
    generation: row.generation,
    state: stateOf(row),
    cancelledBy: row.cancelled_by_json === null ? null : JSON.parse(row.cancelled_by_json),
    content,
    dispatch: sendable(content),
    outcomes: results.map((stored) =>
      outcomeOf({ index: stored.item_index, result: resultOf(stored), existed: flagOf(stored.existed) }),
    ),
    now: clock.monotonic(),
  });
}

const flagOf = (column: number | null): boolean | null => (column === null ? null : column === 1);
