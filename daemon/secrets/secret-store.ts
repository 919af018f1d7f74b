/** Secrets, their values sealed: this room neither seals nor opens. */
import type { Updateable } from 'kysely';
import { chunks } from '../database/batches.js';
import type { NewRow, Queryable, Row, SecretTable } from '../database/schema.js';

export type SecretRow = Row<'secrets'>;

/** By name. */
export async function listSecrets(db: Queryable): Promise<readonly Omit<SecretRow, 'sealed'>[]> {
  return db
    .selectFrom('secrets')
    .select([
      'secret_id',
      'name',
      'key_id',
      'row_version',
      'description',
      'expires_at',
      'expiry_told',
      'restriction_json',
      'created_at',
      'created_by',
      'updated_at',
      'updated_by',
    ])
    .orderBy('name')
    .execute();
}

export async function findSecret(db: Queryable, name: string): Promise<SecretRow | null> {
  return (await db.selectFrom('secrets').selectAll().where('name', '=', name).executeTakeFirst()) ?? null;
}

/** In no order; a name that is not there is left out. */
export async function findSecrets(db: Queryable, names: readonly string[]): Promise<readonly SecretRow[]> {
  const rows: SecretRow[] = [];
  for (const part of chunks(names, 500)) {
    rows.push(...(await db.selectFrom('secrets').selectAll().where('name', 'in', part).execute()));
  }
  return rows;
}

export async function insertSecret(db: Queryable, row: NewRow<'secrets'>): Promise<void> {
  await db.insertInto('secrets').values(row).execute();
}

export async function updateSecret(
  db: Queryable,
  secretId: string,
  change: Omit<Updateable<SecretTable>, 'secret_id' | 'name'>,
): Promise<void> {
  await db.updateTable('secrets').set(change).where('secret_id', '=', secretId).execute();
}

export async function deleteSecret(db: Queryable, secretId: string): Promise<void> {
  await db.deleteFrom('secrets').where('secret_id', '=', secretId).execute();
}

/** Secrets that have expired by then, in Unix milliseconds, without anybody having been told. */
export async function expiredSecrets(db: Queryable, now: number): Promise<readonly SecretRow[]> {
  return db
    .selectFrom('secrets')
    .selectAll()
    .where('expiry_told', '=', 0)
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .execute();
}
