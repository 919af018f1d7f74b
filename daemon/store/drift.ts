/** Drift records. Rows as they are stored: every `*_json` column is for the caller to parse. */
import { encodeTime } from 'ulid';
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

/**
 * Deletes at most `limit` records that were made before a time in ms, the oldest first; returns how many. Of each
 * agent that is still there the newest one with a result stays, and what came after: it says what was last found out.
 */
export async function deleteDriftBefore(db: Queryable, time: number, limit: number): Promise<number> {
  const old = db
    .selectFrom('drift_records as old')
    .select('old.drift_id')
    // Drift IDs are ULIDs, so their order is that of time.
    .where('old.drift_id', '<', encodeTime(time))
    .where(({ or, not, exists, selectFrom }) =>
      or([
        not(exists(selectFrom('agents').select('agents.node_id').whereRef('agents.node_id', '=', 'old.node_id'))),
        exists(
          selectFrom('drift_records as newer')
            .select('newer.drift_id')
            .whereRef('newer.node_id', '=', 'old.node_id')
            .whereRef('newer.drift_id', '>', 'old.drift_id')
            .where('newer.status', 'in', ['drifted', 'in_sync']),
        ),
      ]),
    )
    .orderBy('old.drift_id')
    .limit(limit);
  const result = await db.deleteFrom('drift_records').where('drift_id', 'in', old).executeTakeFirst();
  return Number(result.numDeletedRows);
}

function newest(db: Queryable, { nodeId, since, status }: DriftFilter) {
  let query = db.selectFrom('drift_records').orderBy('drift_id', 'desc');
  if (nodeId !== undefined) query = query.where('node_id', '=', nodeId);
  if (since !== undefined) query = query.where('started_at', '>=', since);
  if (status) query = query.where('status', '=', status);
  return query;
}
