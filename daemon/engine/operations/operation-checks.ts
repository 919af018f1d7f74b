/** Results of health checks as agents report them: validated, scrubbed, and in the words of the API. */
import { Fault } from '../../../src/kernel/fault.js';
import { scrubber } from '../../../src/kernel/tainted.js';
import {
  type CheckReport,
  type CheckResult,
  checkResults,
  type DesiredCheck,
} from '../../../src/resources/checks/check.js';
import { secretValues } from '../../../src/resources/tainted-body.js';
import type { RunContent } from '../../../src/wire/parts.js';

interface ReportedChecks {
  /** The checks that were sent, in their order. */
  readonly checks: readonly DesiredCheck[];
  readonly reports: readonly CheckReport[];
  /** Content with the secrets that were sent; null when they are no longer known. */
  readonly dispatch: RunContent | null;
}

/**
 * Returns a result for each check that was sent. Removes secrets from reasons, as a second line of defence after the agent. Throws
 * `protocol_violation` for reports of unknown checks and for second reports.
 */
export function reportedChecks({ checks, reports, dispatch }: ReportedChecks): readonly CheckResult[] {
  const seen = new Set<number>();
  for (const { index } of reports) {
    if (index >= checks.length) throw violation(`health check ${index} of a run with ${checks.length}`);
    if (seen.has(index)) throw violation(`a second result of health check ${index}`);
    seen.add(index);
  }
  const content = dispatch === null ? [] : [...dispatch.resources, ...dispatch.removals, ...(dispatch.verify ?? [])];
  const secrets = content.flatMap(secretValues);
  const results = checkResults(checks, reports);
  if (secrets.length === 0) return results;
  const scrub = scrubber(secrets);
  return results.map((result) => ({ ...result, reason: result.reason === null ? null : scrub(result.reason) }));
}

const violation = (what: string): Fault => new Fault('protocol_violation', `the agent reported ${what}`);
