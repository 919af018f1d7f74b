/**
 * Protects the program from late input. After a silence the receiver does not know how old the next input is. It sends its offset
 * (`place`) and takes nothing until the sender, which knows when each key was typed, resends or drops the rest (`anew`).
 */

import type { Clock } from '../kernel/clock.js';
import { TERMINAL_LIMITS } from './limits.js';

/** Milliseconds without any frame that count as a silence. Every sender pings more often. */
export const SILENCE_MS = TERMINAL_LIMITS.pingInterval + 1_000;

export type InputDecision = 'take' | 'ask' | 'ignore';

export class InputGate {
  private supportsPlace = false;
  private isClosed = false;
  private seenStalls = 0;

  /** True when the sender understands `place`; older versions do not. */
  get canAsk(): boolean {
    return this.supportsPlace;
  }

  /**
   * Decides about input that has just arrived. After `ask` the gate stays shut until `open`.
   * @param stalls number of silences on the socket so far
   */
  decide(stalls: number): InputDecision {
    if (this.isClosed) return 'ignore';
    const isDoubtful = this.supportsPlace && stalls !== this.seenStalls;
    this.seenStalls = stalls;
    if (!isDoubtful) return 'take';
    this.isClosed = true;
    return 'ask';
  }

  /** Ignores input until `open`, because the sender was asked. */
  close(): void {
    this.isClosed = true;
  }

  /** Takes input again: the sender sent `anew`. @param stalls see `passage` */
  open(stalls: number): void {
    this.supportsPlace = true;
    this.isClosed = false;
    this.seenStalls = stalls;
  }
}

interface Mark {
  /** Offset after the last byte. */
  readonly end: number;
  /** Times in milliseconds of the monotonic clock, which may stand still while a machine sleeps, and of the wall clock. */
  readonly monotonic: number;
  readonly now: number;
}

/** Milliseconds within which input shares the time of the input before it. */
const TOGETHER = 200;

/** Remembers when input was typed, by offset. */
export class InputAges {
  private readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  private marks: Mark[] = [];

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>) {
    this.clock = clock;
  }

  /** Records the current time for bytes before `end` that have no time. */
  typed(end: number): void {
    const monotonic = this.clock.monotonic();
    const last = this.marks.at(-1);
    if (last !== undefined && monotonic - last.monotonic < TOGETHER)
      this.marks[this.marks.length - 1] = { ...last, end };
    else this.marks.push({ end, monotonic, now: this.clock.now() });
  }

  /** Returns the milliseconds since the first byte at or after `from` was typed, or 0 without one. */
  age(from: number): number {
    const mark = this.marks.find(({ end }) => end > from);
    if (mark === undefined) return 0;
    return Math.max(0, this.clock.monotonic() - mark.monotonic, this.clock.now() - mark.now);
  }

  /** Forgets input before the offset. */
  dropBefore(offset: number): void {
    while ((this.marks[0]?.end ?? Number.POSITIVE_INFINITY) <= offset) this.marks.shift();
  }

  /** Forgets input at and after the offset. */
  dropFrom(offset: number): void {
    const first = this.marks.findIndex(({ end }) => end > offset);
    if (first < 0) return;
    const cut = this.marks[first] as Mark;
    this.marks.length = first;
    if ((this.marks.at(-1)?.end ?? Number.NEGATIVE_INFINITY) < offset) this.marks.push({ ...cut, end: offset });
  }

  /** Shifts all offsets. */
  move(by: number): void {
    if (by !== 0) this.marks = this.marks.map((mark) => ({ ...mark, end: mark.end + by }));
  }
}
