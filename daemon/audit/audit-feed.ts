/**
 * Streams the audit log to many readers. Each reads from the store at its own pace; the bus only signals new events.
 * So no event is missed or repeated between old and new ones, and a slow reader needs no buffer.
 */
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { AuditEvent, AuditGap } from '../../src/contract/audit.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import { resolveOperatorId } from '../auth/operator-store.js';
import {
  findAuditCut,
  findAuditRow,
  firstAuditSeq,
  firstAuditSeqAfterId,
  firstAuditSeqFrom,
  lastAuditSeq,
  listAuditWindow,
} from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import { WakeSignal } from '../core/event-bus.js';
import { type AuditFilter, auditEventOf, windowQueryOf } from './audit-reader.js';
import { type Reader, ReaderPlaces } from './reader-places.js';

type AuditFeedOptions = Pick<Core, 'bus' | 'db'>;

export interface FollowOptions {
  readonly filter: Pick<AuditFilter, 'agent' | 'operator' | 'eventType' | 'category'>;
  /** ID of the event to start after; the event may have been pruned. */
  readonly behind: string | null;
  /** Start time in Unix milliseconds, used when `behind` is null; null starts with new events. */
  readonly after: number | null;
  /** Ends the stream without an error when aborted. */
  readonly signal: AbortSignal;
  /** Returns whose events the reader may read, before each page; undefined for all [default: all]. */
  readonly limits?: () => Promise<AuditFilter['reader']>;
  /** Operator that reads [default: none, which counts only among all readers]. */
  readonly reader?: Reader;
}

interface FeedPage {
  /** Events in the order of the log. */
  readonly events: readonly AuditEvent[];
  /** ID of the last event examined, even if the filter excludes it: the cursor to resume from; null without an event. */
  readonly place: string | null;
  /** Deleted events before those of the page that the reader has not got; null without any. */
  readonly gap: AuditGap | null;
}

/** Events examined per read. */
const WINDOW = 500;
/** Maximum milliseconds between two pages, if there are no events for the reader. */
const TICK_MS = 2000;
/** Milliseconds to wait after a signal, so that a burst of events is read in one page. */
const GATHER_MS = 20;

export class AuditFeed implements Service {
  readonly name = 'audit feed';
  private readonly options: AuditFeedOptions;
  private readonly signals = new Set<WakeSignal>();
  private readonly places = new ReaderPlaces();
  private unsubscribe = () => {};
  private stopped = false;

  constructor(options: AuditFeedOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.unsubscribe = this.options.bus.subscribe('all', () => this.wakeAll());
  }

  /** Ends every stream with `shutting_down`. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.unsubscribe();
    this.wakeAll();
  }

  /**
   * Yields pages of events in the order of the log. The first page is empty, and so is one every `TICK_MS` without events.
   * Throws `rate_limited` when the reader has no place, `invalid_filter`, `shutting_down`.
   */
  async *follow(options: FollowOptions): AsyncGenerator<FeedPage> {
    const { reader = {} } = options;
    const leave = this.places.take(reader);
    try {
      yield* this.pages(options);
    } finally {
      leave();
    }
  }

  private async *pages(options: FollowOptions): AsyncGenerator<FeedPage> {
    const { signal } = options;
    const { operator, ...others } = options.filter;
    // Resolved to an ID once, because the operator may be removed or renamed while the reader follows.
    let operatorId = await this.operatorMeant(operator);
    const wakeup = new WakeSignal();
    const wake = () => wakeup.set();
    signal.addEventListener('abort', wake);
    this.signals.add(wakeup);
    try {
      let place = await this.placeOf(options);
      let placeId = await this.idAt(place);
      yield { events: [], place: placeId, gap: await this.gapBehind(options.behind, place) };
      placeId ??= options.behind;
      while (!signal.aborted) {
        if (this.stopped) throw stopping();
        operatorId = await this.operatorMeant(operatorId);
        const { events, to, isEnd, gap } = await this.read(
          { ...others, operator: operatorId, reader: await options.limits?.() },
          place,
          placeId,
        );
        if (to !== place) placeId = await this.idAt(to);
        place = to;
        if (isEnd || events.length > 0 || gap !== null) yield { events, place: placeId, gap };
        await (isEnd ? this.more(wakeup) : setImmediate());
      }
    } finally {
      this.signals.delete(wakeup);
      signal.removeEventListener('abort', wake);
    }
  }

