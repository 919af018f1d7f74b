/**
 * Copies all rows of a store to an empty store of the same schema. Tables and their columns are those of the migrations, and are
 * copied in an order in which no row refers to one that is missing.
 */
import { closeSync, openSync } from 'node:fs';
import type { Database as Connection } from 'better-sqlite3';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { Migration } from './migrations/migration.js';
import { OWN_META } from './postgres/migrate-postgres.js';
import type { PostgresStore } from './postgres/postgres-store.js';
import { sealPartial } from './sqlite/copy.js';
import { loadSqlite } from './sqlite/load-sqlite.js';
import { runMigrations as migrateSqlite } from './sqlite/migrate.js';
import { CLEAN_KEY } from './sqlite/open-sqlite.js';
import { SqliteDialect } from './sqlite/sqlite-dialect.js';

/** Maximum rows that are read or written at a time. A row can hold megabytes of text. */
const AT_ONCE = 100;
/** Characters of text after which rows are written. */
const TEXT_AT_ONCE = 4 * 1024 * 1024;

/** Runs a statement in a session or in an open transaction. */
type RunRows = (
  text: string,
  values: readonly unknown[],
) => Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** Columns of the primary key, in order. */
  readonly key: readonly string[];
  /** Column that the database numbers by itself, or null. */
  readonly counter: string | null;
}

/** Returns the tables of an SQLite store, each behind those that it refers to. */
export function tablesOf(connection: Connection): readonly Table[] {
  const names = connection
    .prepare(
      "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name",
    )
    .pluck()
    .all() as readonly string[];
  const found = new Map<string, Table>();
  const visit = (name: string): void => {
    if (found.has(name)) return;
    const parents = connection.pragma(`foreign_key_list("${name}")`) as readonly { readonly table: string }[];
    for (const { table } of parents) if (table !== name) visit(table);
    const columns = connection.pragma(`table_info("${name}")`) as readonly { name: string; pk: number; type: string }[];
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    const isCounted = key.length === 1 && key[0]?.type.toLowerCase() === 'integer';
    found.set(name, {
      name,
      columns: columns.map((column) => column.name),
      key: key.map((column) => column.name),
      counter: isCounted ? (key[0]?.name ?? null) : null,
    });
  };
  for (const name of names) visit(name);
  return [...found.values()];
}

/**
 * Copies a store on PostgreSQL to a new SQLite file, durably: all rows of one moment, while other work continues. An existing file is
 * replaced. Throws `store_unavailable`.
 */
export async function copyPostgresToSqlite(
  store: Pick<PostgresStore, 'withReader'>,
  file: string,
  migrations: readonly Migration[],
): Promise<void> {
  const sqlite = await loadSqlite();
  await sealPartial(file, async (partial) => {
    closeSync(openSync(partial, 'wx', 0o600));
    const connection = new sqlite(partial);
    try {
      connection.pragma('journal_mode = MEMORY');
      connection.pragma('synchronous = OFF');
      await migrateSqlite(connection, new SqliteDialect({ connection, onFatal: () => undefined }), migrations);
      await store.withReader((run) => fillSqlite(run, connection));
    } finally {
      connection.close();
    }
  });
}

async function fillSqlite(run: RunRows, connection: Connection): Promise<void> {
  await run('begin isolation level repeatable read read only', []);
  try {
    for (const table of tablesOf(connection)) {
      const { name, columns } = table;
      const list = columns.map((column) => `"${column}"`).join(', ');
      await run(`declare rows_to_copy no scroll cursor for select ${list} from orch."${name}"${ownRows(name)}`, []);
      const insert = connection.prepare(
        `insert into "${name}" (${list}) values (${columns.map(() => '?').join(', ')})`,
      );
      connection.exec('begin');
      for (;;) {
        const { rows } = await run(`fetch ${AT_ONCE} from rows_to_copy`, []);
        for (const row of rows) insert.run(columns.map((column) => row[column]));
        if (rows.length < AT_ONCE) break;
      }
      connection.exec('commit');
      await run('close rows_to_copy', []);
    }
  } finally {
    await run('rollback', []).catch(() => undefined);
  }
}

/** Numbers of rows by table. Keys in `meta` that describe a database and not the orchestrator are not counted. */
export type RowCounts = ReadonlyMap<string, number>;

const OWN_KEYS = [...OWN_META, CLEAN_KEY].map((key) => `'${key}'`).join(', ');
/** Leaves out keys that describe a database and not the orchestrator. */
const ownRows = (table: string): string => (table === 'meta' ? ` where key not in (${OWN_KEYS})` : '');
const countOf = (table: string, schema = ''): string =>
  `select count(*) as count from ${schema}"${table}"${ownRows(table)}`;

export function countSqliteRows(connection: Connection): RowCounts {
  const counts = tablesOf(connection).map(({ name }) => {
    return [name, Number(connection.prepare(countOf(name)).pluck().get())] as const;
  });
  return new Map(counts);
}

/** Counts the rows of the named tables. */
export async function countPostgresRows(run: RunRows, tables: Iterable<string>): Promise<RowCounts> {
  const counts = new Map<string, number>();
  for (const name of tables) {
    const { rows } = await run(countOf(name, 'orch.'), []);
    counts.set(name, Number(rows[0]?.count));
  }
  return counts;
}

/** Throws `store_unavailable` when a table of the copy has other rows than the original. */
export function requireSameCounts(original: RowCounts, copy: RowCounts): void {
  for (const [table, count] of original) {
    const found = copy.get(table) ?? 0;
    if (found === count) continue;
    throw new Fault('store_unavailable', `the copy has ${found} rows of ${table} instead of ${count}`, {
      hint: 'nothing was changed; try again',
    });
  }
}

/** Copies the rows of an SQLite store to tables of PostgreSQL that are empty, in the transaction of `run`. Returns the rows of each table. */
export async function copySqliteRows(
  connection: Connection,
  run: RunRows,
  onTable: (name: string) => void = () => undefined,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const table of tablesOf(connection)) {
    onTable(table.name);
    counts.set(table.name, await copyTable(connection, run, table));
  }
  return counts;
}

async function copyTable(connection: Connection, run: RunRows, { name, columns, counter }: Table): Promise<number> {
  const list = columns.map((column) => `"${column}"`).join(', ');
  let count = 0;
  let size = 0;
  let rows: (readonly unknown[])[] = [];
  const most = Math.max(1, Math.min(AT_ONCE, Math.floor(30_000 / columns.length)));
  const flush = async (): Promise<void> => {
    if (rows.length === 0) return;
    const places = rows.map((_, row) => `(${columns.map((_, at) => `$${row * columns.length + at + 1}`).join(', ')})`);
    try {
      await run(`insert into "${name}" (${list}) values ${places.join(', ')}`, rows.flat());
    } catch (cause) {
      throw new Fault('store_unavailable', `the rows of ${name} cannot be copied: ${messageOf(cause)}`, { cause });
    }
    count += rows.length;
    size = 0;
    rows = [];
  };
  for (const row of connection
    .prepare(`select ${list} from "${name}"${ownRows(name)}`)
    .raw()
    .iterate() as Iterable<unknown[]>) {
    rows.push(row);
    for (const value of row) if (typeof value === 'string') size += value.length;
    if (rows.length >= most || size >= TEXT_AT_ONCE) await flush();
  }
  await flush();
  if (counter !== null) {
    await run(
      `select setval(pg_get_serial_sequence($1, $2), (select coalesce(max("${counter}"), 0) + 1 from "${name}"), false)`,
      [name, counter],
    );
  }
  return count;
}
