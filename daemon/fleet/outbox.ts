/**
 * Messages to an agent that wait until it has read those before. They are not encoded yet, and share their content with the
 * operation that they belong to, so an agent that reads nothing holds next to no memory.
 */
import type { Clock } from '../../src/kernel/clock.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import { roughSize } from '../../src/wire/parts.js';

export class Outbox {
  private readonly clock: Clock;
  private readonly waiting: OrchestratorMessage[] = [];
  private size = 0;
  /** Monotonic milliseconds at which the first message came to wait, or something was written last. */
  private progressAt = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  /** Adds a message. Returns false if too much waits. */
  add(message: OrchestratorMessage): boolean {
    if (this.isEmpty) this.progressAt = this.clock.monotonic();
    this.size += roughSize(message);
    this.waiting.push(message);
    return this.size <= LINK_LIMITS.unsent;
  }

  /** Takes the first message; undefined if none waits. */
  next(): OrchestratorMessage | undefined {
    const message = this.waiting.shift();
    if (message === undefined) return undefined;
    this.size -= roughSize(message);
    this.moved();
    return message;
  }

  /** Notes that a message, or a piece of one, was written. */
  moved(): void {
    this.progressAt = this.clock.monotonic();
  }

  /** Returns true when something waits and nothing could be written for long. @param isWriting a message is written in part */
  isStalled(isWriting: boolean): boolean {
    return (isWriting || !this.isEmpty) && this.clock.monotonic() - this.progressAt >= LINK_LIMITS.stalledAfter;
  }

  clear(): void {
    this.waiting.length = 0;
    this.size = 0;
  }
}
