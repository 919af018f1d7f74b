/** Proves that a copied store has the audit chain of its original. */
import type { Database as Connection } from 'better-sqlite3';
import { Fault } from '../../src/kernel/fault.js';
import type { ChainPlace } from '../audit/chain-place.js';
import { brokenChain, verifyChain } from '../audit/verify-chain.js';
import { lastAuditRow } from '../core/audit-store.js';
import type { Queryable } from '../database/schema.js';

const BEGIN: ChainPlace = { seq: 0, hash: '' };

/** Returns the last event of an SQLite store. */
export const headOf = (connection: Connection): ChainPlace =>
  (connection.prepare('select seq, hash from audit_events order by seq desc limit 1').get() as
    | ChainPlace
    | undefined) ?? BEGIN;

/** Throws `data_dir_invalid` when the log of a copy does not end as that of its original. */
export async function requireSameHead(copy: Queryable, original: ChainPlace): Promise<void> {
  const head = (await lastAuditRow(copy)) ?? BEGIN;
  if (head.seq === original.seq && head.hash === original.hash) return;
  throw new Fault(
    'data_dir_invalid',
    `the audit log of the copy ends with event ${head.seq}, and that of the original with event ${original.seq}`,
    { hint: 'nothing was changed; try again' },
  );
}

/** Verifies every event. Throws `data_dir_invalid` for the first that is not intact. */
export async function requireIntactChain(db: Queryable, place: string): Promise<void> {
  const { broken } = await verifyChain(db);
  if (broken === null) return;
  throw new Fault('data_dir_invalid', `the audit log in ${place} is not whole: ${brokenChain(broken).detail}`, {
    hint: 'nothing was changed; orch audit verify says more; to copy a store that is whole, restore a backup first',
  });
}
