/** The store of a test, beside the orchestrator: reads it, and does to it what an administrator of the database can. */
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import type { Queryable } from '../../daemon/database/schema.js';
import { storeKindOf } from '../../daemon/database/store-driver.js';
import { Sqlite } from './database.js';
import { locationOf } from './store.js';
import { urlOf } from './store-urls.js';
import { copyDatabase, psql, spoilDatabase } from './test-databases.js';

export class StoreLab {
  private readonly file: string;
  private readonly url: string | null;

  /** @param file path that the store has, or that it would have */
  constructor(file: string) {
    this.file = file;
    this.url = urlOf(file);
  }

  /** Returns the rows of a query. */
  rows<R>(query: string): readonly R[] {
    if (this.url !== null) return JSON.parse(this.ask(`select coalesce(json_agg(r), '[]') from (${query}) r`));
    const connection = new Sqlite(this.file, { readonly: true });
    try {
      return connection.prepare(query).all() as R[];
    } finally {
      connection.close();
    }
  }

  /** Runs statements. */
  run(...statements: readonly string[]): void {
    if (this.url !== null) {
      this.ask(...statements);
      return;
    }
    const connection = new Sqlite(this.file, { fileMustExist: true });
    try {
      for (const statement of statements) connection.exec(statement);
    } finally {
      connection.close();
    }
  }

  /** Runs statements without the triggers that keep what was audited from being changed. */
  tamper(...statements: readonly string[]): void {
    if (this.url !== null) spoilDatabase(this.url);
    const drop = (table: string) => {
      const on = this.url === null ? '' : ` on ${table}`;
      return `drop trigger if exists ${table}_no_update${on}`;
    };
    this.run(drop('audit_events'), drop('audit_marks'), ...statements);
  }

  /** Returns everything that the store holds, each byte as a character: its files, or all values of its tables. */
  bytes(): string {
    if (this.url === null) {
      const log = `${this.file}-wal`;
      return readFileSync(this.file, 'latin1') + (existsSync(log) ? readFileSync(log, 'latin1') : '');
    }
    const tables = this.rows<{ name: string }>("select tablename as name from pg_tables where schemaname = 'orch'");
    const rows = tables.flatMap(({ name }) => this.rows<object>(`select * from ${name}`));
    return Buffer.from(rows.flatMap((row) => Object.values(row)).join('\n')).toString('latin1');
  }

  /** Copies the closed store to the place that stands for another path, whatever is there. */
  copyTo(file: string): void {
    const { server } = locationOf(file);
    if (this.url === null || server === null) copyFileSync(this.file, file);
    else copyDatabase(this.url, server.url);
  }

  private ask(...statements: readonly string[]): string {
    const { status, stdout, stderr } = psql(this.url ?? '', statements);
    if (status !== 0) throw new Error(stderr);
    return stdout;
  }
}

/** Makes the database refuse inserts or updates of a table of an open store, with that message. */
export async function refuseWrites(
  db: Queryable,
  { table, kind, message }: { readonly table: string; readonly kind: 'insert' | 'update'; readonly message: string },
): Promise<void> {
  const event = sql.raw(`create trigger refused before ${kind} on ${table}`);
  if (storeKindOf(db) === 'sqlite') {
    await sql`${event} begin select raise(abort, ${sql.lit(message)}); end`.execute(db);
    return;
  }
  await sql`drop function if exists lab.reset`.execute(db);
  const body = sql.lit(`begin raise exception '${message}'; end`);
  await sql`create function refused() returns trigger language plpgsql as ${body}`.execute(db);
  await sql`${event} for each row execute function refused()`.execute(db);
}
