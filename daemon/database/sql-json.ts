/** JSON in statements, as SQLite and PostgreSQL write it. Both return JSON text. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from './schema.js';
import { storeKindOf } from './store-driver.js';

type Sql = RawBuilder<unknown>;

/** Returns the expression of a JSON object with these members. The values are expressions, JSON ones of `jsonValue`. */
export function jsonObject(db: Queryable, members: Readonly<Record<string, Sql>>): RawBuilder<string> {
  const list = sql.join(Object.entries(members).flatMap(([name, value]) => [sql.lit(name), value]));
  return storeKindOf(db) === 'sqlite'
    ? sql<string>`json_object(${list})`
    : sql<string>`json_build_object(${list})::text`;
}

/** Returns a member whose value is the JSON text of an expression. */
export const jsonValue = (db: Queryable, text: Sql): Sql =>
  // Around a subquery as well: from release 3.54 on SQLite takes the JSON of a subquery for a plain text.
  storeKindOf(db) === 'sqlite' ? sql`json(${text})` : sql`(${text})::json`;

/** Returns the expression that gathers rows of a key and a value into the text of one JSON object; `{}` or null for none. */
export const jsonGroup = (db: Queryable, key: string, value: string): RawBuilder<string | null> =>
  storeKindOf(db) === 'sqlite'
    ? sql<string>`json_group_object(${sql.ref(key)}, ${sql.ref(value)})`
    : sql<string>`json_object_agg(${sql.ref(key)}, ${sql.ref(value)})::text`;

/** Returns the expression of a text member of a JSON text; null when the text or the member is null. */
export const jsonMember = (db: Queryable, column: string, name: string): RawBuilder<string | null> =>
  storeKindOf(db) === 'sqlite'
    ? sql<string | null>`json_extract(${sql.ref(column)}, ${sql.lit(`$.${name}`)})`
    : sql<string | null>`(${sql.ref(column)}::json ->> ${sql.lit(name)})`;

/** Returns the subquery of the strings of a JSON array, which is one parameter however long the list is. */
export const jsonStrings = (db: Queryable, array: string): RawBuilder<string> =>
  storeKindOf(db) === 'sqlite'
    ? sql<string>`(select value from json_each(${array}))`
    : sql<string>`(select value from json_array_elements_text(${array}::json))`;
