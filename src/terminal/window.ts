/**
 * The window of a consumer: how much output may be on its way to it. It shrinks while the consumer always has something to take,
 * and grows when that has run out because the producer had to wait: so little is in flight (Ctrl-C is felt at once), and a fast
 * or far consumer is not starved for long.
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

/** Milliseconds of output that may be in flight at most beside the round trip. */
const MARGIN = 150;
/** How long rates are measured before they count, in milliseconds. */
const SAMPLE = 50;
/** Less than that taken is not worth telling, in bytes. */
const WORTH = TERMINAL_LIMITS.leastWindow / 2;
/** What a window without need for its size has after a sample. */
const SHRUNK = 7 / 8;

export class ConsumerWindow {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private size: number;
  /** Never goes back: what the producer was allowed it may have sent. */
  private limit: number;
  private consumed: number;
  private told: number;
  /** Limits that were told, where the producer may have had to wait; those that are not behind the consumer yet. */
  private readonly stops: number[];
  private hasStarved = false;
  private roundTrip = 0;
  private sampleStart: number;
  private sampleBytes = 0;

  constructor({ clock, first, offset = 0 }: WindowOptions) {
    this.clock = clock;
    this.size = first;
    this.limit = offset + first;
    this.consumed = offset;
    this.told = offset;
    this.stops = [this.limit];
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
   * @param isDry the consumer has nothing more to take for now
   * @returns what to tell the producer, or null while too little was taken since it was told
   */
  take(consumed: number, isDry = false): Credit | null {
    if (consumed <= this.consumed) return null;
    this.sampleBytes += consumed - this.consumed;
    this.consumed = consumed;
    while ((this.stops[0] ?? consumed) < consumed) this.stops.shift();
    if (isDry && this.stops[0] === consumed) {
      this.grow();
      return this.tell();
    }
    if (this.consumed - this.told < Math.max(this.size / 4, WORTH)) return null;
    return this.tell();
  }

  /** The stream goes on elsewhere, as after a snapshot. */
  jump(offset: number): Credit {
    this.consumed = offset;
    return this.tell();
  }

  /** The producer had to wait for longer than the consumer had something to take. */
  private grow(): void {
    this.hasStarved = true;
    this.size = clampWindow(this.size * 2);
  }

  private tell(): Credit {
    const elapsed = this.clock.monotonic() - this.sampleStart;
    // Within a round trip a window that is too small may not show.
    if (elapsed >= Math.max(SAMPLE, 2 * this.roundTrip)) this.sample(elapsed);
    this.told = this.consumed;
    const limit = Math.max(this.limit, this.consumed + this.size);
    if (limit > this.limit) this.stops.push(limit);
    this.limit = limit;
    return this.credit;
  }

  private sample(elapsed: number): void {
    const most = (this.sampleBytes / elapsed) * (this.roundTrip + MARGIN);
    this.size = clampWindow(Math.min(most, this.hasStarved ? this.size : this.size * SHRUNK));
    this.hasStarved = false;
    this.sampleStart += elapsed;
    this.sampleBytes = 0;
  }
}

const clampWindow = (bytes: number): number =>
  Math.round(Math.min(Math.max(bytes, TERMINAL_LIMITS.leastWindow), TERMINAL_LIMITS.mostWindow));
