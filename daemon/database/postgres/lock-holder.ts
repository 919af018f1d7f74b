/** The advisory lock that keeps other orchestrators out of a store. */
import type { RunStatement } from './postgres-dialect.js';

/** Number of the lock; it is taken for each database apart. */
export const STORE_LOCK = 0x6f726368;

/** Returns who holds the lock, for a message; null when it is free. */
export async function lockHolder(run: RunStatement): Promise<string | null> {
  const { rows } = await run(
    `select a.client_addr::text as address, a.backend_start::text as since from pg_locks l
     join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.objid = ${STORE_LOCK} and l.granted
       and l.database = (select oid from pg_database where datname = current_database())`,
    [],
  );
  const [row] = rows;
  return row === undefined ? null : `${row.address ?? 'this machine'}, since ${row.since}`;
}
