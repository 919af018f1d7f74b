/** Watches the clocks of one session: remembers since when they run, and says when it is over or people are to be warned. */
import type { Clock } from '../../../src/kernel/clock.js';
import type { ExitReason } from '../../../src/terminal/exit.js';
import { type ClockLimits, type Due, ENDING_TEXT, nextEnd, WARN_BEFORE } from './session-clocks.js';

export interface Watched {
  /** Unix milliseconds. */
  readonly openedAt: number;
  /** Nobody is here who keeps it open. */
  readonly isAway: boolean;
  /** By the monotonic clock; null while the agent is here. */
  readonly agentLostAt: number | null;
}

export interface Alarm extends Due {
  /** What people are told of it while there is time left. */
  readonly text: string;
}

export class SessionWatch {
  private readonly clock: Clock;
  private typedAt: number;
  private detachedAt: number;
  private warned: ExitReason | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
    this.typedAt = clock.monotonic();
    this.detachedAt = this.typedAt;
  }

  /** Somebody has begun to write. */
  tookPen(): void {
    this.typedAt = this.clock.monotonic();
  }

  typed(): void {
    this.typedAt = this.clock.monotonic();
    if (this.warned === 'idle') this.warned = null;
  }

  /** Somebody has gone. */
  left(): void {
    this.detachedAt = this.clock.monotonic();
  }

  /** An end that has come, or one that people are to be told of, once; else null. */
  alarm(limits: ClockLimits, { openedAt, isAway, agentLostAt }: Watched): Alarm | null {
    const times = {
      age: Math.max(0, this.clock.now() - openedAt),
      typedAt: this.typedAt,
      detachedAt: isAway ? this.detachedAt : null,
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
