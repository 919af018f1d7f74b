/** What the settings say about terminals, in this room's words. Times are milliseconds. */
import type { ClockLimits } from './session/session-clocks.js';

export interface TerminalRules {
  /** `required`: no session without a recording; `best_effort`: a session goes on without one. */
  readonly record: 'required' | 'best_effort' | 'off';
  readonly idle: number;
  readonly detached: number;
  readonly max: number;
  readonly agentGrace: number;
  /** Most shells of one operator at a time. */
  readonly perOperator: number;
}

/** How long a command runs on with nobody to take its output. */
const EXEC_DETACHED = 60_000;

export const clockLimits = (rules: TerminalRules, kind: 'shell' | 'exec'): ClockLimits => ({
  idle: kind === 'shell' ? rules.idle : 0,
  detached: kind === 'shell' ? rules.detached : EXEC_DETACHED,
  max: rules.max,
  agentGrace: rules.agentGrace,
});
