/** Terminal sessions and commands. Their IDs sort by the time at which they were opened; times are milliseconds. */
import type { Updateable } from 'kysely';
import type { NewRow, Queryable, Row, TerminalSessionTable } from '../database/schema.js';

export type TerminalRow = Row<'terminal_sessions'>;

export async function insertTerminal(db: Queryable, row: NewRow<'terminal_sessions'>): Promise<void> {
  await db.insertInto('terminal_sessions').values(row).execute();
}

export async function findTerminal(db: Queryable, sessionId: string): Promise<TerminalRow | null> {
  const query = db.selectFrom('terminal_sessions').selectAll().where('session_id', '=', sessionId);
  return (await query.executeTakeFirst()) ?? null;
}

/** Which of these IDs there are; a thousand at most. */
export async function knownTerminals(db: Queryable, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom('terminal_sessions').select('session_id').where('session_id', 'in', ids).execute();
  return new Set(rows.map(({ session_id }) => session_id));
}

export type TerminalChange = Omit<Updateable<TerminalSessionTable>, 'session_id'>;

export async function updateTerminal(db: Queryable, sessionId: string, change: TerminalChange): Promise<void> {
  await db.updateTable('terminal_sessions').set(change).where('session_id', '=', sessionId).execute();
}

export interface TerminalFilter {
  readonly status?: TerminalRow['status'] | null | undefined;
  readonly node?: string | null | undefined;
  /** Name or ID of who opened it. */
  readonly operator?: string | null | undefined;
  readonly kind?: TerminalRow['kind'] | null | undefined;
}

export interface TerminalPage extends TerminalFilter {
  /** Letters and digits with which the ID begins. */
  readonly prefix?: string | null | undefined;
  readonly limit: number;
  readonly offset: number;
}

/** The newest first. */
export async function listTerminals(db: Queryable, page: TerminalPage): Promise<readonly TerminalRow[]> {
  const { status, node, operator, kind, prefix } = page;
  let query = db.selectFrom('terminal_sessions').selectAll();
  if (status != null) query = query.where('status', '=', status);
  if (node != null) query = query.where('node_id', '=', node);
  if (kind != null) query = query.where('kind', '=', kind);
  // As a range, which the primary key answers.
  if (prefix != null) query = query.where('session_id', '>=', prefix).where('session_id', '<', `${prefix}~`);
  if (operator != null) {
    query = query.where((is) => is.or([is('operator_id', '=', operator), is('operator', '=', operator)]));
  }
  return query.orderBy('session_id', 'desc').limit(page.limit).offset(page.offset).execute();
}

/** Those that have not ended, the oldest first. */
export async function listActiveTerminals(db: Queryable): Promise<readonly TerminalRow[]> {
  const query = db.selectFrom('terminal_sessions').selectAll().where('status', '=', 'active');
  return query.orderBy('session_id').execute();
}

export interface RecordedFilter extends Pick<TerminalFilter, 'node' | 'operator'> {
  /** Opened at that time or later. */
  readonly since: number | null;
  /** Older than the session with this ID; null begins with the newest. */
  readonly olderThan: string | null;
  readonly limit: number;
}

/** Those that have a recording, whole or not, the newest first. */
export async function listRecordedTerminals(db: Queryable, filter: RecordedFilter): Promise<readonly TerminalRow[]> {
  const { node, operator, since, olderThan, limit } = filter;
  let query = db.selectFrom('terminal_sessions').selectAll();
  query = query.where('transcript', 'is not', null).where('recording', 'not in', ['off', 'pruned']);
  if (node != null) query = query.where('node_id', '=', node);
  if (operator != null) {
    query = query.where((is) => is.or([is('operator_id', '=', operator), is('operator', '=', operator)]));
  }
  if (since !== null) query = query.where('opened_at', '>=', since);
  if (olderThan !== null) query = query.where('session_id', '<', olderThan);
  return query.orderBy('session_id', 'desc').limit(limit).execute();
}

/** Those that ended before that time and have a recording, the oldest first. */
export async function listOldRecordings(db: Queryable, before: number, limit: number): Promise<readonly TerminalRow[]> {
  const query = db.selectFrom('terminal_sessions').selectAll().where('status', '!=', 'active');
  const old = query.where('closed_at', '<', before).where('transcript', 'is not', null);
  return old.where('recording', 'not in', ['off', 'pruned']).orderBy('session_id').limit(limit).execute();
}
