/** Drift records as the API shows them. */
import type { DriftDetail, DriftRecord } from '../../src/contract/runs.js';
import { DRIFT_STATUSES } from '../../src/contract/runs.js';
import { toSeconds } from '../../src/kernel/clock.js';
import type { DriftHead, DriftRow } from './drift-store.js';
import { errorOf } from './operation-view.js';

export type DriftStatus = DriftRecord['status'];

const statusOf = (status: string): DriftStatus => DRIFT_STATUSES.find((known) => known === status) ?? 'failed';

export function driftView(row: DriftHead): DriftRecord {
  return {
    drift_id: row.drift_id,
    node_id: row.node_id,
    status: statusOf(row.status),
    trigger: row.trigger === 'scheduled' ? 'scheduled' : 'manual',
    requested_by: row.requested_by,
    operation_id: row.operation_id,
    started_at: toSeconds(row.started_at),
    finished_at: toSeconds(row.finished_at),
    has_changes: row.has_changes === 1,
    summary: JSON.parse(row.summary_json),
    error: errorOf(row),
  };
}

export const driftDetail = (row: DriftRow): DriftDetail => ({
  ...driftView(row),
  resources: JSON.parse(row.resources_json),
});
