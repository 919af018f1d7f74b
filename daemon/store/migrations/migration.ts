/** What a migration is: one step from a schema to the next, never changed once it was released. */
import type { Kysely } from 'kysely';

export interface Migration {
  /** Of the schema it leads to; steps of 1. */
  readonly version: number;
  /** Runs in a transaction without foreign key enforcement; the keys are checked before it commits. */
  up(db: Kysely<unknown>): Promise<void>;
}
