/** Keeps what agents do over and over, on however many connections, from filling the audit log. */
import type { Clock } from '../../src/kernel/clock.js';
import type { Core } from '../core/core.js';
import type { DomainEvent } from '../core/domain-event.js';

/** The same is reported at most that often, in milliseconds. */
const EVERY = 60_000;
/** Reports that are remembered; the oldest are forgotten first. */
const REMEMBERED = 10_000;

export class ReportThrottle {
  private readonly clock: Clock;
  private readonly last = new Map<string, number>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** True, and noted, unless the same was reported within the last minute. */
  passes(what: string): boolean {
    const now = this.clock.monotonic();
    const before = this.last.get(what);
    if (before !== undefined && now - before < EVERY) return false;
    this.last.delete(what);
    this.last.set(what, now);
    const [oldest] = this.last.keys();
    if (this.last.size > REMEMBERED && oldest !== undefined) this.last.delete(oldest);
    return true;
  }
}

interface Repeats {
  /** On the monotonic clock. */
  since: number;
  /** Events of this window that were recorded one by one. */
  recorded: number;
  /** Events that wait for their summary, at most `LISTED` of them, oldest first; `held` counts all. */
  waiting: DomainEvent[];
  held: number;
}

/** One summary stands for the events of that long, in milliseconds. Shorter than the time after which an absence is told. */
const WINDOW = 30_000;
/** Events that a summary is made of; the oldest are forgotten first. */
const LISTED = 20;

/** Makes one event of several; gets the last ones of a window, oldest first, and how many there were. */
export type Summarize = (events: readonly DomainEvent[], count: number) => DomainEvent | null;

interface RepeatedEventsOptions extends Pick<Core, 'clock'> {
  /** Events of a subject within a window that are recorded one by one. */
  readonly atOnce: number;
  readonly summarize: Summarize;
}

/**
 * Lets the first events of a subject pass, and makes one event of all that follow within a window. A subject that goes on
 * gets one summary each window, until it was quiet for one.
 */
export class RepeatedEvents {
  private readonly options: RepeatedEventsOptions;
  private readonly subjects = new Map<string, Repeats>();

  constructor(options: RepeatedEventsOptions) {
    this.options = options;
  }

  /** True when the event is to be recorded now; else it waits for the summary of its subject. */
  passes(subject: string, event: DomainEvent): boolean {
    const now = this.options.clock.monotonic();
    let repeats = this.subjects.get(subject);
    if (repeats === undefined || (repeats.held === 0 && now - repeats.since >= WINDOW)) {
      repeats = { since: now, recorded: 0, waiting: [], held: 0 };
      this.subjects.set(subject, repeats);
    }
    if (repeats.recorded < this.options.atOnce) {
      repeats.recorded += 1;
      return true;
    }
    repeats.held += 1;
    repeats.waiting.push(event);
    if (repeats.waiting.length > LISTED) repeats.waiting.shift();
    return false;
  }

  /**
   * Hands the summaries that are due to `record`, with `everything` all that wait. What `record` could not store waits for
   * the next call, and its error is thrown.
   */
  async flush(record: (events: readonly DomainEvent[]) => Promise<void>, everything = false): Promise<void> {
    const now = this.options.clock.monotonic();
    const due = [...this.subjects].filter(([, { since }]) => everything || now - since >= WINDOW);
    const taken = due.map(([, repeats]) => ({ repeats, waiting: repeats.waiting, held: repeats.held }));
    const events = taken.flatMap(({ waiting, held }) =>
      held > 0 ? (this.options.summarize(waiting, held) ?? []) : [],
    );
    for (const [subject, repeats] of due) {
      if (repeats.held === 0) this.subjects.delete(subject);
      Object.assign(repeats, { since: now, waiting: [], held: 0 });
    }
    if (events.length === 0) return;
    try {
      await record(events);
    } catch (error) {
      for (const { repeats, waiting, held } of taken) {
        repeats.waiting.unshift(...waiting);
        repeats.held += held;
      }
      throw error;
    }
  }
}

/** The last of several events, which says how many there were. */
export function lastOf(events: readonly DomainEvent[], count: number): DomainEvent | null {
  const last = events.at(-1);
  if (last === undefined || count === 1) return last ?? null;
  const summary = `${last.summary} (${count} such changes within ${WINDOW / 1_000} seconds)`;
  return { ...last, summary, metadata: { ...last.metadata, count } };
}
