/** What a rollout came to, on one agent and on all of them. */
import type { Rollout, RolloutEvent, RolloutResult } from '../../src/contract/assignments.js';
import type { Operation } from '../../src/contract/operations.js';
import type { RunResult } from '../../src/contract/runs.js';
import { isFault, messageOf } from '../../src/kernel/fault.js';
import type { AgentRow } from '../fleet/agent-store.js';

/** With the whole answer, where somebody wants it. */
export type AgentResult = Extract<RolloutEvent, { readonly event: 'agent' }>['agent'];

type Finished = Pick<Operation | RunResult, 'operation_id' | 'status' | 'summary' | 'error'>;

/** Faults of an agent that nothing reached. */
const UNREACHABLE: readonly string[] = ['agent_not_connected', 'not_delivered'];
/** Faults that tell that an agent is not meant any more. */
const NOT_MEANT: readonly string[] = ['assignment_changed', 'agent_not_found', 'agent_not_approved'];

export function finishedResult(agent: AgentRow, run: Finished, result: RunResult | null): AgentResult {
  const { operation_id, status, summary } = run;
  const error = run.error ?? endWithoutReason(run);
  const missed = error !== null && UNREACHABLE.includes(error.code);
  const standing = status === 'succeeded' ? 'succeeded' : missed ? 'unreachable' : 'failed';
  return { ...nameOf(agent), status: standing, operation_id, summary, error, result };
}

const endWithoutReason = ({ status }: Finished): RolloutResult['error'] =>
  status === 'cancelled' || status === 'interrupted' ? { code: status, message: `the apply was ${status}` } : null;

/** What was thrown for one agent stays with it. */
export function failedResult(agent: AgentRow, error: unknown, operationId: string | null): AgentResult {
  const code = isFault(error) ? error.code : 'internal';
  const status = UNREACHABLE.includes(code) ? 'unreachable' : NOT_MEANT.includes(code) ? 'skipped' : 'failed';
  // A mistake of ours is for the log.
  const message = isFault(error) ? messageOf(error) : 'something went wrong in the orchestrator; see its log';
  return { ...nameOf(agent), status, operation_id: operationId, summary: null, error: { code, message }, result: null };
}

export const skippedResult = (agent: AgentRow, why: string): AgentResult => ({
  ...nameOf(agent),
  status: 'skipped',
  operation_id: null,
  summary: null,
  error: { code: 'rollout_stopped', message: why },
  result: null,
});

const nameOf = ({ node_id, name }: AgentRow) => ({ node_id, name });

export interface RolloutHead {
  readonly assignment: string;
  readonly id: string;
  /** How many agents it is about. */
  readonly agents: number;
}

export function rolloutView({ assignment, id, agents }: RolloutHead, results: readonly AgentResult[]): Rollout {
  const howMany = (status: RolloutResult['status']) => results.filter((one) => one.status === status).length;
  return {
    assignment,
    rollout_id: id,
    has_changes: results.some(({ summary }) => summary !== null && summary.changed + summary.pending > 0),
    results: results.map(({ result: _, ...result }) => result),
    summary: {
      agents,
      succeeded: howMany('succeeded'),
      failed: howMany('failed'),
      unreachable: howMany('unreachable'),
      skipped: howMany('skipped'),
    },
  };
}
