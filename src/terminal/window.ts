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

/** A limit that was told, and when. */
interface Stop {
  readonly limit: number;
  readonly at: number;
}

/** Milliseconds of output that may be in flight at most beside the round trip. */
const MARGIN = 150;
/** A producer that lets itself be waited for longer has nothing to send, in milliseconds. */
const LONGEST_WAIT = 1_000;
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
  /** Where the producer may have had to wait; those that are not behind the consumer yet. */
  private readonly stops: Stop[];
  private hasStarved = false;
  private grownAt = Number.NEGATIVE_INFINITY;
  private measuredTrip = 0;
  /** From a limit to the output that waited for it, in milliseconds: what was measured may end halfway to the producer. */
  private wait = 0;
  /** When the limit was told that the consumer waits behind; null while it does not wait. */
  private waitsSince: number | null = null;
  private sampleStart: number;
  private sampleBytes = 0;

  constructor({ clock, first, offset = 0 }: WindowOptions) {
    this.clock = clock;
    this.size = first;
    this.limit = offset + first;
    this.consumed = offset;
    this.told = offset;
    this.sampleStart = clock.monotonic();
    this.stops = [{ limit: this.limit, at: this.sampleStart }];
  }

  /** What the producer may know now. */
  get credit(): Credit {
    return { consumed: this.consumed, limit: this.limit };
  }

  /** The latest measured round trip to the producer, or to what passes its output on, in milliseconds. */
  measured(roundTrip: number): void {
    this.measuredTrip = roundTrip;
  }

  /**
   * Bytes up to there were taken.
   * @param isDry the consumer has nothing more to take for now
   * @returns what to tell the producer, or null while too little was taken since it was told
   */
  take(consumed: number, isDry = false): Credit | null {
    if (consumed <= this.consumed) return null;
    this.endWait();
    this.sampleBytes += consumed - this.consumed;
    this.consumed = consumed;
    while ((this.stops[0]?.limit ?? consumed) < consumed) this.stops.shift();
    if (isDry && this.stops[0]?.limit === consumed) {
      this.grow();
      const credit = this.tell();
      this.waitsSince = this.stops[1]?.at ?? null;
      return credit;
    }
    if (this.consumed - this.told < Math.max(this.size / 4, WORTH)) return null;
    return this.tell();
  }

  /** The stream goes on elsewhere, as after a snapshot. */
  jump(offset: number): Credit {
    this.waitsSince = null;
    this.consumed = offset;
    return this.tell();
  }

  /** The producer had to wait for longer than the consumer had something to take. */
  private grow(): void {
    this.hasStarved = true;
    const now = this.clock.monotonic();
    // What it grew by shows a round trip later.
    if (now - this.grownAt < this.roundTrip) return;
    this.grownAt = now;
    this.size = clampWindow(this.size * 2);
  }

  private endWait(): void {
    if (this.waitsSince === null) return;
    this.wait = Math.min(this.clock.monotonic() - this.waitsSince, LONGEST_WAIT);
    this.waitsSince = null;
  }

  private get roundTrip(): number {
    return Math.max(this.measuredTrip, this.wait);
  }

  private tell(): Credit {
    const now = this.clock.monotonic();
    const elapsed = now - this.sampleStart;
    // Within a round trip a window that is too small may not show.
    if (elapsed >= Math.max(SAMPLE, 2 * this.roundTrip)) this.sample(elapsed);
    this.told = this.consumed;
    const limit = Math.max(this.limit, this.consumed + this.size);
    if (limit > this.limit) this.stops.push({ limit, at: now });
    this.limit = limit;
    return this.credit;
  }

  private sample(elapsed: number): void {
    const most = (this.sampleBytes / elapsed) * (this.roundTrip + MARGIN);
    this.size = clampWindow(Math.min(most, this.hasStarved ? this.size : this.size * SHRUNK));
    // A wait that does not come again was none of the way.
    if (!this.hasStarved) this.wait *= SHRUNK;
    this.hasStarved = false;
    this.sampleStart += elapsed;
    this.sampleBytes = 0;
  }
}

const clampWindow = (bytes: number): number =>
  Math.round(Math.min(Math.max(bytes, TERMINAL_LIMITS.leastWindow), TERMINAL_LIMITS.mostWindow));
