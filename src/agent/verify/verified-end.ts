/** The end of a run after its health checks. */
import { isFault } from '../../kernel/fault.js';
import { type CheckReport, checkResults, type DesiredCheck, verifyError } from '../../resources/checks/check.js';
import type { Outcome } from '../converge.js';

/** Returns the end by the reports, or by the reason of a signal that stopped the checks. */
export function verifiedEnd(
  checks: readonly DesiredCheck[],
  reports: readonly CheckReport[],
  signal: AbortSignal,
): Pick<Outcome, 'end' | 'error'> {
  if (!signal.aborted || reports.every(({ status }) => status !== 'not_run')) {
    const error = verifyError(checkResults(checks, reports));
    return { end: error === null ? 'succeeded' : 'failed', error };
  }
  if (!isFault(signal.reason, 'interrupted')) return { end: 'cancelled', error: null };
  const message = 'the agent was stopped before its health checks had ended';
  return { end: 'interrupted', error: { code: 'interrupted', message } };
}
