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

/** How long a command without a terminal runs on while no client takes its output. */
const EXEC_DETACHED = 60_000;

export const clockLimits = (rules: TerminalRules, hasTerminal: boolean): ClockLimits => ({
  idle: hasTerminal ? rules.idle : 0,
  detached: hasTerminal ? rules.detached : EXEC_DETACHED,
  max: rules.max,
  agentGrace: rules.agentGrace,
});
