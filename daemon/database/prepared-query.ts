/**
 * Queries that are built and compiled once, for paths that every API request or every connection of an agent takes:
 * the benchmark row of the API misses its goal without them. Kysely spends several times as long on building and
 * compiling a query by primary key as SQLite needs to run it.
 */
import type { Compilable, CompiledQuery } from 'kysely';
import type { Queryable } from './schema.js';
import { type StoreKind, storeDriverOf } from './store-driver.js';

/** Stands for an argument while a query is compiled. */
class Argument {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/**
 * Returns a function that runs the query of `build` and returns its rows. `build` is called once for each kind of store, with stand-ins
 * for the arguments, so it may only use them as values of the query.
 */
export function preparedQuery<A extends readonly unknown[], R>(
  build: (db: Queryable, ...args: A) => Compilable<R>,
): (db: Queryable, ...args: A) => Promise<readonly R[]> {
  const compiled: Partial<Record<StoreKind, CompiledQuery<R>>> = {};
  return (db, ...args) => {
    const store = storeDriverOf(db);
    compiled[store.kind] ??= build(db, ...(args.map((_, index) => new Argument(index)) as unknown as A)).compile();
    const { sql, parameters } = compiled[store.kind] as CompiledQuery<R>;
    const values = parameters.map((value) => (value instanceof Argument ? args[value.index] : value));
    return store.run<R>(db, sql, values);
  };
}
