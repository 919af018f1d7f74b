/**
 * Kysely dialect over one SQLite connection. Kysely's own driver prepares every statement again and wakes all waiters
 * at each release. This one caches statements, queues first come, first served, and distinguishes a full disk from a
 * failing one.
 */
import type { Database as Connection, Statement } from 'better-sqlite3';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type Transaction,
} from 'kysely';
import { Fault } from '../../../src/kernel/fault.js';
import type { Database, Queryable } from '../schema.js';
import type { StoreAdapter, StoreDriver } from '../store-driver.js';
import { isFatalSqliteError, storeFault } from './sqlite-error.js';

/** Maximum cached statements; the oldest are evicted. */
const STATEMENTS = 500;

interface SqliteDialectOptions {
  readonly connection: Connection;
  /** Called once with the error after which the store refuses every statement. */
  readonly onFatal: (error: unknown) => void;
}

/** Returns a database over the connection. */
export function sqliteDatabase(dialect: SqliteDialect): Kysely<Database> {
  const db = new Kysely<Database>({ dialect });
  dialect.serve(db);
  return db;
}

export class SqliteDialect implements Dialect {
  private readonly driver: SqliteDriver;

  constructor(options: SqliteDialectOptions) {
    this.driver = new SqliteDriver(options);
  }

  createDriver(): Driver {
    return this.driver;
  }

  /** Names the database whose transactions the driver begins. */
  serve(db: Kysely<Database>): void {
    this.driver.db = db;
  }

  createQueryCompiler(): SqliteQueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): SqliteAdapter {
    return new DirectAdapter(this.driver);
  }

  createIntrospector<T>(db: Kysely<T>): SqliteIntrospector {
    return new SqliteIntrospector(db);
  }
}

/** Leads from a Kysely object to its connection, for statements that are compiled already. */
class DirectAdapter extends SqliteAdapter implements StoreAdapter {
  readonly store: SqliteDriver;

  constructor(store: SqliteDriver) {
    super();
    this.store = store;
  }
}

class SqliteDriver implements Driver, StoreDriver {
  readonly kind = 'sqlite';
  private readonly queue = new ConnectionQueue();
  private readonly connection: Connection;
  private readonly runner: StatementRunner;
  /** Database over this driver, once it is created. */
  db: Kysely<Database> | undefined;

  constructor(options: SqliteDialectOptions) {
    this.connection = options.connection;
    this.runner = new StatementRunner(options);
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.queue.acquire();
    return this.runner;
  }

  async releaseConnection(): Promise<void> {
    this.queue.release();
  }

  /**
   * Runs a statement and returns its rows, without Kysely's layers: each statement that passes them awaits seven promises, which
   * cost as much as SQLite does for a row by its key. The benchmark row of an applied agent misses its goal with them.
   */
  async run<R>(db: Queryable, sql: string, parameters: readonly unknown[]): Promise<readonly R[]> {
    if (db.isTransaction || this.queue.isFree) return this.runner.rows(sql, parameters);
    await this.queue.acquire();
    try {
      return this.runner.rows(sql, parameters);
    } finally {
      this.queue.release();
    }
  }

  /** The answer of a commit is never lost here, so the last event needs no search. */
  async transact<T>(work: (tx: Transaction<Database>) => Promise<T>): Promise<T> {
    if (this.db === undefined) throw new Error('the dialect was not given its database');
    return this.db.transaction().execute(work);
  }

  async beginTransaction(): Promise<void> {
    this.runner.run('begin', []);
  }

  async commitTransaction(): Promise<void> {
    this.runner.run('commit', []);
  }

  /** After some errors, such as a full disk, SQLite has already rolled back. */
  async rollbackTransaction(): Promise<void> {
    if (this.connection.inTransaction) this.runner.run('rollback', []);
  }

  async destroy(): Promise<void> {
    this.connection.close();
  }
}

interface Prepared {
  readonly statement: Statement;
  /** Names of the result's columns; null for a statement without a result. */
  readonly columns: readonly string[] | null;
}

class StatementRunner implements DatabaseConnection {
  private readonly statements = new Map<string, Prepared>();
  private readonly options: SqliteDialectOptions;
  private broken = false;

