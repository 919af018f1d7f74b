/** Walks the hash chain of the audit log and finds the first event that was altered, removed or moved. */
import { setImmediate } from 'node:timers/promises';
import type { AuditProblem } from '../../src/contract/audit.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { GENESIS, hashOf } from '../core/audit-log.js';
import { type AuditRow, findAuditCut, readAuditChain } from '../core/audit-store.js';
import type { Queryable } from '../database/schema.js';
import type { ChainPlace } from './chain-place.js';
import type { Mark } from './checkpoint.js';

/** Rows checked before yielding to the event loop; they take a few milliseconds. */
const SLICE = 200;

/** The first event that is not intact. `altered` may also mean that the previous event was altered. */
interface ChainBreak {
  readonly seq: number;
  readonly id: string | null;
  readonly what: 'altered' | 'missing' | 'out_of_order';
}

/** One step of a walk. */
export interface ChainSlice {
  /** Place where the step began. */
  readonly from: ChainPlace;
  /** Intact rows, in order. */
  readonly rows: readonly AuditRow[];
  /** Place of the last intact row, or `from` when there is none. */
  readonly head: ChainPlace;
  /** Break that ends the walk; null for none. */
  readonly broken: ChainBreak | null;
}

interface ChainReport {
  /** Number of intact events. */
  readonly verified: number;
  /** Last intact event. */
  readonly head: ChainPlace;
  readonly broken: ChainBreak | null;
}

/**
 * Verifies every event, or those after `since`, and returns a report. The place `since` must be in the chain, which
 * detects a chain whose newest events were cut off.
 */
export async function verifyChain(db: Queryable, since?: ChainPlace): Promise<ChainReport> {
  const start = since ?? (await oldestPlace(db));
  let report: ChainReport = { verified: 0, head: start, broken: since ? await findPlace(db, since) : null };
  if (report.broken !== null) return report;
  for await (const { rows, head, broken } of walkChain(db, { from: start })) {
    report = { verified: report.verified + rows.length, head, broken };
  }
  return report;
}

/** Returns the place that the first event is chained to: the last pruned event, or the beginning of the log. */
async function oldestPlace(db: Queryable): Promise<ChainPlace> {
  const cut = await findAuditCut(db);
  return cut === null ? GENESIS : { seq: cut.seq, hash: cut.hash };
}

interface WalkOptions {
  readonly from: ChainPlace;
  /** Last `seq` of the walk; absent to walk to the current end of the log. */
  readonly to?: number;
}

/** Yields the chain in slices and yields to the event loop between them. Skips events that are pruned meanwhile. */
export async function* walkChain(db: Queryable, { from, to = Infinity }: WalkOptions): AsyncGenerator<ChainSlice> {
  let head = from;
  while (head.seq < to) {
    const rows = await readAuditChain(db, head.seq, Math.min(SLICE, to - head.seq));
    const slice = follow(head, rows);
    const cut = slice.broken === null ? null : await oldestPlace(db);
    if (cut !== null && cut.seq > slice.head.seq) {
      head = cut;
      continue;
    }
    yield slice;
    if (slice.broken !== null || rows.length === 0) return;
    head = slice.head;
    await setImmediate();
  }
}

/** Returns null when the place is in the chain, as the genesis always is; else the break. */
async function findPlace(db: Queryable, { seq, hash }: ChainPlace): Promise<ChainBreak | null> {
  if (seq === GENESIS.seq) return null;
  const [row] = await readAuditChain(db, seq - 1, 1);
  if (row?.seq !== seq) return { seq, id: null, what: 'missing' };
  return row.hash === hash ? null : { seq, id: row.id, what: 'altered' };
}

function follow(from: ChainPlace, rows: readonly AuditRow[]): ChainSlice {
  let head = from;
  for (const [index, row] of rows.entries()) {
    const broken = breakAt(row, head, rows[index + 1]);
    if (broken !== null) return { from, rows: rows.slice(0, index), head, broken };
    head = { seq: row.seq, hash: row.hash };
  }
  return { from, rows, head, broken: null };
}

function breakAt(row: AuditRow, { seq, hash }: ChainPlace, next: AuditRow | undefined): ChainBreak | null {
  if (row.seq !== seq + 1) return { seq: seq + 1, id: null, what: 'missing' };
  if (isIntact(row, hash)) return null;
  // IDs only ascend, so a lower ID after this row means that an event was moved.
  const isMoved = next !== undefined && next.id < row.id;
  return { seq: row.seq, id: row.id, what: isMoved ? 'out_of_order' : 'altered' };
}

function isIntact(row: AuditRow, previous: string): boolean {
  try {
    return hashOf(row, previous) === row.hash;
  } catch {
    return false;
  }
}

/** Descriptions of the kinds of breaks. */
const WHAT: Readonly<Record<ChainBreak['what'], (seq: number) => string>> = {
  altered: (seq) => `event ${seq} is not as it was written, or the one before it is another one`,
  missing: (seq) => `event ${seq} is missing`,
  out_of_order: (seq) => `event ${seq} is not at its place: another event stands there`,
};

export const brokenChain = ({ seq, id, what }: ChainBreak): AuditProblem => ({
  what,
  seq,
  id,
  detail: WHAT[what](seq),
});

/**
 * Returns the problem of a log whose end was cut off.
 * @param last `seq` of the current last event
 */
export const cutTail = (last: number, mark: Mark): AuditProblem => ({
  what: 'cut',
  seq: last + 1,
  id: null,
  detail:
    `the end of the log was cut off: it ends with event ${last}, and ${onDate(mark)} there was an event ${mark.seq}` +
    (mark.epoch > 1 ? `, in epoch ${mark.epoch} of the store` : ''),
});

/**
 * Returns the problem of a log that was rewritten.
 * @param signed `seq` of the last event that an earlier checkpoint confirms
 */
export const rewritten = (mark: Mark, signed: number): AuditProblem => ({
  what: 'rewritten',
  seq: mark.seq,
  id: null,
  detail:
    `event ${mark.seq} is not the one that was signed on ${toTimestamp(mark.time)}: the log was rewritten from some ` +
    `event after ${signed} on, or its end was cut off and other events took the place`,
});

export const forgedMark = (mark: Mark): AuditProblem => ({
  what: 'bad_signature',
  seq: mark.seq,
  id: null,
  detail:
    mark.kind === 'cut'
      ? `the log begins after event ${mark.seq}, and the note of its pruning is not signed with the audit key of this orchestrator`
      : `the checkpoint of event ${mark.seq} is not signed with the audit key of this orchestrator`,
});

export const foreignCheckpoint = (mark: Mark, publicKey: string): AuditProblem => ({
  what: 'bad_signature',
  seq: mark.seq,
  id: null,
  detail:
    mark.publicKey === publicKey
      ? 'the signature of the given checkpoint is wrong: its text was changed'
      : `the given checkpoint is signed with the key ${mark.publicKey}, and the audit key of this orchestrator is ${publicKey}: ` +
        'it is of another orchestrator, or the key was replaced (look for audit.key_changed in the log)',
});

const onDate = ({ time }: Mark): string => `on ${toTimestamp(time)}`;
