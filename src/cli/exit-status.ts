/** Exit statuses, and the one table that maps faults to them. */
import { type FaultCode, isFault } from '../kernel/fault.js';

export const EXIT = {
  done: 0,
  error: 1,
  changes: 2,
  partlyFailed: 3,
  notAllowed: 4,
  offline: 5,
  refusedForNow: 6,
  rolledBack: 7,
  usage: 64,
  unreachable: 69,
  wrongOrchestrator: 78,
  timedOut: 124,
  notExecutable: 126,
  notFound: 127,
  hungUp: 129,
  interrupted: 130,
  brokenPipe: 141,
  terminated: 143,
  closed: 254,
  lost: 255,
} as const;

export type ExitStatus = (typeof EXIT)[keyof typeof EXIT];

/** Faults with their own status; all others are `error`. */
const BY_FAULT: Readonly<Partial<Record<FaultCode, ExitStatus>>> = {
  unauthenticated: EXIT.notAllowed,
  admin_required: EXIT.notAllowed,
  role_forbidden: EXIT.notAllowed,
  not_granted: EXIT.notAllowed,
  unknown_operator: EXIT.notAllowed,
  signature_verification_failed: EXIT.notAllowed,
  login_unbound: EXIT.notAllowed,
  tls_required: EXIT.notAllowed,
  rollout_stopped: EXIT.partlyFailed,
  assignment_changed: EXIT.partlyFailed,
  agent_not_connected: EXIT.offline,
  not_delivered: EXIT.offline,
  operation_in_progress: EXIT.refusedForNow,
  rollout_in_progress: EXIT.refusedForNow,
  plan_stale: EXIT.refusedForNow,
  removal_guard: EXIT.refusedForNow,
  outside_window: EXIT.refusedForNow,
  precondition_failed: EXIT.refusedForNow,
  rate_limited: EXIT.refusedForNow,
  store_unavailable: EXIT.refusedForNow,
  rolled_back: EXIT.rolledBack,
  usage: EXIT.usage,
  confirmation_required: EXIT.usage,
  profile_not_found: EXIT.usage,
  tls_unknown: EXIT.usage,
  unreachable: EXIT.unreachable,
  shutting_down: EXIT.unreachable,
  pin_mismatch: EXIT.wrongOrchestrator,
  pin_missing: EXIT.wrongOrchestrator,
  command_missing: EXIT.notFound,
  command_not_executable: EXIT.notExecutable,
  agent_timeout: EXIT.timedOut,
  request_timeout: EXIT.timedOut,
};

/** Returns the exit status of a fault code. */
export const exitStatusOfCode = (code: FaultCode): ExitStatus => BY_FAULT[code] ?? EXIT.error;

/** Returns the exit status of a thrown value. */
export const exitStatusOf = (error: unknown): ExitStatus =>
  isFault(error) ? exitStatusOfCode(error.code) : EXIT.error;

/**
 * Returns the exit status when a command that runs a remote program fails itself: `failure`, unless the usage was wrong or the agent
 * reported 126 or 127 as a shell does.
 */
export const exitStatusOfFailure = (status: number, failure: number): number =>
  ([EXIT.usage, EXIT.notExecutable, EXIT.notFound] as readonly number[]).includes(status) ? status : failure;

/** Which status counts if several apply, first rule first, for `orch help exit-codes`. */
export const EXIT_PRECEDENCE: readonly string[] = [
  '1. An interrupt (129, 130, 143) counts before everything else.',
  '2. Wrong usage (64) is found before anything is sent.',
  '3. A failure of the command itself counts before the results of agents: 4, 6, 69, 124 or 1. With one named agent its',
  'failure is that of the command.',
  '4. With several agents: if all of them failed in the same way, the status of that failure.',
  '5. 3 if any of them failed in another way than by being offline.',
  '6. 2 if any has changes, with --detailed-exitcode, even if others are offline.',
  '7. 5 if the only failures are offline agents.',
  '8. 0.',
  'orch verify ends with 1 where rule 5 gives 3. orch exec and orch term with one agent end as the remote program does.',
];

/** Meaning of each status, for `orch help exit-codes`. */
export const EXIT_MEANINGS: readonly (readonly [ExitStatus, string])[] = [
  [EXIT.done, 'done'],
  [EXIT.error, 'an error'],
  [EXIT.changes, 'changes or drift present (only with --detailed-exitcode, on plan, apply, drift and sync)'],
  [EXIT.partlyFailed, 'some agents or resources failed, or the rollout was halted, cancelled or reverted'],
  [EXIT.notAllowed, 'not logged in, or not allowed'],
  [EXIT.offline, 'the only failures are offline agents (with --detailed-exitcode 2 if others have changes)'],
  [EXIT.refusedForNow, 'refused for now: operation in progress, stale plan, removal guard, too many requests'],
  [EXIT.rolledBack, 'the agent has undone the apply: it failed, or the machine did not come back in time'],
  [EXIT.usage, 'wrong usage, or consent is needed and there is no terminal'],
  [EXIT.unreachable, 'the orchestrator is not reachable'],
  [EXIT.wrongOrchestrator, 'the agent of this machine does not trust that orchestrator'],
  [EXIT.timedOut, 'timed out'],
  [EXIT.notExecutable, 'exec: the agent cannot execute the program'],
  [EXIT.notFound, 'exec: the agent has no such program'],
  [EXIT.hungUp, 'the terminal or the connection was lost (SIGHUP)'],
  [EXIT.interrupted, 'interrupted (Ctrl-C)'],
  [EXIT.brokenPipe, 'the reader of the output of exec closed it, so the command was ended'],
  [EXIT.terminated, 'terminated (SIGTERM)'],
  [EXIT.closed, 'the terminal session, or the command of exec, was closed by an operator'],
  [EXIT.lost, 'exec or a terminal failed: the exit status of the remote program is unknown'],
];
