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
 * @param left agents that did not succeed, or in a rollout that reverts, agents of its wave that are not reverted
 */
export function correctedWord(
  { state, reason, pace, finished_at }: Pick<RolloutRow, 'state' | 'reason' | 'pace' | 'finished_at'>,
  after: RolloutAgentRow,
  left: number,
): Pick<RolloutRow, 'state' | 'reason'> | null {
  const told = reason ?? '';
  if (state === 'halted') {
    const end = after.state === 'succeeded' ? 'succeeded' : 'failed';
    const before = told.replace(LATER, '');
    return { state, reason: `${before}; later ${after.name ?? after.node_id} reported that it has ${end}` };
  }
  if (state !== 'failed' || finished_at === null) return null;
  if (pace.onFailure !== 'revert') {
    if (left === 0) return { state: 'succeeded', reason: null };
    return { state, reason: `${left === 1 ? '1 agent' : `${left} agents`} did not succeed` };
  }
  const why = told.replace(NOT_REVERTED, '');
  if (left === 0) return { state: 'reverted', reason: why };
  return { state, reason: told.replace(NOT_REVERTED, (_, all) => notReverted(left, all)) };
}

/** Returns the end of the reason of a rollout that could not revert some agents of its wave. */
export const notReverted = (left: number, all: number | string): string =>
  `; ${left} of ${all} agents could not be reverted`;

const NOT_REVERTED = /; \d+ of (\d+) agents could not be reverted$/;
/** What an earlier correction has said; only the last one is kept. */
const LATER = /; later .* reported that it has \w+$/;
