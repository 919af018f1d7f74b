/** Stores value sets and their revisions. */
import type { ValueSet } from '../../../src/language/inputs/value-set.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import { setMeta } from '../../database/meta.js';
import type { Queryable, Row } from '../../database/schema.js';

interface ValueSetColumns {
  readonly set: ValueSet;
}

const columns = jsonColumns<ValueSetColumns>({ set: true });

export type ValueSetRow = Decoded<Row<'value_sets'>, ValueSetColumns>;

/** Meta key of the revision of all value sets, which changes with every change of one. */
export const VALUES_REVISION = 'values.revision';

/** Sets the revision. Every transaction that changes a value set must call it with a text that was never used before. */
export const setValuesRevision = (db: Queryable, revision: string): Promise<void> =>
  setMeta(db, VALUES_REVISION, revision);

/** Returns all value sets, by name. */
export async function listValueSets(db: Queryable): Promise<readonly ValueSetRow[]> {
  const rows = await db.selectFrom('value_sets').selectAll().orderBy('name').execute();
  return rows.map((row) => columns.decode(row));
}

export async function findValueSet(db: Queryable, name: string): Promise<ValueSetRow | null> {
  const row = await db.selectFrom('value_sets').selectAll().where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Stores a value set in the place of another of that name. */
export async function putValueSet(db: Queryable, row: ValueSetRow): Promise<void> {
  const { name, ...rest } = columns.encode(row);
  await db
    .insertInto('value_sets')
    .values({ name, ...rest })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(rest))
    .execute();
}

/** Deletes a value set; its revisions stay. */
export async function deleteValueSet(db: Queryable, name: string): Promise<void> {
  await db.deleteFrom('value_sets').where('name', '=', name).execute();
}

export type ValueSetRevision = Row<'value_set_revisions'>;

/** Number of revisions kept per value set. */
const KEPT_REVISIONS = 50;

/** Returns the number of the next revision of a value set, which goes on after a removal. */
export async function nextRevision(db: Queryable, name: string): Promise<number> {
  const query = db.selectFrom('value_set_revisions').select('revision').where('name', '=', name);
  const newest = await query.orderBy('revision', 'desc').limit(1).executeTakeFirst();
  return (newest?.revision ?? 0) + 1;
}

/** Stores a revision, and deletes all but the newest ones. */
export async function addValueSetRevision(db: Queryable, revision: ValueSetRevision): Promise<void> {
  await db.insertInto('value_set_revisions').values(revision).execute();
  await db
    .deleteFrom('value_set_revisions')
    .where('name', '=', revision.name)
    .where('revision', '<=', revision.revision - KEPT_REVISIONS)
    .execute();
}

/** Returns a revision; null if it is not kept. */
export async function findValueSetRevision(
  db: Queryable,
  name: string,
  revision: number,
): Promise<ValueSetRevision | null> {
  const query = db.selectFrom('value_set_revisions').selectAll().where('name', '=', name);
  return (await query.where('revision', '=', revision).executeTakeFirst()) ?? null;
}

/** Returns the kept revisions, newest first, without their texts. */
export async function listValueSetRevisions(
  db: Queryable,
  name: string,
): Promise<readonly Omit<ValueSetRevision, 'content'>[]> {
  return db
    .selectFrom('value_set_revisions')
    .select(['name', 'revision', 'sha256', 'uploaded_at', 'uploaded_by'])
    .where('name', '=', name)
    .orderBy('revision', 'desc')
    .execute();
}
