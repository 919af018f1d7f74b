/**
 * Copies all rows of a store to an empty store of the same schema. Tables and their columns are those of the migrations, and are
 * copied in an order in which no row refers to one that is missing.
 */
import { closeSync, openSync } from 'node:fs';
import type { Database as Connection } from 'better-sqlite3';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { Migration } from './migrations/migration.js';
import { OWN_META } from './postgres/migrate-postgres.js';
import type { RunStatement } from './postgres/postgres-dialect.js';
import type { PostgresStore } from './postgres/postgres-store.js';
import { sealPartial } from './sqlite/copy.js';
import { loadSqlite } from './sqlite/load-sqlite.js';
import { runMigrations as migrateSqlite } from './sqlite/migrate.js';
import { SqliteDialect } from './sqlite/sqlite-dialect.js';

/** Rows that are read or written at a time. */
const AT_ONCE = 500;

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

async function fillSqlite(run: RunStatement, connection: Connection): Promise<void> {
  await run('begin isolation level repeatable read read only', []);
  try {
    for (const table of tablesOf(connection)) {
      const { name, columns } = table;
      const list = columns.map((column) => `"${column}"`).join(', ');
      const own = name === 'meta' ? ` where key not in (${OWN_META.map((key) => `'${key}'`).join(', ')})` : '';
      await run(`declare rows_to_copy no scroll cursor for select ${list} from orch."${name}"${own}`, []);
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

/** Copies the rows of an SQLite store to tables of PostgreSQL that are empty, in the transaction of `run`. Returns the rows of each table. */
export async function copySqliteRows(
  connection: Connection,
  run: RunStatement,
  onTable: (name: string) => void = () => undefined,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const table of tablesOf(connection)) {
    onTable(table.name);
    counts.set(table.name, await copyTable(connection, run, table));
  }
  return counts;
}

async function copyTable(
  connection: Connection,
  run: RunStatement,
  { name, columns, counter }: Table,
): Promise<number> {
  const list = columns.map((column) => `"${column}"`).join(', ');
  // The migrations have filled some keys of the target already.
  const end = name === 'meta' ? ' on conflict (key) do update set value = excluded.value' : '';
  let count = 0;
  let rows: (readonly unknown[])[] = [];
  const most = Math.max(1, Math.min(AT_ONCE, Math.floor(30_000 / columns.length)));
  const flush = async (): Promise<void> => {
    if (rows.length === 0) return;
    const places = rows.map((_, row) => `(${columns.map((_, at) => `$${row * columns.length + at + 1}`).join(', ')})`);
    try {
      await run(`insert into "${name}" (${list}) values ${places.join(', ')}${end}`, rows.flat());
    } catch (cause) {
      throw new Fault('store_unavailable', `the rows of ${name} cannot be copied: ${messageOf(cause)}`, { cause });
    }
    count += rows.length;
    rows = [];
  };
  for (const row of connection.prepare(`select ${list} from "${name}"`).raw().iterate()) {
    rows.push(row as readonly unknown[]);
    if (rows.length >= most) await flush();
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
