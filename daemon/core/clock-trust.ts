/** How far the wall clock can be believed when age decides what is deleted. */

/** A difference from the monotonic clock up to this is no jump, in milliseconds. */
export const JUMP_MS = 60_000;
/** A jump ahead up to this is believed after the clock has run on evenly: longer ones wait for an operator. */
export const BELIEVED_MS = 7 * 86_400_000;
/** How long the clock has to run on evenly, in milliseconds. */
const SETTLES_MS = 3_600_000;

interface ClockReading {
  /** Unix milliseconds. */
  readonly wall: number;
  /** Milliseconds of a clock that does not jump. */
  readonly steady: number;
}

/** State that is kept between two runs. */
interface ClockMemory {
  /** The newest reading of the wall clock. */
  readonly wall: number;
  readonly doubt: number;
}

/**
 * Compares the wall clock with the monotonic one. Time while nothing ran counts as a jump, because nothing has measured it.
 * `doubt` is the part of the wall clock's time that nothing confirms, in milliseconds: above zero after a jump ahead, below
 * zero after one back, so that a jump which is taken back leaves none.
 */
export class ClockTrust {
  private last: ClockReading;
  private unconfirmed: number;
  private jumpedAt: number;

  constructor(now: ClockReading, memory: ClockMemory | null) {
    const before = memory ?? { wall: now.wall, doubt: 0 };
    this.last = { wall: before.wall, steady: now.steady };
    this.unconfirmed = before.doubt;
    this.jumpedAt = now.steady;
    this.read(now);
  }

  get doubt(): number {
    return this.unconfirmed;
  }

  get memory(): ClockMemory {
    return { wall: this.last.wall, doubt: this.unconfirmed };
  }

  /** True while only an operator can say that the clock is right. */
  get needsOperator(): boolean {
    return this.unconfirmed > BELIEVED_MS;
  }

  /** The time by which age is judged, in Unix milliseconds: never later than what is confirmed. */
  get time(): number {
    return this.last.wall - Math.max(0, this.unconfirmed);
  }

  /** Returns by how much the wall clock has jumped since the last reading, 0 when it has not. */
  read(now: ClockReading): number {
    const step = now.wall - this.last.wall - (now.steady - this.last.steady);
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

  /** An operator says that the clock is right. */
  accept(): void {
    this.unconfirmed = 0;
  }
}
