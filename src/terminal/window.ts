/**
 * The window of a consumer limits the output in flight to it. It shrinks while the consumer always has output to take, so that
 * Ctrl-C works at once. It grows when the consumer runs dry because the producer had to wait, by as much as the wait cost, so that
 * a fast or distant consumer does not starve. Serves the benchmark rows "throughput" and "Ctrl-C to quiet".
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

/** State of a consumer that has taken everything. */
interface Dryness {
  readonly since: number;
  /** Time at which the limit was given that the consumer waits for; null while the producer may send. */
  readonly limitAt: number | null;
}

/** Milliseconds of output that may be in flight in addition to the round trip. */
const MARGIN = 50;
/** Maximum milliseconds of a wait that counts: after that the producer has nothing to send. */
const MAX_WAIT = 1_000;
/** Minimum milliseconds of a rate measurement. */
const SAMPLE = 50;
/** Minimum bytes taken before new credit is sent, and the part of a large window. */
const MIN_TAKEN = TERMINAL_LIMITS.leastWindow / 2;
const TAKEN_PART = 1 / 16;
/** Factor by which an oversized window shrinks after each sample. */
const SHRUNK = 7 / 8;
/** Part of a sample that the consumer may wait in an oversized window: other work on a machine delays output, too. */
const STARVED_PART = 1 / 32;
/** Maximum factor by which a window grows after a sample. */
const MAX_GROWTH = 16;

export class ConsumerWindow {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private size: number;
  /** Limit given to the producer. It never decreases, because the producer may have used it. */
  private limit: number;
  private consumed: number;
  private acknowledged: number;
  /** Limits at which the producer may have waited and that the consumer has not passed. */
  private readonly stops: Stop[];
  private measuredTrip = 0;
  /**
   * Minimum milliseconds since the last pause from a limit to the output that waited for it; 0 before the first. The measured round
   * trip may cover only half of the way.
   */
  private wait = 0;
  private dryness: Dryness | null;
  /** In the future while the growth of the window has no effect yet. */
  private sampleStart: number;
  private sampleBytes = 0;
  /** Milliseconds of the sample in which the consumer waited because the producer had to. */
  private starved = 0;

  constructor({ clock, first, offset = 0 }: WindowOptions) {
    this.clock = clock;
    this.size = first;
    this.limit = offset + first;
    this.consumed = offset;
    this.acknowledged = offset;
    this.sampleStart = clock.monotonic();
    this.stops = [{ limit: this.limit, at: this.sampleStart }];
    this.dryness = { since: this.sampleStart, limitAt: null };
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
    const now = this.clock.monotonic();
    this.endDryness(now);
    if (now >= this.sampleStart) this.sampleBytes += consumed - this.consumed;
    this.consumed = consumed;
    while ((this.stops[0]?.limit ?? consumed) < consumed) this.stops.shift();
    const isStarving = isDry && this.stops[0]?.limit === consumed;
    const isDue = consumed - this.acknowledged >= Math.max(this.size * TAKEN_PART, MIN_TAKEN);
    const credit = isStarving || isDue ? this.issueCredit(now) : null;
    if (isDry) this.dryness = { since: now, limitAt: isStarving ? (this.stops[1]?.at ?? now) : null };
    return credit;
  }

  /** Continues at another offset, as after a snapshot. */
  jump(offset: number): Credit {
    this.dryness = null;
    this.consumed = offset;
    return this.issueCredit(this.clock.monotonic());
  }

  /** Records how long the consumer waited for output, and why. */
  private endDryness(now: number): void {
    const { dryness } = this;
    if (dryness === null) return;
    this.dryness = null;
    const { since, limitAt } = dryness;
    const longest = limitAt === null ? Math.max(SAMPLE, 2 * this.roundTrip) : MAX_WAIT;
    if (now - since > longest) {
      // The producer paused, which says nothing about the consumer. Nothing is queued on the way now.
      this.wait = 0;
      this.beginSample(now);
    } else if (limitAt !== null) {
      const wait = now - limitAt;
      this.wait = this.wait === 0 ? wait : Math.min(this.wait, wait);
      // Output that took longer was queued on the way, and a larger window would only queue more.
      if (wait > this.roundTrip + MARGIN) return;
      this.starved += Math.max(0, now - Math.max(since, this.sampleStart));
      if (this.isShort(now) && now - this.sampleStart >= Math.max(SAMPLE, this.roundTrip)) this.endSample(now);
    }
  }

  private get roundTrip(): number {
    return Math.max(this.measuredTrip, this.wait);
  }

  private issueCredit(now: number): Credit {
    // A window that is too small may not show within a round trip.
    if (now - this.sampleStart >= Math.max(SAMPLE, 2 * this.roundTrip)) this.endSample(now);
    this.acknowledged = this.consumed;
    const limit = Math.max(this.limit, this.consumed + this.size);
    if (limit > this.limit) this.stops.push({ limit, at: now });
    this.limit = limit;
    return this.credit;
  }

  /** Reports whether a larger window would have avoided much of the waiting. */
  private isShort(now: number): boolean {
    return this.starved > (now - this.sampleStart) * STARVED_PART;
  }

  private endSample(now: number): void {
    const elapsed = now - this.sampleStart;
    const flowing = Math.max(elapsed - this.starved, elapsed / MAX_GROWTH);
    const isShort = this.isShort(now);
    const wanted = this.size * (isShort ? elapsed / flowing : SHRUNK);
    this.size = clampWindow(Math.min(wanted, (this.sampleBytes / flowing) * (this.roundTrip + MARGIN)));
    this.beginSample(isShort ? now + this.roundTrip : now);
  }

  private beginSample(at: number): void {
    this.sampleStart = at;
    this.sampleBytes = 0;
    this.starved = 0;
  }
}

const clampWindow = (bytes: number): number =>
  Math.round(Math.min(Math.max(bytes, TERMINAL_LIMITS.leastWindow), TERMINAL_LIMITS.mostWindow));
