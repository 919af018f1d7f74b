/** Maintenance windows as the engine sees them: what they hold back now. */
import { toTimestamp } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { AgentLabels } from '../../../src/language/clause.js';

export interface ApplyWindows {
  /** Returns true while a window pauses an agent with these labels. */
  isPaused(labels: AgentLabels): boolean;
  /**
   * Returns the first of these assignments that has windows that permit its applies, of which none is active; null if there is
   * none. Times of the next one are Unix milliseconds, and `starts_in` the milliseconds until it starts.
   */
  closedFor(assignments: readonly string[]): {
    readonly assignment: string;
    readonly next: { readonly starts_at: number; readonly ends_at: number; readonly starts_in: number } | null;
  } | null;
}

/** Throws `outside_window` when an assignment is applied only in windows, and none is active. */
export function refuseOutsideWindow(windows: ApplyWindows, assignments: readonly string[]): void {
  const closed = windows.closedFor(assignments);
  if (closed === null) return;
  const { assignment, next } = closed;
  const when =
    next === null
      ? 'none is to come'
      : `the next one is from ${toTimestamp(next.starts_at)} until ${toTimestamp(next.ends_at)}`;
  throw new Fault(
    'outside_window',
    `assignment ${assignment} is applied only within its maintenance windows, and ${when}`,
    {
      hint:
        next === null
          ? 'schedule one: orch maintenance schedule --permit; or apply with --outside-window'
          : 'wait for it, or apply with --outside-window',
      data: {
        assignment,
        ...(next === null
          ? { next_starts_at: null }
          : { next_starts_at: Math.floor(next.starts_at / 1000), retry_after: Math.ceil(next.starts_in / 1000) }),
      },
    },
  );
}
