/** Limits that a request puts on an apply: of one agent, or of each agent of a rollout, which keeps them in its record. */
import type { ApplyLimitsBody } from '../../../src/contract/runs.js';

export interface ApplyLimits {
  /** Number of removals allowed on each agent; null for the removal guard. */
  readonly allowRemovals: number | null;
  /**
   * Seconds after the apply in which the agent has to come back on a new connection, or it undoes the apply; the shortest of this
   * and those of the modules counts. Null for those of the modules.
   */
  readonly confirmSecs: number | null;
  /** True if it begins although no maintenance window permits it. */
  readonly outsideWindow: boolean;
}

/** Limits of a request that names none. */
export const NO_LIMITS: ApplyLimits = { allowRemovals: null, confirmSecs: null, outsideWindow: false };

/** Returns the limits in the body of a request. */
export const limitsOf = (body: ApplyLimitsBody): ApplyLimits => ({
  allowRemovals: body.allow_removals ?? null,
  confirmSecs: body.confirm_secs ?? null,
  outsideWindow: body.outside_window === true,
});
