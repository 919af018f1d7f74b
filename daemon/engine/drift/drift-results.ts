/** Results of drift checks with what belongs to them: traces of the change, and excuses. */
import type { DriftExcuse, DriftResource } from '../../../src/contract/runs.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import type { ResourceResult } from '../../../src/resources/result.js';

/** An agent's knowledge of a change. */
export interface DriftTrace {
  /** Hash that stays the same while the resource stays exactly as it is; null when nothing tells that. */
  readonly observed: string | null;
  /** Time of the last change in Unix milliseconds, by the clock of the orchestrator; null when unknown. */
  readonly changedAt: number | null;
}

/** The result of one resource, as a record holds it. */
export type DriftResult = ResourceResult & {
  readonly trace?: DriftTrace;
  /** Why the difference does not count. */
  readonly excuse?: DriftExcuse;
};

/** True for a difference that counts as drift. */
export const isDrifted = ({ status, excuse }: DriftResult): boolean => status === 'pending' && excuse === undefined;

export const countExcuses = (results: readonly DriftResult[], kind: DriftExcuse['kind']): number =>
  results.filter(({ excuse }) => excuse?.kind === kind).length;

/** Returns a result for the API. */
export function resultView({ trace, ...result }: DriftResult): DriftResource {
  const changedAt = trace?.changedAt ?? null;
  return { ...result, ...(changedAt === null ? {} : { changed_at: toSeconds(changedAt) }) };
}
