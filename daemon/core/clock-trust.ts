/** Decides how far to trust the wall clock when age decides what is deleted. */

/** Maximum difference from the monotonic clock, in milliseconds, that is not a jump. */
export const JUMP_MS = 60_000;
/**
 * Maximum jump ahead, in milliseconds, that is trusted once the clock has run steadily. A longer one waits for an
 * operator.
 */
export const BELIEVED_MS = 7 * 86_400_000;
/** Milliseconds that the clock must run steadily. */
const SETTLES_MS = 3_600_000;

interface ClockReading {
  /** Unix milliseconds. */
  readonly wall: number;
  /** Reading of the monotonic clock in milliseconds. */
  readonly steady: number;
}

/** State kept between two runs. */
interface ClockMemory {
  /** The newest reading of the wall clock. */
  readonly wall: number;
  readonly doubt: number;
}

/**
 * Compares the wall clock with the monotonic clock. Time while the orchestrator was stopped counts as a jump, because
 * nothing measured it.
 * `doubt` is the unconfirmed part of the wall clock's time in milliseconds. It is positive after a jump ahead and
 * negative after a jump back, so a jump that is reversed leaves none.
 */
export class ClockTrust {
  private last: ClockReading;
  private unconfirmed: number;
  private jumpedAt: number;

  constructor(now: ClockReading, memory: ClockMemory | null) {
    const before = memory ?? { wall: now.wall, doubt: 0 };
    this.last = { wall: before.wall, steady: now.steady };
    this.unconfirmed = Math.round(before.doubt);
    this.jumpedAt = now.steady;
    this.read(now);
  }

  get doubt(): number {
    return this.unconfirmed;
  }

  get memory(): ClockMemory {
    return { wall: this.last.wall, doubt: this.unconfirmed };
  }

  /** True while only an operator can confirm the clock. */
  get needsOperator(): boolean {
    return this.unconfirmed > BELIEVED_MS;
  }

  /** The time by which age is judged, in Unix milliseconds; never later than the confirmed time. */
  get time(): number {
    return this.last.wall - Math.max(0, this.unconfirmed);
  }

  /** Takes a reading. Returns the jump of the wall clock since the last reading in milliseconds, 0 for none. */
  read(now: ClockReading): number {
    // Whole milliseconds, because the doubt becomes part of times in the store.
    const step = Math.round(now.wall - this.last.wall - (now.steady - this.last.steady));
    this.last = now;
    const jump = Math.abs(step) > JUMP_MS ? step : 0;
    if (jump !== 0) {
      this.unconfirmed += jump;
      this.jumpedAt = now.steady;
      if (Math.abs(this.unconfirmed) <= JUMP_MS) this.unconfirmed = 0;
    }
    if (!this.needsOperator && now.steady - this.jumpedAt >= SETTLES_MS) this.unconfirmed = 0;
    return jump;
  }

  /** Trusts the clock, because an operator has confirmed it. */
  accept(): void {
    this.unconfirmed = 0;
  }
}
