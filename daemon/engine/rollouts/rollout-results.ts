/** Results of the agents of a rollout: from the ends of their applies, and from errors before them. */
import type { Rollout, RolloutEvent, RolloutResult } from '../../../src/contract/rollouts.js';
import type { RunResult } from '../../../src/contract/runs.js';
import { isFault, messageOf } from '../../../src/kernel/fault.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { EndedOperation } from '../operations/operation-reader.js';
import type { RolloutAgentRow } from './rollout-store.js';
import type { RolloutHead } from './rollout-target.js';

/** Result of one agent, with the complete run result if the caller asked for it. */
export type AgentResult = Extract<RolloutEvent, { readonly event: 'agent' }>['agent'];

export type RolloutAgentName = Pick<AgentRow, 'node_id' | 'name'>;

type Finished = EndedOperation | Pick<RunResult, 'operation_id' | 'status' | 'summary' | 'error'>;

/** Fault codes of agents that were never reached. */
const UNREACHABLE: readonly string[] = ['agent_not_connected', 'not_delivered'];
/** Fault codes of agents that an assignment or a selector no longer means. A named agent fails instead. */
const NOT_MEANT: readonly string[] = ['assignment_changed', 'agent_not_found', 'agent_not_approved'];

/** Converts the end of a run into the result of its agent. */
export function finishedResult(agent: RolloutAgentName, run: Finished): RolloutResult {
  const { operation_id, status, summary } = run;
  const error = run.error ?? endWithoutReason(run);
  const missed = error !== null && UNREACHABLE.includes(error.code);
  const standing = status === 'succeeded' ? 'succeeded' : missed ? 'unreachable' : 'failed';
  return {
    ...nameOf(agent),
    status: standing,
    operation_id,
    summary,
    error: error === null ? null : { ...error, hint: null },
  };
}

const endWithoutReason = ({ status }: Finished): Finished['error'] =>
  status === 'cancelled' || status === 'interrupted' ? { code: status, message: `the apply was ${status}` } : null;

interface Failure {
  readonly head: Pick<RolloutHead, 'selector'>;
  /** Null if no apply has started. */
  readonly operationId: string | null;
}

/** Converts an error into a result, so that one agent's error does not end the rollout. */
export function failedResult(agent: RolloutAgentName, error: unknown, { head, operationId }: Failure): RolloutResult {
  const code = isFault(error) ? error.code : 'internal';
  const isMeant = head.selector === null || !NOT_MEANT.includes(code);
  return {
    ...nameOf(agent),
    status: UNREACHABLE.includes(code) ? 'unreachable' : isMeant ? 'failed' : 'skipped',
    operation_id: operationId,
    summary: null,
    // Unexpected errors are details for the log, not for the response.
    error: isFault(error)
      ? { code, message: messageOf(error), hint: error.hint ?? null }
      : { code, message: 'something went wrong in the orchestrator; see its log', hint: null },
  };
}

/** Returns the result of an agent that a rollout no longer starts. */
export const skippedResult = (agent: RolloutAgentName, why: string): RolloutResult => ({
  ...nameOf(agent),
  status: 'skipped',
  operation_id: null,
  summary: null,
  error: stoppedError(why),
});

/** Returns the error of an agent that was not started. */
export const stoppedError = (why: string) => ({
  code: 'rollout_stopped',
  message: why,
  hint: null,
});

/** Returns the row of an agent that has this result. */
export const rowWithResult = (
  row: RolloutAgentRow,
  { status, operation_id, summary, error }: RolloutResult,
): RolloutAgentRow => ({ ...row, state: status, operation_id, summary, error });

/** Returns the error of an agent whose apply a rollout did not start. */
export const notStarted = (why: string) => stoppedError(`not started: ${why}`);

/** Returns the row of a waiting agent that a rollout no longer starts. */
export const stoppedRow = (row: RolloutAgentRow, why: string): RolloutAgentRow => ({
  ...row,
  state: 'skipped',
  operation_id: null,
  error: notStarted(why),
});

/** Returns the row of an agent that is offline: left out, or unreachable. */
export const offlineRow = (row: RolloutAgentRow, isSkipped: boolean): RolloutAgentRow => ({
  ...row,
  state: isSkipped ? 'skipped' : 'unreachable',
  operation_id: null,
  summary: null,
  error: {
    code: 'agent_not_connected',
    message: `agent ${row.name ?? row.node_id} is not connected`,
    hint: 'start it, or wait until it is back',
  },
});

const nameOf = ({ node_id, name }: RolloutAgentName) => ({ node_id, name });

export function rolloutView(
  { assignment, selector, id, agents }: RolloutHead,
  results: readonly RolloutResult[],
): Rollout {
  const howMany = (status: RolloutResult['status']) => results.filter((one) => one.status === status).length;
  return {
    assignment,
    selector,
    rollout_id: id,
    has_changes: results.some(({ summary }) => summary !== null && summary.changed + summary.pending > 0),
    results: [...results],
    summary: {
      agents,
      succeeded: howMany('succeeded'),
      failed: howMany('failed'),
      unreachable: howMany('unreachable'),
      skipped: howMany('skipped'),
    },
  };
}
