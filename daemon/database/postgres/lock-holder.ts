/** The advisory lock that keeps other orchestrators out of a store. */
import type { RunStatement } from './postgres-dialect.js';

/** Number of the lock; it is taken for each database apart. */
export const STORE_LOCK = 0x6f726368;

export interface LockHolder {
  /** Address and beginning of the session, for a message; '' for a session of another role, of which the server hides them. */
  readonly place: string;
  readonly role: string;
  /** True for the role of this orchestrator. */
  readonly isOwnRole: boolean;
  /** Process of the server that serves the session. */
  readonly pid: number;
}

/** Returns who holds the lock; null when it is free. */
export async function lockHolder(run: RunStatement): Promise<LockHolder | null> {
  const { rows } = await run(
    `select a.client_addr::text as address, a.backend_start::text as since, a.usename::text as role, l.pid,
       a.usename = current_user as own
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.objid = ${STORE_LOCK} and l.granted
       and l.database = (select oid from pg_database where datname = current_database())`,
    [],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const place = row.since === null ? '' : `${row.address ?? 'this machine'}, since ${row.since}`;
  return { place, role: String(row.role), isOwnRole: row.own === true, pid: Number(row.pid) };
}
