/**
 * Kysely dialect over PostgreSQL. Statements outside of write transactions run in any session that reads. Write transactions run
 * one after another in the session that holds the lock of the store.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  type QueryResult,
  type Transaction,
} from 'kysely';
import type { QueryResult as PgResult } from 'pg';
import type { Database, Queryable } from '../schema.js';
import type { StoreAdapter, StoreDriver } from '../store-driver.js';
import { StoreCompiler } from './postgres-compiler.js';

/** Runs a statement and returns the library's result. */
export type RunStatement = (text: string, values: readonly unknown[]) => Promise<PgResult>;

/** Where the statements of a database run. */
export interface Sessions {
  /** Lends a session until the returned function is called. Without a session of its own, each statement takes one. */
  acquire(): Promise<{ readonly run: RunStatement; readonly release: () => void }>;
  /** Statements around a transaction of this database. */
  readonly begin: string;
  /** Commits in the way of this database. */
  commit(run: RunStatement): Promise<void>;
}

/** Returns a database whose statements run in `sessions`. */
export function postgresDatabase(store: StoreDriver, sessions: Sessions): Kysely<Database> {
  const dialect: Dialect = {
    createDriver: () => new SessionDriver(sessions),
    createQueryCompiler: () => new StoreCompiler(),
    createAdapter: () => new PostgresStoreAdapter(store),
    createIntrospector: (db) => new PostgresIntrospector(db),
  };
  return new Kysely<Database>({ dialect });
}

class PostgresStoreAdapter extends PostgresAdapter implements StoreAdapter {
  readonly store: StoreDriver;

  constructor(store: StoreDriver) {
    super();
    this.store = store;
  }
}

class SessionDriver implements Driver {
  private readonly sessions: Sessions;

  constructor(sessions: Sessions) {
    this.sessions = sessions;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<SessionConnection> {
    return new SessionConnection(await this.sessions.acquire());
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await runOn(connection)(this.sessions.begin, []);
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await this.sessions.commit(runOn(connection));
  }

  /** Must not hide the error that led here: a session that is gone has rolled back by itself. */
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await runOn(connection)('rollback', []).catch(() => undefined);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    (connection as SessionConnection).release();
  }

  async destroy(): Promise<void> {}
}

const runOn = (connection: DatabaseConnection): RunStatement => (connection as SessionConnection).run;

class SessionConnection implements DatabaseConnection {
  readonly run: RunStatement;
  readonly release: () => void;

  constructor({ run, release }: { readonly run: RunStatement; readonly release: () => void }) {
    this.run = run;
    this.release = release;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, rowCount, command } = await this.run(sql, parameters);
    return command === 'SELECT' ? { rows } : { rows, numAffectedRows: BigInt(rowCount ?? 0) };
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield this.executeQuery<R>(query);
  }
}

/** Runs a compiled statement where `db` runs its own. */
export async function runCompiled<R>(
  db: Queryable,
  sql: string,
  parameters: readonly unknown[],
): Promise<readonly R[]> {
  const { rows } = await db.getExecutor().provideConnection((connection) => runOn(connection)(sql, parameters));
  return rows as R[];
}

export type WriteTransaction = Transaction<Database>;
