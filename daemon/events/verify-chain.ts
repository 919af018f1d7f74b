/** Walks the audit log and finds the first event that was altered, removed or put elsewhere. */
import { setImmediate } from 'node:timers/promises';
import { type AuditRow, readAuditChain } from '../store/audit.js';
import type { Queryable } from '../store/queryable.js';
import { GENESIS, hashOf } from './audit-log.js';

/** Rows between which other work gets a chance. */
const SLICE = 500;

/** A place in the chain that was noted earlier, such as in a checkpoint. */
export interface ChainPlace {
  readonly seq: number;
  readonly hash: string;
}

export interface ChainReport {
  /** Events that are as they were written. */
  readonly verified: number;
  /** The last of them. */
  readonly head: ChainPlace;
  /** The first event that is not; null when all are. `altered` may also mean that the one before it was. */
  readonly broken: { readonly seq: number; readonly id: string | null; readonly what: 'altered' | 'missing' } | null;
}

/**
 * Checks from the first event, or from the place that `since` names, which has to be in the chain: that is how a chain
 * whose newest events were cut off is found out.
 */
export async function verifyChain(db: Queryable, since: ChainPlace = GENESIS): Promise<ChainReport> {
  let report: ChainReport = { verified: 0, head: since, broken: await findPlace(db, since) };
  while (report.broken === null) {
    const rows = await readAuditChain(db, report.head.seq, SLICE);
    report = rows.reduce(follow, report);
    if (rows.length < SLICE) break;
    await setImmediate();
  }
  return report;
}

/** Null when the place is in the chain, as the start is of every chain. */
async function findPlace(db: Queryable, { seq, hash }: ChainPlace): Promise<ChainReport['broken']> {
  if (seq === GENESIS.seq) return null;
  const [row] = await readAuditChain(db, seq - 1, 1);
  if (row?.seq !== seq) return { seq, id: null, what: 'missing' };
  return row.hash === hash ? null : { seq, id: row.id, what: 'altered' };
}

function follow(report: ChainReport, row: AuditRow): ChainReport {
  if (report.broken) return report;
  const { head, verified } = report;
  if (row.seq !== head.seq + 1) return { ...report, broken: { seq: head.seq + 1, id: null, what: 'missing' } };
  if (!isIntact(row, head.hash)) return { ...report, broken: { seq: row.seq, id: row.id, what: 'altered' } };
  return { verified: verified + 1, head: { seq: row.seq, hash: row.hash }, broken: null };
}

function isIntact(row: AuditRow, previous: string): boolean {
  try {
    return hashOf(row, previous) === row.hash;
  } catch {
    return false;
  }
}
