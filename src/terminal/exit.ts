/** Reasons for the end of a session, and the JSON of the exit frame. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { TERMINAL_LIMITS } from './limits.js';

export const EXIT_REASONS = [
  /** The program exited, or a signal ended it. */
  'exited',
  /** The command reached its timeout (`timeout_secs`). */
  'timed_out',
  /** An operator closed the session. */
  'closed',
  /** No input arrived for longer than the settings allow. */
  'idle',
  /** No client was attached for longer than the settings allow. */
  'detached',
  /** The session was open for longer than the settings allow. */
  'expired',
  /** The operator who opened it was removed, or lost the right to it. */
  'operator_removed',
  /** The session requires a recording, and the recording stopped. */
  'recording_failed',
  /** The configuration of the agent disabled terminals. */
  'disabled',
  /** The agent died, or did not reconnect in time. */
  'agent_lost',
  /** The agent was stopped. */
  'agent_stopped',
  /** The agent was rejected or removed. */
  'agent_rejected',
  /** The program could not start. */
  'failed',
] as const;
export type ExitReason = (typeof EXIT_REASONS)[number];

export const ExitSchema = closed({
  /** Exit status of the program; null without one. */
  code: nullable(Type.Integer({ minimum: 0, maximum: 255 })),
  /** Signal that ended the program, such as `TERM`; null without one. */
  signal: nullable(Type.String({ pattern: '^[A-Z0-9+]{1,16}$' })),
  reason: Type.Enum(EXIT_REASONS),
  /** Offset at which the output ends; null when it is unknown. */
  final_offset: nullable(Type.Integer({ minimum: 0, maximum: TERMINAL_LIMITS.offset })),
  /** True if a process that the command left behind still had its output open. Sent only to those that set `wait`. */
  output_open: optional(Type.Boolean()),
});
export type Exit = Type.Static<typeof ExitSchema>;

/** Reasons that leave a session `interrupted`; the others leave it `closed`. */
const INTERRUPTING: ReadonlySet<ExitReason> = new Set(['agent_lost', 'agent_stopped', 'agent_rejected']);

export const endedStatus = (reason: ExitReason): 'closed' | 'interrupted' =>
  INTERRUPTING.has(reason) ? 'interrupted' : 'closed';
