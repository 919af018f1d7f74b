/** Ends in the audit log of sessions that an earlier orchestrator had open when it was killed. */
import { type AuditRow, lastAuditSeq, listAuditWindow, metadataOf } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import { lostEvent } from './forward-facts.js';

const EVENTS = ['forward.opened', 'forward.closed', 'copy.opened', 'copy.closed'] as const;
/** Key of the sequence number up to which every session has its end. */
const ENDED_UP_TO = 'forward.ended_up_to';
/** Events of the log that are looked through at a time. */
const STEP = 10_000;

/**
 * Finds the missing ends, and returns the function that writes them. Must run before this orchestrator opens a session; the ends may
 * be written later.
 */
export async function findUnseenEnds({ db, uow }: Pick<Core, 'db' | 'uow'>): Promise<() => Promise<void>> {
  const last = (await lastAuditSeq(db)) ?? 0;
  const open = new Map<unknown, AuditRow>();
  for (let after = (await getMetaJson<number>(db, ENDED_UP_TO)) ?? 0; after < last; after += STEP) {
    for (const row of await listAuditWindow(db, { eventTypes: EVENTS }, { after, to: Math.min(after + STEP, last) })) {
      const { session_id: id } = metadataOf(row);
      if (row.event_type.endsWith('.opened')) open.set(id, row);
      else open.delete(id);
    }
  }
  return () =>
    uow.write(async (tx, emit) => {
      for (const row of open.values()) emit(lostEvent(row));
      await setMetaJson(tx, ENDED_UP_TO, last);
    });
}
