/** The health checks after an apply, and its end with them. */
import { isFault } from '../../kernel/fault.js';
import { type CheckReport, checkResults, type DesiredCheck, verifyError } from '../../resources/checks/check.js';
import type { RunContent } from '../../wire/parts.js';
import { isBad } from '../converge/examined.js';
import type { Outcome } from '../converge.js';

/**
 * Returns the modules whose health checks say nothing after the apply, because a resource of theirs failed or was skipped.
 * Returns null when no check is to run: the apply was stopped, failed as a whole, or left no module whole that has checks.
 */
export function modulesWithoutChecks(
  { end, error, results }: Outcome,
  { verify = [] }: Pick<RunContent, 'verify'>,
): ReadonlySet<string> | null {
  if (end !== 'succeeded' && (end !== 'failed' || error !== null)) return null;
  const bad = new Set(results.filter(({ result }) => isBad(result.status)).map(({ result }) => result.module));
  return verify.every(({ module }) => bad.has(module)) ? null : bad;
}

/** The end of checks that ran alone, or after an apply without failures. */
type VerifiedEnd = Pick<Outcome, 'end' | 'error'>;

/** Returns the end of an apply whose health checks have ended. One with failed resources stays failed because of them. */
export const endWithChecks = (
  { end, error }: Outcome,
  checks: readonly DesiredCheck[],
  reports: readonly CheckReport[],
  signal: AbortSignal,
): VerifiedEnd => (end === 'succeeded' ? verifiedEnd(checks, reports, signal) : { end, error });

/** Returns the end by the reports, or by the reason of a signal that stopped the checks. */
export function verifiedEnd(
  checks: readonly DesiredCheck[],
  reports: readonly CheckReport[],
  signal: AbortSignal,
): VerifiedEnd {
  if (!signal.aborted || reports.every(({ status }) => status !== 'not_run')) {
    const error = verifyError(checkResults(checks, reports));
    return { end: error === null ? 'succeeded' : 'failed', error };
  }
  if (!isFault(signal.reason, 'interrupted')) return { end: 'cancelled', error: null };
  const message = 'the agent was stopped before its health checks had ended';
  return { end: 'interrupted', error: { code: 'interrupted', message } };
}
