/**
 * The window of a consumer limits the output in flight to it. It shrinks while the consumer always has output to take, so that
 * Ctrl-C works at once. It grows when the consumer runs dry because the producer had to wait, so that a fast or distant consumer
 * does not starve.
 */
import type { Clock } from '../kernel/clock.js';
import { TERMINAL_LIMITS } from './limits.js';

export interface Credit {
  /** Offset up to which the consumer has taken the output. */
  readonly consumed: number;
  /** Offset up to which the producer may send. */
  readonly limit: number;
}

export interface WindowOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Initial size in bytes. */
  readonly first: number;
  /** Offset of the stream at the start. */
  readonly offset?: number;
}

/** A limit that the producer was given, and its time. */
interface Stop {
  readonly limit: number;
  readonly at: number;
}

/** Milliseconds of output that may be in flight in addition to the round trip. */
const MARGIN = 150;
/** Maximum milliseconds of a wait that counts: after that the producer has nothing to send. */
const MAX_WAIT = 1_000;
/** Minimum milliseconds of a rate measurement. */
const SAMPLE = 50;
/** Minimum bytes taken before new credit is sent. */
const MIN_TAKEN = TERMINAL_LIMITS.leastWindow / 2;
/** Factor by which an oversized window shrinks after each sample. */
const SHRUNK = 7 / 8;

export class ConsumerWindow {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private size: number;
  /** Limit given to the producer. It never decreases, because the producer may have used it. */
  private limit: number;
  private consumed: number;
  private acknowledged: number;
  /** Limits at which the producer may have waited and that the consumer has not passed. */
  private readonly stops: Stop[];
  private hasStarved = false;
  private grownAt = Number.NEGATIVE_INFINITY;
  private measuredTrip = 0;
  /** Milliseconds from a limit to the output that waited for it. The measured round trip may cover only half of the way. */
  private wait = 0;
  /** Time at which the limit was given that the consumer waits for; null while it does not wait. */
  private waitsSince: number | null = null;
  private sampleStart: number;
  private sampleBytes = 0;

  constructor({ clock, first, offset = 0 }: WindowOptions) {
    this.clock = clock;
    this.size = first;
    this.limit = offset + first;
    this.consumed = offset;
    this.acknowledged = offset;
    this.sampleStart = clock.monotonic();
    this.stops = [{ limit: this.limit, at: this.sampleStart }];
  }

  /** Current credit. */
  get credit(): Credit {
    return { consumed: this.consumed, limit: this.limit };
  }

  /** Takes the latest round trip to the producer or the relay, in milliseconds. */
  measured(roundTrip: number): void {
    this.measuredTrip = roundTrip;
  }

  /**
   * Records that the consumer took the output before `consumed`.
   * @param isDry whether the consumer has nothing more to take
   * @returns the credit to send to the producer, or null while too little was taken since the last one
   */
  take(consumed: number, isDry = false): Credit | null {
    if (consumed <= this.consumed) return null;
    this.endWait();
    this.sampleBytes += consumed - this.consumed;
    this.consumed = consumed;
    while ((this.stops[0]?.limit ?? consumed) < consumed) this.stops.shift();
    if (isDry && this.stops[0]?.limit === consumed) {
      this.grow();
      const credit = this.issueCredit();
      this.waitsSince = this.stops[1]?.at ?? null;
      return credit;
    }
    if (this.consumed - this.acknowledged < Math.max(this.size / 4, MIN_TAKEN)) return null;
    return this.issueCredit();
  }

  /** Continues at another offset, as after a snapshot. */
  jump(offset: number): Credit {
    this.waitsSince = null;
    this.consumed = offset;
    return this.issueCredit();
  }

  /** Doubles the window because the consumer ran dry while the producer waited. */
  private grow(): void {
    this.hasStarved = true;
    const now = this.clock.monotonic();
    // The effect of the last growth shows after a round trip.
    if (now - this.grownAt < this.roundTrip) return;
    this.grownAt = now;
    this.size = clampWindow(this.size * 2);
  }

  private endWait(): void {
    if (this.waitsSince === null) return;
    this.wait = Math.min(this.clock.monotonic() - this.waitsSince, MAX_WAIT);
    this.waitsSince = null;
  }

  private get roundTrip(): number {
    return Math.max(this.measuredTrip, this.wait);
  }

  private issueCredit(): Credit {
    const now = this.clock.monotonic();
    const elapsed = now - this.sampleStart;
    // A window that is too small may not show within a round trip.
    if (elapsed >= Math.max(SAMPLE, 2 * this.roundTrip)) this.sample(elapsed);
    this.acknowledged = this.consumed;
    const limit = Math.max(this.limit, this.consumed + this.size);
    if (limit > this.limit) this.stops.push({ limit, at: now });
    this.limit = limit;
    return this.credit;
  }

  private sample(elapsed: number): void {
    const most = (this.sampleBytes / elapsed) * (this.roundTrip + MARGIN);
    this.size = clampWindow(Math.min(most, this.hasStarved ? this.size : this.size * SHRUNK));
    // A wait that does not repeat was not caused by the distance.
    if (!this.hasStarved) this.wait *= SHRUNK;
    this.hasStarved = false;
    this.sampleStart += elapsed;
    this.sampleBytes = 0;
  }
}

const clampWindow = (bytes: number): number =>
  Math.round(Math.min(Math.max(bytes, TERMINAL_LIMITS.leastWindow), TERMINAL_LIMITS.mostWindow));
