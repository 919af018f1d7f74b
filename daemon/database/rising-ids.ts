/** IDs above every ID in the store, whatever the clock says: their order is the order in which things happened. */
import { decodeTime, encodeTime } from 'ulid';
import type { NewId } from '../../src/kernel/ids.js';
import type { Queryable } from './schema.js';

/** Characters of a ULID that hold its time. */
const TIME_LENGTH = 10;

/** Returns an id like `id`, but above `last`: it takes a later millisecond, never the random part of `last`. */
export function idAbove(last: string, id: string): string {
  if (id > last) return id;
  return encodeTime(decodeTime(last) + 1) + id.slice(TIME_LENGTH);
}

/**
 * Makes ids that rise from the newest one in the store on. A clock that is behind the store makes no lower ids, and a store
 * that was put back gets no id again that it gave before.
 */
export async function risingIds(db: Queryable, newId: NewId): Promise<NewId> {
  let last = await newestId(db);
  return () => {
    last = last === null ? newId() : idAbove(last, newId());
    return last;
  };
}

/** The highest id of the tables whose ids say what came first, null in a new store. */
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
