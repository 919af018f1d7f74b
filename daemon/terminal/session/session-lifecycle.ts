/** The lifecycle of a session: its states and transitions, the clocks that end it, and its end. */

import type { Clock } from '../../../src/kernel/clock.js';
import { messageOf } from '../../../src/kernel/fault.js';
import { type Exit, type ExitReason, endedStatus } from '../../../src/terminal/exit.js';
import { jsonFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { AttachedClient } from './client-side.js';
import type { SessionCore } from './session-core.js';

export class SessionLifecycle {
  private current: SessionState = { phase: 'opening' };

  get state(): SessionState {
    return this.current;
  }

  get isActive(): boolean {
    return this.current.phase === 'active';
  }

  /** True when the session has ended, stored or not. */
  get hasEnded(): boolean {
    return hasEnded(this.current);
  }

  /** Applies an event. Throws Error for an impossible transition, which is a bug. */
  take(event: SessionEvent): void {
    this.current = transition(this.current, event);
  }
}

/** State of a session. */
export type SessionState =
  /** The agent has been asked to start the program. */
  | { readonly phase: 'opening' }
  /** `attached`: a client is attached. `agent`: the agent's socket is open. */
  | { readonly phase: 'active'; readonly attached: boolean; readonly agent: boolean }
  /** The session is over, and the end is not stored yet. */
  | { readonly phase: 'ending'; readonly exit: Exit }
  | { readonly phase: 'closed' | 'interrupted'; readonly exit: Exit };

type SessionEvent =
  | { readonly type: 'opened' }
  | { readonly type: 'attached' | 'detached' }
  | { readonly type: 'agent_came' | 'agent_left' }
  | { readonly type: 'ended'; readonly exit: Exit }
  | { readonly type: 'stored' };

/** Returns the state after an event. Throws Error for an impossible transition, which is a bug. */
function transition(state: SessionState, event: SessionEvent): SessionState {
  switch (event.type) {
    case 'opened':
      if (state.phase === 'opening') return { phase: 'active', attached: false, agent: false };
      break;
    case 'attached':
    case 'detached':
      if (state.phase === 'active') return { ...state, attached: event.type === 'attached' };
      break;
    case 'agent_came':
    case 'agent_left':
      if (state.phase === 'active') return { ...state, agent: event.type === 'agent_came' };
      break;
    case 'ended':
      if (state.phase === 'opening' || state.phase === 'active') return { phase: 'ending', exit: event.exit };
      break;
    case 'stored':
      if (state.phase === 'ending') return { phase: endedStatus(state.exit.reason), exit: state.exit };
  }
  throw new Error(`a terminal session that is ${state.phase} cannot have ${event.type}`);
}

/** Reports whether the session has ended, stored or not. */
export const hasEnded = (state: SessionState): state is Extract<SessionState, { readonly exit: Exit }> =>
  'exit' in state;

/** Time limits in milliseconds; 0 disables a limit. */
export interface ClockLimits {
  /** Limit without input. */
  readonly idle: number;
  /** Limit without an attached client. */
  readonly detached: number;
  /** Limit of the total duration. */
  readonly max: number;
  /** Limit without the agent's socket. */
  readonly agentGrace: number;
}

/** Monotonic start times of the clocks, null while a clock is stopped. `age` is the duration of the session in milliseconds. */
interface ClockTimes {
  readonly age: number;
  readonly typedAt: number;
  readonly detachedAt: number | null;
  readonly agentLostAt: number | null;
}

interface Due {
  readonly reason: ExitReason;
  /** Milliseconds until the end; 0 or less when the limit is reached. */
  readonly left: number;
}

/** Returns the limit that is reached first, or null without one. */
function nextEnd(limits: ClockLimits, times: ClockTimes, now: number): Due | null {
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

/** Milliseconds before the end at which clients are warned. */
const WARN_BEFORE = 60_000;

/** Texts of the warnings. */
const ENDING_TEXT: Readonly<Partial<Record<ExitReason, string>>> = {
  idle: 'nothing was typed for long',
  detached: 'no client is attached to write',
  expired: 'it has been open for as long as a session may be',
  agent_lost: 'the agent does not come back',
};

interface ClockState {
  /** Unix milliseconds. */
  readonly openedAt: number;
  /** True when no client keeps the session open. */
  readonly isDetached: boolean;
  /** Monotonic time in milliseconds at which the agent was lost; null while it is connected. */
  readonly agentLostAt: number | null;
}

interface LimitWarning extends Due {
  /** Text of the warning. */
  readonly text: string;
}

/** Tracks the clocks of a session, and reports warnings and limits that are reached. */
export class SessionClocks {
  private readonly clock: Clock;
  private typedAt: number;
  private detachedAt: number;
  private warned: ExitReason | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
    this.typedAt = clock.monotonic();
    this.detachedAt = this.typedAt;
  }

  /** Restarts the idle clock for a new writer. */
  restartIdle(): void {
    this.typedAt = this.clock.monotonic();
  }

  typed(): void {
    this.typedAt = this.clock.monotonic();
    if (this.warned === 'idle') this.warned = null;
  }

  /** Restarts the detached clock because a client left. */
  restartDetached(): void {
    this.detachedAt = this.clock.monotonic();
  }

  /** Returns a limit that is reached, or one to warn about, once; else null. */
  check(limits: ClockLimits, { openedAt, isDetached, agentLostAt }: ClockState): LimitWarning | null {
    const times = {
      age: Math.max(0, this.clock.now() - openedAt),
      typedAt: this.typedAt,
      detachedAt: isDetached ? this.detachedAt : null,
      agentLostAt,
    };
    const due = nextEnd(limits, times, this.clock.monotonic());
    if (due === null || due.left > WARN_BEFORE) {
      this.warned = null;
      return null;
    }
    const alarm = { ...due, text: ENDING_TEXT[due.reason] ?? due.reason };
    if (due.left <= 0) return alarm;
    if (this.warned === due.reason) return null;
    this.warned = due.reason;
    return alarm;
  }
}

interface SessionEndingOptions {
  /** Tells the agent over its link that the session is over. */
  readonly dismiss: () => void;
  /** Called when the end is stored and no client is served. */
  readonly onDone: () => void;
}

/** Milliseconds after the end for which the writer may come back for the rest of the output. */
const LINGER = 60_000;
/** Reasons that the agent reports. It keeps such a session until its socket is closed. */
export const BY_AGENT: ReadonlySet<ExitReason> = new Set([
  'exited',
  'timed_out',
  'disabled',
  'agent_stopped',
  'failed',
]);

/** Ends a session: stores the end, sends it to all clients, and waits for the writer to receive all output. */
export class SessionEnding {
  private readonly core: SessionCore;
  private readonly options: SessionEndingOptions;
  private storedAt: number | null = null;
  /** True when the writer has received all output. */
  private isDelivered = false;

  constructor(core: SessionCore, options: SessionEndingOptions) {
    this.core = core;
    this.options = options;
  }

  /** True when the end is stored and may be announced. */
  get isStored(): boolean {
    return this.storedAt !== null;
  }

  /** Stores the end of the session. Resolves when it is stored. */
  async store(exit: Exit, by: RequestContext | null): Promise<void> {
    const { agent, store, clock, lifecycle, facts, recording, relay } = this.core;
    if (!agent.isConnected || !BY_AGENT.has(exit.reason)) this.options.dismiss();
    const transcriptSha256 = await this.seal(exit.code);
    await store
      .ended(facts, { exit, bytes: relay.received, size: relay.size, recording: recording.state, transcriptSha256, by })
      // The store retries.
      .catch((error: unknown) => this.failed('the end of a terminal could not be stored, it is tried again', error));
    lifecycle.take({ type: 'stored' });
    this.storedAt = clock.monotonic();
    if (exit.reason === 'operator_removed') this.isDelivered = true;
    agent.close(TERMINAL_CLOSE.done, 'all is stored');
    relay.finish();
    this.finishWhenDelivered();
  }

  /** Sends the exit to a client that was sent all output. */
  served({ secretHash, socket }: AttachedClient): void {
    const { lifecycle, keys } = this.core;
    if (!hasEnded(lifecycle.state)) return;
    if (keys.writer === null || secretHash === keys.writer.hash) this.isDelivered = true;
    socket.send(jsonFrame('exit', lifecycle.state.exit));
    socket.close(TERMINAL_CLOSE.done, 'the session is over');
  }

  /** Reports whether the session is open, or over and not yet fully shown to the writer. */
  isServing(operatorId: string): boolean {
    const { lifecycle, facts, keys } = this.core;
    if (!lifecycle.hasEnded) return true;
    return !this.isDelivered && operatorId === (keys.writer?.operatorId ?? facts.operatorId);
  }

  finishWhenDelivered(): void {
    const { clock, participants, relay } = this.core;
    if (this.storedAt === null || participants.count > 0) return;
    if (!this.isDelivered && clock.monotonic() - this.storedAt < LINGER) return;
    relay.dropScreen();
    this.options.onDone();
  }

  private async seal(status: number | null): Promise<string | null> {
    const { recording } = this.core;
    try {
      return await recording.seal(status);
    } catch (error) {
      recording.stop('failed', messageOf(error));
      this.failed('a recording was not closed', error);
      return null;
    }
  }

  private failed(what: string, error: unknown): void {
    this.core.logger.error(what, { session_id: this.core.facts.id, reason: messageOf(error) });
  }
}
