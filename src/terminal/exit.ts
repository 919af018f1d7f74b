/** How a session ended. */
import * as Type from 'typebox';
import { closed, nullable } from '../kernel/schema.js';
import { TERMINAL_LIMITS } from './limits.js';

export const EXIT_REASONS = [
  /** The program ended by itself or by a signal. */
  'exited',
  /** Its time was over (`timeout_secs` of a command). */
  'timed_out',
  /** An operator closed the session. */
  'closed',
  /** Nobody typed for longer than the settings allow. */
  'idle',
  /** Nobody was attached for longer than the settings allow. */
  'detached',
  /** The session was open for longer than the settings allow. */
  'expired',
  /** The operator who opened it was removed. */
  'operator_removed',
  /** The session has to be recorded and could not be any more. */
  'recording_failed',
  /** Terminals were turned off in the configuration of the agent. */
  'disabled',
  /** The agent died or did not come back in time. */
  'agent_lost',
  /** The agent was stopped. */
  'agent_stopped',
  /** The agent was rejected or removed. */
  'agent_rejected',
  /** The program could not be started after all. */
  'failed',
] as const;
export type ExitReason = (typeof EXIT_REASONS)[number];

export const ExitSchema = closed({
  /** Exit status of the program; null when it had none. */
  code: nullable(Type.Integer({ minimum: 0, maximum: 255 })),
  /** The signal that ended it, such as `TERM`; null when none did. */
  signal: nullable(Type.String({ pattern: '^[A-Z0-9+]{1,16}$' })),
  reason: Type.Enum(EXIT_REASONS),
  /** Where the output ends; null when that is not known. */
  final_offset: nullable(Type.Integer({ minimum: 0, maximum: TERMINAL_LIMITS.offset })),
});
export type Exit = Type.Static<typeof ExitSchema>;

/** Reasons that leave a session `interrupted`; the others leave it `closed`. */
const INTERRUPTING: ReadonlySet<ExitReason> = new Set(['agent_lost', 'agent_stopped', 'agent_rejected']);

export const endedStatus = (reason: ExitReason): 'closed' | 'interrupted' =>
  INTERRUPTING.has(reason) ? 'interrupted' : 'closed';
