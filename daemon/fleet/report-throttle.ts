/** Throttles repeated events of agents, across all their connections, so that they cannot fill the audit log. */
import type { Clock } from '../../src/kernel/clock.js';
import type { Core } from '../core/core.js';
import type { DomainEvent } from '../core/domain-event.js';

/** Minimum milliseconds between two reports of the same subject. */
const EVERY = 60_000;
/** Maximum reports remembered; the oldest are dropped first. */
const REMEMBERED = 10_000;

export class ReportThrottle {
  private readonly clock: Clock;
  private readonly last = new Map<string, number>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Returns true, and notes the report, unless the same was reported within the last minute. */
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
  /** Milliseconds on the monotonic clock. */
  since: number;
  /** Number of events of this window recorded individually. */
  recorded: number;
  /** Last events waiting for their summary, at most `LISTED`, oldest first; `held` counts all of them. */
  waiting: DomainEvent[];
  held: number;
}

/** Milliseconds that one summary covers. Shorter than the delay after which an absence is reported. */
const WINDOW = 30_000;
/** Maximum events that a summary is made of; the oldest are dropped first. */
const LISTED = 20;

/** Combines events into one. Receives the last ones of a window, oldest first, and the total count. */
export type Summarize = (events: readonly DomainEvent[], count: number) => DomainEvent | null;

interface RepeatedEventsOptions extends Pick<Core, 'clock'> {
  /** Number of events of a subject per window that are recorded individually. */
  readonly individually: number;
  readonly summarize: Summarize;
}

/**
 * Passes the first events of a subject and summarises those that follow within a window. A busy subject gets one
 * summary per window, until it was quiet for one.
 */
export class RepeatedEvents {
  private readonly options: RepeatedEventsOptions;
  private readonly subjects = new Map<string, Repeats>();

  constructor(options: RepeatedEventsOptions) {
    this.options = options;
  }

  /** Returns true when the event must be recorded now; otherwise it waits for its subject's summary. */
  passes(subject: string, event: DomainEvent): boolean {
    const now = this.options.clock.monotonic();
    let repeats = this.subjects.get(subject);
    if (repeats === undefined || (repeats.held === 0 && now - repeats.since >= WINDOW)) {
      repeats = { since: now, recorded: 0, waiting: [], held: 0 };
      this.subjects.set(subject, repeats);
    }
    if (repeats.recorded < this.options.individually) {
      repeats.recorded += 1;
      return true;
    }
    repeats.held += 1;
    repeats.waiting.push(event);
    if (repeats.waiting.length > LISTED) repeats.waiting.shift();
    return false;
  }

  /**
   * Passes the due summaries to `record`; `everything` includes all that wait. When `record` rejects, its events wait
   * for the next call, and the error is rethrown.
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

/** Returns the last event, with the count of all in its summary. */
export function lastOf(events: readonly DomainEvent[], count: number): DomainEvent | null {
  const last = events.at(-1);
  if (last === undefined || count === 1) return last ?? null;
  const summary = `${last.summary} (${count} such changes within ${WINDOW / 1_000} seconds)`;
  return { ...last, summary, metadata: { ...last.metadata, count } };
}
