/** Stores value sets. */
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

export async function deleteValueSet(db: Queryable, name: string): Promise<void> {
  await db.deleteFrom('value_sets').where('name', '=', name).execute();
}
