/** What a rollout has said of agents that fell silent, and how it is corrected once the ends of their applies are known. */
import type { EndedOperation } from '../operations/operation-reader.js';
import { finishedResult, rowWithResult } from './rollout-results.js';
import type { RolloutAgentRow, RolloutRow } from './rollout-store.js';

/** Milliseconds for which an agent that fell silent in its apply counts as in flight. */
export const IN_FLIGHT_WHEN_SILENT = 15 * 60_000;

/** Codes of errors that say that the end of an apply is not known. */
const UNKNOWN_ENDS: readonly string[] = ['agent_timeout', 'interrupted'];

/** Returns true for an agent that counts as failed because the end of its apply, or of its revert, is not known. */
export const isUnknown = ({ state, error }: Pick<RolloutAgentRow, 'state' | 'error'>): boolean =>
  state === 'failed' && error !== null && UNKNOWN_ENDS.includes(error.code);

/** Returns the row of an agent whose apply has ended after all; null if the end says nothing new. */
export function heardRow(row: RolloutAgentRow, end: EndedOperation): RolloutAgentRow | null {
  const after = rowWithResult(row, finishedResult(row, end));
  return isUnknown(after) ? null : after;
}

/** Returns the row of an agent whose revert has ended after all; null if it did not succeed. */
export const revertedAfterAll = (row: RolloutAgentRow, { status }: EndedOperation): RolloutAgentRow | null =>
  status === 'succeeded' ? { ...row, state: 'reverted', error: null } : null;

/**
 * Returns what an ended or halted rollout says instead, after an agent was corrected; null if its word stays.
 * @param left agents that did not succeed, or were not reverted, in a rollout that was
 */
export function correctedWord(
  row: Pick<RolloutRow, 'state' | 'reason' | 'pace' | 'finished_at'>,
  after: RolloutAgentRow,
  left: number,
): Pick<RolloutRow, 'state' | 'reason'> | null {
  const name = after.name ?? after.node_id;
  const what = after.state === 'succeeded' || after.state === 'reverted' ? after.state : 'failed';
  const reason = `${row.reason ?? 'it ended'}; later ${name} reported that it has ${what}`;
  if (row.state === 'halted') return { state: 'halted', reason };
  if (row.state !== 'failed' || row.finished_at === null) return null;
  if (left > 0) return { state: 'failed', reason };
  return row.pace.onFailure === 'revert' ? { state: 'reverted', reason } : { state: 'succeeded', reason: null };
}
