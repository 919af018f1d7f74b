/**
 * Follows the audit log for many readers. Each reads from the store at its own pace, and the bus only tells it that there is
 * more: so nothing is missed or told twice between old and new events, and a slow reader costs no memory.
 */
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { AuditEvent } from '../../src/contract/audit.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import { operatorIdMeant } from '../auth/operator-store.js';
import {
  findAuditCut,
  findAuditRow,
  firstAuditSeqAfterId,
  firstAuditSeqFrom,
  lastAuditSeq,
  listAuditWindow,
} from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import { Doorbell } from '../core/event-bus.js';
import { type AuditFilter, auditEventOf, windowQueryOf } from './audit-reader.js';

type AuditFeedOptions = Pick<Core, 'bus' | 'db'>;

export interface FollowOptions {
  readonly filter: Pick<AuditFilter, 'agent' | 'operator' | 'eventType' | 'category'>;
  /** Begins behind the event of this ID, which need not be there any more. */
  readonly behind: string | null;
  /** Else with the first event of that time, in Unix milliseconds; null begins with what is written from now on. */
  readonly after: number | null;
  /** Ends it quietly. */
  readonly signal: AbortSignal;
}

interface FeedPage {
  /** In the order of the log. */
  readonly events: readonly AuditEvent[];
  /** ID of the event up to which everything was looked at, whether it matters to the reader or not; null for no event. */
  readonly place: string | null;
}

/** Readers at a time. */
const MOST = 256;
/** Events that are looked through at a time. */
const WINDOW = 500;
/** How long a reader is not told anything, when nothing matters to it. */
const TICK_MS = 2000;
/** Events that come that close together are read at once. */
const GATHER_MS = 20;

export class AuditFeed implements Service {
  readonly name = 'audit feed';
  private readonly options: AuditFeedOptions;
  private readonly bells = new Set<Doorbell>();
  private unsubscribe = () => {};
  private stopped = false;

  constructor(options: AuditFeedOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.unsubscribe = this.options.bus.subscribe('all', () => this.ringAll());
  }

  /** Every reader is told that the orchestrator stops. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.unsubscribe();
    this.ringAll();
  }

  /**
   * Events in the order of the log, some at a time; none at the beginning, and every few seconds when there are none.
   * Throws `rate_limited` when there are too many readers, `invalid_filter`, `shutting_down`.
   */
  async *follow(options: FollowOptions): AsyncGenerator<FeedPage> {
    const { signal } = options;
    const { operator, ...others } = options.filter;
    // Found once: the operator may be removed, or lose the name, while the reader follows.
    let operatorId = await this.operatorMeant(operator);
    if (this.bells.size >= MOST) throw tooMany();
    const bell = new Doorbell();
    const ring = () => bell.ring();
    signal.addEventListener('abort', ring);
    this.bells.add(bell);
    try {
      let place = await this.placeOf(options);
      yield { events: [], place: await this.idAt(place) };
      while (!signal.aborted) {
        if (this.stopped) throw stopping();
        operatorId = await this.operatorMeant(operatorId);
        const { events, to, isEnd } = await this.read({ ...others, operator: operatorId }, place);
        place = to;
        if (isEnd || events.length > 0) yield { events, place: await this.idAt(place) };
        await (isEnd ? this.more(bell) : setImmediate());
      }
    } finally {
      this.bells.delete(bell);
      signal.removeEventListener('abort', ring);
    }
  }

  /** Stays the given text until there is an operator of that name. Throws `invalid_filter`. */
  private async operatorMeant(nameOrId: string | undefined): Promise<string | undefined> {
    return nameOrId === undefined ? undefined : operatorIdMeant(this.options.db, nameOrId);
  }

  /** The `seq` behind which a reader begins. */
  private async placeOf({ behind, after }: FollowOptions): Promise<number> {
    const { db } = this.options;
    const end = (await lastAuditSeq(db)) ?? (await findAuditCut(db))?.seq ?? 0;
    if (behind !== null) return ((await firstAuditSeqAfterId(db, behind)) ?? end + 1) - 1;
    return after === null ? end : ((await firstAuditSeqFrom(db, after)) ?? end + 1) - 1;
  }

  private async read(filter: FollowOptions['filter'], after: number) {
    const { db } = this.options;
    const end = (await lastAuditSeq(db)) ?? 0;
    const to = Math.max(after, Math.min(end, after + WINDOW));
    if (to === after) return { events: [], to, isEnd: true };
    const rows = await listAuditWindow(db, await windowQueryOf(db, filter), { after, to });
    return { events: rows.map(auditEventOf), to, isEnd: to >= end };
  }

  private async idAt(seq: number): Promise<string | null> {
    return (await findAuditRow(this.options.db, seq))?.id ?? null;
  }

  private async more(bell: Doorbell): Promise<void> {
    await bell.wait(TICK_MS);
    if (!this.stopped) await setTimeout(GATHER_MS);
  }

  private ringAll(): void {
    for (const bell of this.bells) bell.ring();
  }
}

const tooMany = (): Fault =>
  new Fault('rate_limited', `${MOST} readers follow the audit log already`, {
    hint: 'end one of them, or ask for pages with GET /audit',
    data: { retry_after: 10 },
  });

const stopping = (): Fault =>
  new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'connect again soon', data: { retry_after: 2 } });
