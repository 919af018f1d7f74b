/** What was answered to requests with an `Idempotency-Key`. Rows as they are stored: `body_json` is for the caller to parse. */
import type { Queryable } from './queryable.js';
import type { Row } from './schema.js';

export type IdempotencyRow = Row<'idempotency_keys'>;

/** One operator's key. */
export type IdempotencyKey = Pick<IdempotencyRow, 'operator_id' | 'key'>;

export interface Reservation extends IdempotencyKey {
  readonly route: string;
  readonly request_hash: string;
  readonly created_at: number;
}

/**
 * Takes a key for a request that begins. Returns null when it was free, else the request that has it, with its answer or
 * (`status` null) still under way. What was made before `validSince`, in ms, does not count any more.
 */
export async function reserveIdempotencyKey(
  db: Queryable,
  reservation: Reservation,
  validSince: number,
): Promise<IdempotencyRow | null> {
  const taken = await findIdempotencyKey(db, reservation);
  if (taken && taken.created_at >= validSince) return taken;
  if (taken) await releaseIdempotencyKey(db, reservation);
  await db
    .insertInto('idempotency_keys')
    .values({ ...reservation, status: null, body_json: null })
    .execute();
  return null;
}

export async function findIdempotencyKey(db: Queryable, key: IdempotencyKey): Promise<IdempotencyRow | null> {
  const query = db.selectFrom('idempotency_keys').selectAll().where('operator_id', '=', key.operator_id);
  return (await query.where('key', '=', key.key).executeTakeFirst()) ?? null;
}

/** Keeps the answer of the request that reserved the key. */
export async function completeIdempotencyKey(
  db: Queryable,
  key: IdempotencyKey,
  answer: Pick<IdempotencyRow, 'status' | 'body_json'>,
): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set({ status: answer.status, body_json: answer.body_json })
    .where('operator_id', '=', key.operator_id)
    .where('key', '=', key.key)
    .execute();
}

/** Frees a key whose request failed and may be tried again. */
export async function releaseIdempotencyKey(db: Queryable, key: IdempotencyKey): Promise<void> {
  const query = db.deleteFrom('idempotency_keys').where('operator_id', '=', key.operator_id);
  await query.where('key', '=', key.key).execute();
}

/** Drops keys made before that time in ms; returns how many there were. */
export async function deleteIdempotencyKeysBefore(db: Queryable, time: number): Promise<number> {
  const result = await db.deleteFrom('idempotency_keys').where('created_at', '<', time).executeTakeFirst();
  return Number(result.numDeletedRows);
}
