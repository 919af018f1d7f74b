/** Drift records. Rows as they are stored: every `*_json` column is for the caller to parse. */
import type { Queryable } from './queryable.js';
import type { DriftTable, NewRow, Row } from './schema.js';

export type DriftRow = Row<'drift_records'>;
/** A record without its resources. */
export type DriftHead = Omit<DriftRow, 'resources_json'>;

const HEAD = [
  'drift_id',
  'node_id',
  'status',
  'trigger',
  'requested_by',
  'operation_id',
  'started_at',
  'finished_at',
  'has_changes',
  'summary_json',
  'error_json',
] as const satisfies readonly (keyof DriftTable)[];

export async function insertDrift(db: Queryable, record: NewRow<'drift_records'>): Promise<void> {
  await db.insertInto('drift_records').values(record).execute();
}

export async function findDrift(db: Queryable, driftId: string): Promise<DriftRow | null> {
  return (await db.selectFrom('drift_records').selectAll().where('drift_id', '=', driftId).executeTakeFirst()) ?? null;
}

export interface DriftFilter {
  readonly nodeId?: string | undefined;
  /** Leaves out what started before this time in ms: it belongs to an agent that was removed. */
  readonly since?: number | undefined;
  readonly status?: string | null | undefined;
}

/** Newest first, without the resources. */
export async function listDrift(
  db: Queryable,
  page: DriftFilter & { readonly limit: number },
): Promise<readonly DriftHead[]> {
  return newest(db, page).select(HEAD).limit(page.limit).execute();
}

/** The newest record of an agent, or null. */
export async function latestDrift(
  db: Queryable,
  filter: DriftFilter & { readonly nodeId: string },
): Promise<DriftRow | null> {
  return (await newest(db, filter).selectAll().limit(1).executeTakeFirst()) ?? null;
}

/** What the newest check of an agent that came to a result found; null when none did. */
export async function latestDriftState(
  db: Queryable,
  filter: { readonly nodeId: string; readonly since: number },
): Promise<'drifted' | 'in_sync' | null> {
  const latest = await newest(db, filter)
    .select('status')
    .where('status', 'in', ['drifted', 'in_sync'])
    .limit(1)
    .executeTakeFirst();
  if (latest === undefined) return null;
  return latest.status === 'drifted' ? 'drifted' : 'in_sync';
}

function newest(db: Queryable, { nodeId, since, status }: DriftFilter) {
  let query = db.selectFrom('drift_records').orderBy('drift_id', 'desc');
  if (nodeId !== undefined) query = query.where('node_id', '=', nodeId);
  if (since !== undefined) query = query.where('started_at', '>=', since);
  if (status) query = query.where('status', '=', status);
  return query;
}
