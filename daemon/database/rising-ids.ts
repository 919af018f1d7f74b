/** IDs above every ID in the store, whatever the clock says, so that their order is the order of events. */
import { decodeTime, encodeTime } from 'ulid';
import type { NewId } from '../../src/kernel/ids.js';
import type { Queryable } from './schema.js';

/** Number of characters of a ULID that hold its time. */
const TIME_LENGTH = 10;

/**
 * Returns `id` when it is above `last`, else a variant in the following millisecond. The random part of `last` is
 * never reused.
 */
export function idAbove(last: string, id: string): string {
  if (id > last) return id;
  return encodeTime(decodeTime(last) + 1) + id.slice(TIME_LENGTH);
}

/**
 * Creates a source of IDs that increase from the newest one in the store. A clock behind the store yields no lower
 * IDs, and a restored store never reissues an ID that it gave before.
 */
export async function risingIds(db: Queryable, newId: NewId): Promise<NewId> {
  let last = await newestId(db);
  return () => {
    last = last === null ? newId() : idAbove(last, newId());
    return last;
  };
}

/** Returns the highest ID of the tables whose IDs define an order, or null in a new store. */
async function newestId(db: Queryable): Promise<string | null> {
  const rows = await Promise.all([
    db
      .selectFrom('audit_events')
      .select((of) => of.fn.max('id').as('id'))
      .executeTakeFirst(),
    db
      .selectFrom('operations')
      .select((of) => of.fn.max('operation_id').as('id'))
      .executeTakeFirst(),
    db
      .selectFrom('drift_records')
      .select((of) => of.fn.max('drift_id').as('id'))
      .executeTakeFirst(),
    db
      .selectFrom('terminal_sessions')
      .select((of) => of.fn.max('session_id').as('id'))
      .executeTakeFirst(),
    db
      .selectFrom('agents')
      .select((of) => of.fn.max('created_id').as('id'))
      .executeTakeFirst(),
  ]);
  const ids = rows.flatMap((row) => (row?.id ? [String(row.id)] : []));
  return ids.sort().at(-1) ?? null;
}
