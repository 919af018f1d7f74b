/** What a drift check found, and which events that raises. */
import { isFault, messageOf } from '../../src/kernel/fault.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { EventType } from '../core/domain-event.js';
import type { DriftStatus } from './drift-view.js';
import type { Observed } from './observation.js';
import type { OperationError } from './operation-state.js';

export type DriftEventType = Exclude<Extract<EventType, `drift.${string}`>, 'drift.pruned'>;

export interface DriftOutcome {
  readonly status: DriftStatus;
  readonly results: readonly ResourceResult[];
  readonly error: OperationError | null;
}

/** A difference is drift, even where something else could not be observed. */
export function outcomeOf({ results, end, error }: Observed): DriftOutcome {
  if (results.some(({ status }) => status === 'pending')) return { status: 'drifted', results, error };
  if (end === 'succeeded' && results.every(({ status }) => status === 'unchanged')) {
    return { status: 'in_sync', results, error };
  }
  const failed = results.filter(({ status }) => status === 'failed').length;
  const unobserved = { code: 'observe_failed', message: `${failed} resources could not be observed` };
  return { status: end === 'cancelled' ? 'cancelled' : 'failed', results, error: error ?? unobserved };
}

/** What a check that did not come to its end amounts to. */
export function outcomeOfFailure(error: unknown): DriftOutcome {
  const known = isFault(error) ? { code: error.code, message: error.message } : null;
  return {
    status: isFault(error, 'cancelled', 'shutting_down') ? 'cancelled' : 'failed',
    results: [],
    error: known ?? { code: 'internal', message: messageOf(error) },
  };
}

/**
 * The events of a check. `before` is the last state that was found out, null when none was: drift is told once when it
 * begins and once when it is over, however often it is checked.
 */
export function driftEvents(status: DriftStatus, before: 'drifted' | 'in_sync' | null): readonly DriftEventType[] {
  if (status === 'failed') return ['drift.failed'];
  if (status === 'drifted' && before !== 'drifted') return ['drift.checked', 'drift.detected'];
  if (status === 'in_sync' && before === 'drifted') return ['drift.checked', 'drift.resolved'];
  return ['drift.checked'];
}
