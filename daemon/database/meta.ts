/** Single values that belong to the store as a whole, such as the epoch. */

import { preparedQuery } from './prepared-query.js';
import type { Queryable } from './schema.js';
import { storedJson } from './stored-json.js';

/** Returns the value, or null when it was never set. */
export async function getMeta(db: Queryable, key: string): Promise<string | null> {
  const [row] = await valueByKey(db, key);
  return row?.value ?? null;
}

const valueByKey = preparedQuery((db, key: string) => db.selectFrom('meta').select('value').where('key', '=', key));

export async function setMeta(db: Queryable, key: string, value: string): Promise<void> {
  await putValue(db, key, value);
}

const putValue = preparedQuery((db, key: string, value: string) =>
  db
    .insertInto('meta')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value })),
);

/** Returns the value of a key that holds JSON, or undefined when it was never set. Throws a SyntaxError for other text. */
export async function getMetaJson<T>(db: Queryable, key: string): Promise<T | undefined> {
  const text = await getMeta(db, key);
  return text === null ? undefined : storedJson(text);
}

export async function setMetaJson<T>(db: Queryable, key: string, value: T): Promise<void> {
  await setMeta(db, key, JSON.stringify(value));
}

export async function deleteMeta(db: Queryable, key: string): Promise<void> {
  await db.deleteFrom('meta').where('key', '=', key).execute();
}
