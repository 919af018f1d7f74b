/** Queries over every table with sealed values: finds rows sealed with another key and stores resealed values. */
import type { Queryable, Row } from '../database/schema.js';

/** Returns up to `limit` secrets sealed with a key other than `keyId`. */
export async function secretsOfOtherKeys(
  db: Queryable,
  keyId: string,
  limit: number,
): Promise<readonly Row<'secrets'>[]> {
  return db.selectFrom('secrets').selectAll().where('key_id', '!=', keyId).orderBy('secret_id').limit(limit).execute();
}

/** Returns up to `limit` channels whose configuration is sealed with a key other than `keyId`. */
export async function channelsOfOtherKeys(
  db: Queryable,
  keyId: string,
  limit: number,
): Promise<readonly Row<'channels'>[]> {
  return db
    .selectFrom('channels')
    .selectAll()
    .where('key_id', '!=', keyId)
    .orderBy('channel_id')
    .limit(limit)
    .execute();
}

/** Replaces the sealed configuration of a channel. */
export async function resealChannel(
  db: Queryable,
  channelId: string,
  sealed: { readonly sealed: string; readonly key_id: string },
): Promise<void> {
  await db.updateTable('channels').set(sealed).where('channel_id', '=', channelId).execute();
}

/** Primary key of a script's output: its operation and its position within the operation. */
export type OperationOutputKey = Pick<Row<'operation_outputs'>, 'operation_id' | 'position'>;

/** Returns the next page, after the cursor `after`, of outputs sealed with a key other than `keyId`. */
export async function outputsOfOtherKeys(
  db: Queryable,
  keyId: string,
  page: { readonly after: OperationOutputKey | null; readonly limit: number },
): Promise<readonly Row<'operation_outputs'>[]> {
  const { after, limit } = page;
  let query = db.selectFrom('operation_outputs').selectAll().where('key_id', 'is not', null);
  query = query.where('key_id', '!=', keyId).orderBy('operation_id').orderBy('position').limit(limit);
  if (after !== null) {
    query = query.where(({ eb, and, or }) =>
      or([
        eb('operation_id', '>', after.operation_id),
        and([eb('operation_id', '=', after.operation_id), eb('position', '>', after.position)]),
      ]),
    );
  }
  return query.execute();
}

/** Replaces the sealed text of an output. */
export async function resealOperationOutput(
  db: Queryable,
  { operation_id, position }: OperationOutputKey,
  sealed: { readonly output: string; readonly key_id: string },
): Promise<void> {
  await db
    .updateTable('operation_outputs')
    .set(sealed)
    .where('operation_id', '=', operation_id)
    .where('position', '=', position)
    .execute();
}

/** Returns true when the store holds no sealed value that would be lost with the key. */
export const isWithoutSecrets = async (db: Queryable): Promise<boolean> =>
  (await countRows(db, 'secrets')) === 0 && (await countRows(db, 'channels')) === 0;

async function countRows(db: Queryable, table: 'secrets' | 'channels'): Promise<number> {
  const { count } = await db
    .selectFrom(table)
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}