  constructor(options: SqliteDialectOptions) {
    this.options = options;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.run(query.sql, query.parameters);
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield this.run(query.sql, query.parameters);
  }

  run<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
    return this.guarded(() => {
      const { statement, columns } = this.prepare(sql);
      if (columns !== null) return { rows: rowsOf(statement.all(parameters) as unknown[][], columns) as R[] };
      const { changes, lastInsertRowid } = statement.run(parameters);
      return { numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid), rows: [] };
    });
  }

  /** Runs a statement and returns only its rows. */
  rows<R>(sql: string, parameters: readonly unknown[]): readonly R[] {
    return this.guarded(() => {
      const { statement, columns } = this.prepare(sql);
      if (columns !== null) return rowsOf(statement.all(parameters) as unknown[][], columns) as R[];
      statement.run(parameters);
      return [];
    });
  }

  private guarded<T>(work: () => T): T {
    if (this.broken) throw new Fault('store_unavailable', 'the store failed and the orchestrator is stopping');
    if (!this.options.connection.open) throw new Fault('shutting_down', 'the store is closed');
    try {
      return work();
    } catch (error) {
      if (isFatalSqliteError(error)) {
        this.broken = true;
        this.options.onFatal(error);
      }
      throw storeFault(error);
    }
  }

  private prepare(sql: string): Prepared {
    const known = this.statements.get(sql);
    if (known) return known;
    const statement = this.options.connection.prepare(sql);
    const columns = statement.reader ? statement.columns().map(({ name }) => name) : null;
    if (columns !== null) statement.raw();
    const prepared = { statement, columns };
    this.statements.set(sql, prepared);
    if (this.statements.size > STATEMENTS) {
      for (const oldest of this.statements.keys()) {
        this.statements.delete(oldest);
        break;
      }
    }
    return prepared;
  }
}

/** Makes objects of rows that are arrays. The driver's own objects take half as long again, as it sets each member from C++. */
function rowsOf(rows: readonly (readonly unknown[])[], columns: readonly string[]): readonly unknown[] {
  return rows.map((values) => {
    const row: Record<string, unknown> = {};
    for (let at = 0; at < columns.length; at += 1) row[columns[at] ?? ''] = values[at];
    return row;
  });
}

/** Milliseconds for which turns may follow each other before the event loop gets to run. */
const STRETCH_MS = 10;
/** Timeout in milliseconds for a turn: far longer than any transaction, because those await nothing but the store. */
const PATIENCE_MS = 10_000;

interface Waiter {
  readonly start: () => void;
  readonly timer: NodeJS.Timeout;
}

export class ConnectionQueue {
  private readonly waiting: Waiter[] = [];
  private held = false;
  /** Start of the first turn in the current turn of the event loop. */
  private stretchStart: number | null = null;

  /**
   * Resolves when it is the caller's turn; the caller must then call `release`. Throws `store_unavailable` after a
   * timeout: a transaction hangs, perhaps because it queries the database instead of its own transaction.
   */
  acquire(): Promise<void> {
    const isFree = !this.held;
    this.held = true;
    if (isFree && !this.isLongStretch()) return Promise.resolve();
    if (isFree) setImmediate(() => this.next());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        reject(
          new Fault('store_unavailable', `the store was busy for ${PATIENCE_MS / 1000} seconds`, {
            hint: 'try again',
            data: { retry_after: 1 },
          }),
        );
      }, PATIENCE_MS);
      const waiter: Waiter = { start: resolve, timer };
      this.waiting.push(waiter);
    });
  }

  /** True when a turn that ends before the next await need not wait. */
  get isFree(): boolean {
    return !this.held && !this.isLongStretch();
  }

  release(): void {
    if (this.waiting.length > 0 && this.isLongStretch()) setImmediate(() => this.next());
    else this.next();
  }

  private next(): void {
    const waiter = this.waiting.shift();
    if (!waiter) {
      this.held = false;
      return;
    }
    clearTimeout(waiter.timer);
    waiter.start();
  }

  private isLongStretch(): boolean {
    const now = performance.now();
    if (this.stretchStart === null) {
      this.stretchStart = now;
      setImmediate(() => {
        this.stretchStart = null;
      });
    }
    return now - this.stretchStart >= STRETCH_MS;
  }
}
