/**
 * Queries that are built and compiled once, for paths that every API request or every connection of an agent takes:
 * the benchmark row of the API misses its goal without them. Kysely spends several times as long on building and
 * compiling a query by primary key as SQLite needs to run it.
 */
import type { Compilable, CompiledQuery } from 'kysely';
import type { Queryable } from './schema.js';
import { runDirectly } from './sqlite-dialect.js';

/** Stands for an argument while a query is compiled. */
class Argument {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/**
 * Returns a function that runs the query of `build` and returns its rows. `build` is called once, with stand-ins for
 * the arguments, so it may only use them as values of the query.
 */
export function preparedQuery<A extends readonly unknown[], R>(
  build: (db: Queryable, ...args: A) => Compilable<R>,
): (db: Queryable, ...args: A) => Promise<readonly R[]> {
  let compiled: CompiledQuery<R> | undefined;
  return (db, ...args) => {
    compiled ??= build(db, ...(args.map((_, index) => new Argument(index)) as unknown as A)).compile();
    const parameters = compiled.parameters.map((value) => (value instanceof Argument ? args[value.index] : value));
    return runDirectly<R>(db, compiled.sql, parameters);
  };
}
