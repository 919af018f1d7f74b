/**
 * Prunes old audit events. One transaction decides the cut, emits the event of the pruning, and signs the hash that the
 * remaining log is chained to. The rows are deleted afterwards in batches, which resume after a crash.
 */
import { setImmediate } from 'node:timers/promises';
import { toTimestamp } from '../../src/kernel/clock.js';
import { isFault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import {
  deleteAuditRowsUpTo,
  findAuditCut,
  findAuditRow,
  firstAuditSeq,
  firstAuditSeqFrom,
  lastAuditSeq,
  replaceAuditCut,
} from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import { AUDIT_LOG, type DomainEvent, eventOfRequest, type RequestContext, SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { type AuditKey, rowOfMark, signMark } from './checkpoint.js';

interface AuditPruningOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'uow'> {
  readonly key: AuditKey;
  readonly epoch: (db: Queryable) => Promise<number>;
  /** Returns the retention in days, null to keep events for ever; called on each run. */
  readonly days: (db: Queryable) => Promise<number | null>;
}

const DAY = 86_400_000;
/** Rows deleted per transaction, which takes a few milliseconds. */
const BATCH = 250;
/** Maximum transactions per scheduled run. */
const BATCHES_A_ROUND = 400;

/** Numbers of the first and the last pruned event. */
interface Cut {
  readonly first: number;
  readonly last: number;
}

export class AuditPruning {
  private readonly options: AuditPruningOptions;
  /** Unix milliseconds up to which the retention has been applied. */
  private done = 0;

  constructor(options: AuditPruningOptions) {
    this.options = options;
  }

  /**
   * Prunes the events before a time in Unix milliseconds and returns their number. After an abort the scheduled run
   * deletes the remaining rows.
   */
  async prune(before: number, context: RequestContext, signal: AbortSignal): Promise<number> {
    const deleted = await this.options.uow.write(async (tx, emit) => {
      const cut = await this.cutBefore(tx, before);
      const { type, ...event } = prunedEvent(before, cut);
      emit(eventOfRequest(context, { type, ...event }));
      return countOf(cut);
    });
    await this.sweep(signal, Infinity).catch((error: unknown) => {
      // The events are pruned; the scheduled run deletes their rows.
      if (!isFault(error, 'store_unavailable')) throw error;
    });
    return deleted;
  }

  /** Applies the retention and deletes a limited number of pruned rows; called each minute. */
  async run(): Promise<void> {
    const { db, uow, ageTime, days } = this.options;
    const kept = await days(db);
    // Rounded to whole days, so that pruning emits one event a day and not one each minute.
    const before = kept === null ? 0 : (Math.floor(ageTime() / DAY) - kept) * DAY;
    if (before > this.done) {
      await uow.write(async (tx, emit) => {
        const cut = await this.cutBefore(tx, before);
        if (cut !== null) emit({ ...prunedEvent(before, cut), actor: SYSTEM });
      });
      this.done = before;
    }
    await this.sweep(null, BATCHES_A_ROUND);
  }

  /** Signs the cut before a time and returns it; null when there is nothing to prune. */
  private async cutBefore(tx: Queryable, before: number): Promise<Cut | null> {
    const { key, clock, epoch } = this.options;
    const [first, kept, newest] = [
      await firstAuditSeq(tx),
      await firstAuditSeqFrom(tx, before),
      await lastAuditSeq(tx),
    ];
    const last = kept === null ? newest : kept - 1;
    const former = (await findAuditCut(tx))?.seq ?? 0;
    const row = last === null ? null : await findAuditRow(tx, last);
    if (first === null || row === null || row.seq <= former) return null;
    const { seq, hash } = row;
    const mark = signMark(key, { kind: 'cut', epoch: await epoch(tx), seq, hash, time: clock.now() });
    await replaceAuditCut(tx, rowOfMark(mark));
    return { first: Math.max(first, former + 1), last: seq };
  }

  private async sweep(signal: AbortSignal | null, batches: number): Promise<void> {
    const { db, uow } = this.options;
    const cut = await findAuditCut(db);
    if (cut === null) return;
    for (let batch = 0; batch < batches && signal?.aborted !== true; batch += 1) {
      const first = await firstAuditSeq(db);
      if (first === null || first > cut.seq) return;
      await uow.write((tx) => deleteAuditRowsUpTo(tx, cut.seq, BATCH));
      await setImmediate();
    }
  }
}

const countOf = (cut: Cut | null): number => (cut === null ? 0 : cut.last - cut.first + 1);

function prunedEvent(before: number, cut: Cut | null): Omit<DomainEvent, 'actor'> {
  const count = countOf(cut);
  const time = toTimestamp(before);
  const range: JsonObject = cut === null ? {} : { first_seq: cut.first, last_seq: cut.last };
  return {
    type: 'audit.pruned',
    target: AUDIT_LOG,
    summary: `${count === 1 ? '1 audit event' : `${count} audit events`} from before ${time} ${count === 1 ? 'was' : 'were'} deleted`,
    metadata: { count, before: time, ...range },
  };
}
