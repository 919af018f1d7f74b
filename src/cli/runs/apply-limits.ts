/** Limits of an apply: the options that set them, and their members in a request. */
import type { ApplyLimitsBody } from '../../contract/runs.js';
import { Fault } from '../../kernel/fault.js';
import { CONFIRM_SECS } from '../../resources/restored.js';
import { flag, integer, text } from '../options.js';
import { parseDuration } from '../parse-time.js';

export interface ApplyLimits {
  /** Number of removals that one agent may have; null for the removal guard. */
  readonly allowRemovals: number | null;
  /** Seconds after the apply in which a machine has to come back; null for those of the modules. */
  readonly confirmSecs: number | null;
  readonly outsideWindow: boolean;
}

/** The limits of an apply without options about them. */
export const NO_LIMITS: ApplyLimits = { allowRemovals: null, confirmSecs: null, outsideWindow: false };

export const limitOptions = {
  allowRemovals: integer('N', 'allow up to N removals on each agent, past the removal guard'),
  confirmWithin: text('TIME', 'undo the apply unless it succeeds and the machine comes back in time, 10s to 1h'),
  outsideWindow: flag('apply although no maintenance window permits it now'),
} as const;

interface LimitsChoice {
  readonly allowRemovals?: number | undefined;
  readonly confirmWithin?: string | undefined;
  readonly outsideWindow: boolean;
}

/** Returns the limits that the options set. Throws `usage` for a time out of bounds. */
export const limitsOf = ({ allowRemovals, confirmWithin, outsideWindow }: LimitsChoice): ApplyLimits => ({
  allowRemovals: allowRemovals ?? null,
  confirmSecs: confirmSecsOf(confirmWithin),
  outsideWindow,
});

/** Returns the seconds of `--confirm-within`; null without it. Throws `usage` outside of its bounds. */
export function confirmSecsOf(given: string | undefined): number | null {
  if (given === undefined) return null;
  const secs = parseDuration(given, '--confirm-within');
  if (secs >= CONFIRM_SECS.minimum && secs <= CONFIRM_SECS.maximum) return secs;
  throw new Fault('usage', `--confirm-within takes 10s to 1h, not "${given}"`, {
    hint: 'leave the machine time to come back, such as --confirm-within 90s',
  });
}

/** Returns the limits as members of a request. Older orchestrators know only the first one. */
export const limitsBody = ({ allowRemovals, confirmSecs, outsideWindow }: ApplyLimits): ApplyLimitsBody => ({
  allow_removals: allowRemovals,
  ...(confirmSecs === null ? {} : { confirm_secs: confirmSecs }),
  ...(outsideWindow ? { outside_window: true } : {}),
});
