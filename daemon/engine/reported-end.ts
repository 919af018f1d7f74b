/** What the end that an agent reports amounts to, together with the results that it reported before. */
import type { AgentMessageOf, RunEnd } from '../../src/wire/messages.js';
import type { LiveOperation } from './live-operation.js';
import type { OperationError } from './operation-state.js';

export interface ReportedEnd {
  readonly end: RunEnd;
  readonly error: OperationError | null;
}

/** A success without all results, or with failed ones, is none; nor is one with a removal that could not be sent. */
export function endOfReport({ end, error }: AgentMessageOf<'run_finished'>, operation: LiveOperation): ReportedEnd {
  if (end === 'refused') {
    return { end, error: error ?? { code: 'apply_failed', message: 'the agent refused the apply without a reason' } };
  }
  if (end !== 'succeeded') return { end, error };
  const missing = operation.items.count - operation.outcomes.length;
  if (missing > 0) {
    const message = `the agent reported success, but ${missing} of ${operation.items.count} results are missing`;
    return { end: 'failed', error: { code: 'protocol_violation', message } };
  }
  const isUnsent = operation.content.failures.length > 0;
  const failed = operation.outcomes.some(({ status }) => status !== 'unchanged' && status !== 'changed');
  return failed || isUnsent ? { end: 'failed', error: null } : { end, error: null };
}
