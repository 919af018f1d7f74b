/** Queries of secrets and their API views; values are stored sealed. */
import type { Updateable } from 'kysely';
import type { Restriction, Secret } from '../../src/contract/secrets.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Party } from '../core/domain-event.js';
import { chunks } from '../database/batches.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { Queryable, Row, SecretTable } from '../database/schema.js';
import type { SealedRecord } from './keyring.js';

interface SecretValues {
  /** Agents that may have it; null for every approved agent. */
  readonly restriction: Restriction | null;
}

const columns = jsonColumns<SecretValues>({ restriction: true });

export type SecretRow = Decoded<Row<'secrets'>, SecretValues>;

/** Returns all secrets without their sealed values, ordered by name. */
export async function listSecrets(db: Queryable): Promise<readonly Omit<SecretRow, 'sealed'>[]> {
  const rows = await db
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
  return rows.map((row) => columns.decode(row));
}

export async function findSecret(db: Queryable, name: string): Promise<SecretRow | null> {
  const row = await db.selectFrom('secrets').selectAll().where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Returns the secrets with these names, in no order; skips unknown names. */
export async function findSecrets(db: Queryable, names: readonly string[]): Promise<readonly SecretRow[]> {
  const rows: SecretRow[] = [];
  for (const part of chunks(names, 500)) {
    const found = await db.selectFrom('secrets').selectAll().where('name', 'in', part).execute();
    rows.push(...found.map((row) => columns.decode(row)));
  }
  return rows;
}

export async function insertSecret(db: Queryable, row: SecretRow): Promise<void> {
  await db.insertInto('secrets').values(columns.encode(row)).execute();
}

export async function updateSecret(
  db: Queryable,
  secretId: string,
  change: Decoded<Omit<Updateable<SecretTable>, 'secret_id' | 'name'>, SecretValues>,
): Promise<void> {
  await db.updateTable('secrets').set(columns.encode(change)).where('secret_id', '=', secretId).execute();
}

export async function deleteSecret(db: Queryable, secretId: string): Promise<void> {
  await db.deleteFrom('secrets').where('secret_id', '=', secretId).execute();
}

/** Returns secrets that expired at or before `now` (Unix milliseconds) and have no expiry event yet. */
export async function expiredSecrets(
  db: Queryable,
  now: number,
): Promise<readonly Pick<SecretRow, 'secret_id' | 'name' | 'expires_at'>[]> {
  return db
    .selectFrom('secrets')
    .select(['secret_id', 'name', 'expires_at'])
    .where('expiry_told', '=', 0)
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .execute();
}

/** Returns a secret as a party of events. */
export const secretParty = (name: string): Party => ({ id: name, name, type: 'secret' });

/** Returns the record and version that a sealed value is bound to. */
export const sealedRecordOf = ({
  secret_id,
  name,
  row_version,
}: Pick<SecretRow, 'secret_id' | 'name' | 'row_version'>): SealedRecord => ({
  recordId: secret_id,
  name,
  version: row_version,
});

/** Returns a secret as the API shows it. */
export function secretView(row: Omit<SecretRow, 'sealed'>): Secret {
  const { restriction } = row;
  return {
    name: row.name,
    description: row.description,
    expires_at: row.expires_at === null ? null : toTimestamp(row.expires_at),
    ...(restriction === null ? {} : { restriction: { ...restriction, node_ids: restriction.node_ids ?? [] } }),
    created_at: toTimestamp(row.created_at),
    created_by: row.created_by,
    updated_at: toTimestamp(row.updated_at),
    updated_by: row.updated_by,
  };
}

export const secretNotFound = (name: string): Fault =>
  new Fault('secret_not_found', `there is no secret "${name}"`, { hint: 'see what there is: orch secrets list' });
