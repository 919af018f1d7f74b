/** Results of runs on this machine in the shapes of the API. */
import type { DriftDetail, RunResult } from '../../contract/runs.js';
import { toSeconds } from '../../kernel/clock.js';
import { summarize } from '../../resources/result.js';
import type { LocalOutcome } from '../programs.js';
import type { LocalDesired } from './local-desired.js';
import type { LocalSession } from './local-session.js';

interface Times {
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly finishedAt: number;
}

interface RunParts extends Times {
  readonly desired: LocalDesired;
  readonly outcome: LocalOutcome;
  /** Null for a plan. */
  readonly operationId: string | null;
}

export function runResultOf({ agent }: LocalSession, parts: RunParts): RunResult {
  const { desired, outcome, operationId, startedAt, finishedAt } = parts;
  const resources = [...outcome.results.map(({ result }) => result), ...desired.failures];
  const done = operationId === null ? 'pending' : 'changed';
  return {
    operation_id: operationId,
    node_id: agent.node_id,
    status: statusOf(outcome, desired),
    has_changes: resources.some(({ status }) => status === done),
    modules: [...desired.modules],
    started_at: toSeconds(startedAt),
    finished_at: toSeconds(finishedAt),
    summary: {
      ...summarize(resources),
      total: desired.resources.length + desired.removals.length + desired.failures.length,
    },
    resources,
    warnings: desired.warnings,
    plan_hash: null,
    error: outcome.error,
  };
}

/** A success with a removal that cannot be carried out is none. */
function statusOf({ end }: LocalOutcome, { failures }: LocalDesired): RunResult['status'] {
  if (end === 'refused') return 'failed';
  return end === 'succeeded' && failures.length > 0 ? 'failed' : end;
}

interface DriftParts extends Times {
  readonly driftId: string;
  /** The apply compared with. */
  readonly operationId: string;
  readonly outcome: LocalOutcome;
}

export function driftDetailOf({ agent }: LocalSession, parts: DriftParts): DriftDetail {
  const { driftId, operationId, outcome, startedAt, finishedAt } = parts;
  const resources = outcome.results.map(({ result }) => result);
  const { status, error } = driftStatus(outcome);
  return {
    drift_id: driftId,
    node_id: agent.node_id,
    status,
    trigger: 'manual',
    requested_by: null,
    operation_id: operationId,
    started_at: toSeconds(startedAt),
    finished_at: toSeconds(finishedAt),
    has_changes: resources.some((resource) => resource.status === 'pending'),
    summary: summarize(resources),
    error,
    resources,
  };
}

/** A difference is drift, even where something else could not be observed. */
function driftStatus({ end, error, results }: LocalOutcome): Pick<DriftDetail, 'status' | 'error'> {
  const statuses = results.map(({ result }) => result.status);
  if (statuses.includes('pending')) return { status: 'drifted', error };
  if (end === 'succeeded' && statuses.every((status) => status === 'unchanged')) return { status: 'in_sync', error };
  const failed = statuses.filter((status) => status === 'failed').length;
  const unobserved = { code: 'observe_failed', message: `${failed} resources could not be observed` };
  return { status: end === 'cancelled' ? 'cancelled' : 'failed', error: error ?? unobserved };
}
