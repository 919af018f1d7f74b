/** The clocks of a session: when it ends by itself, and when its people are told before. */
import type { ExitReason } from '../../../src/terminal/exit.js';

/** Milliseconds; 0 for a clock that does not run. */
export interface ClockLimits {
  /** Without a key typed. */
  readonly idle: number;
  /** Without anybody attached. */
  readonly detached: number;
  /** In all. */
  readonly max: number;
  /** Without the agent's socket. */
  readonly agentGrace: number;
}

/** Since when, by the monotonic clock; null while it is not so. `age` is how long it has been open, in milliseconds. */
export interface ClockTimes {
  readonly age: number;
  readonly typedAt: number;
  readonly detachedAt: number | null;
  readonly agentLostAt: number | null;
}

export interface Due {
  readonly reason: ExitReason;
  /** Milliseconds until it ends; 0 or less when it is time. */
  readonly left: number;
}

/** The end that comes first; null when none is in sight. */
export function nextEnd(limits: ClockLimits, times: ClockTimes, now: number): Due | null {
  const due: Due[] = [];
  const add = (reason: ExitReason, limit: number, elapsed: number | null) => {
    if (limit > 0 && elapsed !== null) due.push({ reason, left: limit - elapsed });
  };
  add('idle', limits.idle, now - times.typedAt);
  add('detached', limits.detached, times.detachedAt === null ? null : now - times.detachedAt);
  add('expired', limits.max, times.age);
  add('agent_lost', limits.agentGrace, times.agentLostAt === null ? null : now - times.agentLostAt);
  return due.reduce<Due | null>((first, one) => (first === null || one.left < first.left ? one : first), null);
}

/** How long before the end people are told, in milliseconds. */
export const WARN_BEFORE = 60_000;

/** What they are told; null for ends that nobody can put off. */
export const ENDING_TEXT: Readonly<Partial<Record<ExitReason, string>>> = {
  idle: 'nothing was typed for long',
  detached: 'nobody is attached to write',
  expired: 'it has been open for as long as a session may be',
  agent_lost: 'the agent does not come back',
};