  /** Returns the operator's ID, or the given text until an operator of that name exists. Throws `invalid_filter`. */
  private async operatorMeant(nameOrId: string | undefined): Promise<string | undefined> {
    return nameOrId === undefined ? undefined : resolveOperatorId(this.options.db, nameOrId);
  }

  /** Returns the `seq` after which a reader starts. */
  private async placeOf({ behind, after }: FollowOptions): Promise<number> {
    const { db } = this.options;
    const end = (await lastAuditSeq(db)) ?? (await findAuditCut(db))?.seq ?? 0;
    if (behind !== null) return ((await firstAuditSeqAfterId(db, behind)) ?? end + 1) - 1;
    return after === null ? end : ((await firstAuditSeqFrom(db, after)) ?? end + 1) - 1;
  }

  /** Returns the gap between the event `behind` and the first one that is kept, if `behind` was deleted and perhaps more. */
  private async gapBehind(behind: string | null, place: number): Promise<AuditGap | null> {
    const { db } = this.options;
    const first = await firstAuditSeq(db);
    const isBefore = behind !== null && first !== null && place === first - 1 && (await findAuditCut(db)) !== null;
    const next = isBefore ? await this.idAt(first) : null;
    if (behind === null || next === null) return null;
    const detail =
      `the audit log no longer has the event ${behind} to go on after, nor any before ${next}: ` +
      'the events between them are missing, if there were any';
    return { after: behind, next, deleted: null, detail };
  }

  /**
   * Returns the events after a place. Events that were deleted before they were read are a gap.
   * @param afterId ID of the event at `after`; null when it is unknown
   */
  private async read(filter: AuditFilter, after: number, afterId: string | null) {
    const { db } = this.options;
    const end = (await lastAuditSeq(db)) ?? 0;
    const to = Math.max(after, Math.min(end, after + WINDOW));
    if (to === after) return { events: [], to, isEnd: true, gap: null };
    const rows = await listAuditWindow(db, await windowQueryOf(db, filter), { after, to });
    // Looked at afterwards, because events may have been deleted before the window was read.
    const first = (await firstAuditSeq(db)) ?? after + 1;
    const next = first > after + 1 ? await this.idAt(first) : null;
    if (next === null) return { events: rows.map(auditEventOf), to, isEnd: to >= end, gap: null };
    const events = rows.filter(({ seq }) => seq >= first).map(auditEventOf);
    const gap = deletedBetween(after, first, { afterId, next });
    return { events, to: Math.max(to, first - 1), isEnd: to >= end, gap };
  }

  private async idAt(seq: number): Promise<string | null> {
    return (await findAuditRow(this.options.db, seq))?.id ?? null;
  }

  private async more(wakeup: WakeSignal): Promise<void> {
    await wakeup.wait(TICK_MS);
    if (!this.stopped) await setTimeout(GATHER_MS);
  }

  private wakeAll(): void {
    for (const signal of this.signals) signal.set();
  }
}

function deletedBetween(
  after: number,
  first: number,
  { afterId, next }: { readonly afterId: string | null; readonly next: string },
): AuditGap {
  const deleted = first - 1 - after;
  const events = deleted === 1 ? '1 event' : `${deleted} events`;
  const place = afterId === null ? '' : ` after ${afterId}`;
  const detail = `${events}${place} ${deleted === 1 ? 'was' : 'were'} deleted from the audit log before ${deleted === 1 ? 'it' : 'they'} could be sent`;
  return { after: afterId, next, deleted, detail };
}

const stopping = (): Fault =>
  new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'connect again soon' });
