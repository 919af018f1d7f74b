/** IDs above every ID in the store. */
import type { NewId } from '../../src/kernel/ids.js';
import { idAbove } from '../../src/kernel/rising-ids.js';
import type { Queryable } from './schema.js';

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
