/** Leads from a Kysely object to the store that it was opened on. */
import type { DialectAdapter, Transaction } from 'kysely';
import type { Database, Queryable } from './schema.js';

/** Database engines that can hold a store. */
export type StoreKind = 'sqlite' | 'postgres';

export interface TransactOptions<T> {
  readonly lastEventIdOf: (result: T) => string | null;
  readonly onDoubt: () => void;
}

/** Runs what Kysely's own interfaces do not express. */
export interface StoreDriver {
  readonly kind: StoreKind;
  /** Runs a compiled statement on a database or in its open transaction, and returns its rows. */
  run<R>(db: Queryable, sql: string, parameters: readonly unknown[]): Promise<readonly R[]>;
  /**
   * Runs `work` in the only write transaction and commits it. Returns the result of `work` once the commit is durable; an
   * exception of `work` rolls back. `lastEventIdOf` names the last audit event that the transaction adds, or null: a store
   * that can lose the answer of a commit looks for it, which may take as long as an outage: then it calls `onDoubt` first, and
   * refuses other transactions meanwhile. Throws `store_unavailable` when nothing was written.
   */
  transact<T>(work: (tx: Transaction<Database>) => Promise<T>, options: TransactOptions<T>): Promise<T>;
}

/** Adapter of a dialect that can be asked for its store. */
export interface StoreAdapter extends DialectAdapter {
  readonly store: StoreDriver;
}

/** Returns the driver of the store that `db` belongs to. */
export function storeDriverOf(db: Pick<Queryable, 'getExecutor'>): StoreDriver {
  const { adapter } = db.getExecutor();
  if (!('store' in adapter)) throw new Error('the store was opened with another dialect');
  return (adapter as StoreAdapter).store;
}

/** Returns the engine that holds the store, for the few statements that differ between them. */
export const storeKindOf = (db: Pick<Queryable, 'getExecutor'>): StoreKind => storeDriverOf(db).kind;

/** Runs a statement that is compiled already, and returns its rows. */
export const runDirectly = <R>(db: Queryable, sql: string, parameters: readonly unknown[]): Promise<readonly R[]> =>
  storeDriverOf(db).run<R>(db, sql, parameters);
