/**
 * The window of a consumer: how much output may be on its way to it. It follows how fast the consumer takes bytes, so that a
 * slow terminal has little in flight (Ctrl-C is felt at once) and a fast or far one is never starved.
 */
import type { Clock } from '../kernel/clock.js';
import { TERMINAL_LIMITS } from './limits.js';

export interface Credit {
  /** All before it was taken. */
  readonly consumed: number;
  /** The producer may send up to here. */
  readonly limit: number;
}

export interface WindowOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Bytes. */
  readonly first: number;
  /** Where the stream is when it begins. */
  readonly offset?: number;
}

/** Milliseconds of output that may be in flight beside the round trip. */
const MARGIN = 150;
/** How long rates are measured before they count, in milliseconds. */
const SAMPLE = 50;

export class ConsumerWindow {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private size: number;
  /** Never goes back: what the producer was allowed it may have sent. */
  private limit: number;
  private consumed: number;
  private told: number;
  private roundTrip = 0;
  private sampleStart: number;
  private sampleBytes = 0;

  constructor({ clock, first, offset = 0 }: WindowOptions) {
    this.clock = clock;
    this.size = first;
    this.limit = offset + first;
    this.consumed = offset;
    this.told = offset;
    this.sampleStart = clock.monotonic();
  }

  /** What the producer may know now. */
  get credit(): Credit {
    return { consumed: this.consumed, limit: this.limit };
  }

  /** The latest measured round trip to the producer, in milliseconds. */
  measured(roundTrip: number): void {
    this.roundTrip = roundTrip;
  }

  /**
   * Bytes up to there were taken.
   * @returns what to tell the producer, or null while less than a quarter of the window was taken since it was told
   */
  take(consumed: number): Credit | null {
    if (consumed <= this.consumed) return null;
    this.sampleBytes += consumed - this.consumed;
    this.consumed = consumed;
    if (this.consumed - this.told < this.size / 4) return null;
    return this.tell();
  }

  /** The stream goes on elsewhere, as after a snapshot. */
  jump(offset: number): Credit {
    this.consumed = offset;
    return this.tell();
  }

  private tell(): Credit {
    const elapsed = this.clock.monotonic() - this.sampleStart;
    if (elapsed >= SAMPLE) {
      this.size = clampWindow((this.sampleBytes / elapsed) * (this.roundTrip + MARGIN));
      this.sampleStart += elapsed;
      this.sampleBytes = 0;
    }
    this.told = this.consumed;
    this.limit = Math.max(this.limit, this.consumed + this.size);
    return this.credit;
  }
}

const clampWindow = (bytes: number): number =>
  Math.round(Math.min(Math.max(bytes, TERMINAL_LIMITS.leastWindow), TERMINAL_LIMITS.mostWindow));
