/** Operations as the API shows them. */
import type { Operation } from '../../src/contract/operations.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { mapped, type Steps } from '../../src/kernel/steps.js';
import type { ResourceResult, Summary } from '../../src/resources/result.js';
import type { OperationError } from './operation-state.js';
import type { OperationHead, OperationResultRow } from './operation-store.js';
import { parseState, statusOf } from './stored-state.js';

export const errorOf = ({ error_json }: { readonly error_json: string | null }): OperationError | null =>
  error_json === null ? null : JSON.parse(error_json);

export const stateOf = (row: OperationHead) => parseState({ ...row, error: errorOf(row) });

/** `summary` is the one of the moment when it is known, else the stored one. */
export function operationView(row: OperationHead, summary?: Summary): Operation {
  return {
    operation_id: row.operation_id,
    node_id: row.node_id,
    node_name: row.node_name,
    kind: 'apply',
    status: statusOf(stateOf(row).state),
    modules: JSON.parse(row.modules_json),
    assignments: JSON.parse(row.assignments_json),
    rollout_id: row.rollout_id,
    requested_by: row.requested_by,
    started_at: toSeconds(row.started_at),
    finished_at: row.finished_at === null ? null : toSeconds(row.finished_at),
    summary: summary ?? JSON.parse(row.summary_json),
    error: errorOf(row),
  };
}

export const resultOf = (row: OperationResultRow): ResourceResult => JSON.parse(row.result_json);

/** In the order of the run, which is not that in which they came. */
export const inRunOrder = (rows: readonly OperationResultRow[]): Steps<ResourceResult[]> =>
  mapped(
    [...rows].sort((a, b) => a.item_index - b.item_index),
    resultOf,
  );

export const operationNotFound = (operationId: string): Fault =>
  new Fault('operation_not_found', `there is no operation "${operationId}"`, {
    hint: 'see what there is: orch ops list',
  });
