/** What queries run on: the database itself, or the transaction of a unit of work (which is a Kysely too). */
import type { Kysely } from 'kysely';
import type { Database } from './schema.js';

export type Queryable = Kysely<Database>;
