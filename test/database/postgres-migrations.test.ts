/** Migrations of a store on a real PostgreSQL: copied before, all or nothing, and never backwards. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OpenDatabase, type OpenDatabaseOptions, openDatabase } from '../../daemon/database/database.js';
import { getMeta, setMeta } from '../../daemon/database/meta.js';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import type { Migration } from '../../daemon/database/migrations/migration.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { recordingLogger, rejection, Sqlite, temporaryDirectory } from '../support/database.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';

if (noPostgres !== null) console.info(`skipped: ${noPostgres}`);

const current = MIGRATIONS.at(-1)?.version ?? 0;

const addColumn: Migration = {
  version: current + 1,
  up: async (db) => {
    await db.schema.alterTable('agents').addColumn('note', 'text').execute();
  },
};

const failing: Migration = {
  version: current + 2,
  up: async (db) => {
    await db.schema.createTable('half').addColumn('id', 'integer').execute();
    await sql`select no_such_column from agents`.execute(db);
  },
};

describe.skipIf(noPostgres !== null)('the schema on PostgreSQL', () => {
  let postgres: TestPostgres;
  let processes = 0;
  beforeAll(async () => {
    postgres = await TestPostgres.start();
  });
  afterAll(() => postgres?.remove());

  const open = (name: string, directory: string, options: Partial<OpenDatabaseOptions> = {}): Promise<OpenDatabase> => {
    processes += 1;
    const server = {
      url: postgres.url(name),
      password: { file: '', env: {} },
      readers: 2,
      processName: `p${processes}`,
    };
    const file = join(directory, 'orch.db');
    return openDatabase({ file, server, logger: silentLogger, clock: Date, onFatal: () => undefined, ...options });
  };

  it('is migrated after a copy that a restore takes, and refuses an older program', async () => {
    await postgres.createDatabase('forward');
    const directory = temporaryDirectory();
    const old = await open('forward', directory);
    await setMeta(old.db, 'kept', 'yes');
    await old.close();
    const logger = recordingLogger();
    const migrated = await open('forward', directory, { migrations: [...MIGRATIONS, addColumn], logger });
    expect(await getMeta(migrated.db, 'kept')).toBe('yes');
    expect((await sql`select note from agents`.execute(migrated.db)).rows).toEqual([]);
    await migrated.close();
    const [copy, ...others] = readdirSync(directory);
    expect(others).toEqual([]);
    expect(copy).toMatch(new RegExp(`^orch\\.db\\.schema-${current}-`));
    expect(logger.lines.map(({ message }) => message)).toContain('the store was backed up, and is migrated now');
    const connection = new Sqlite(join(directory, copy ?? ''), { readonly: true });
    expect(connection.pragma('user_version', { simple: true })).toBe(current);
    expect(connection.prepare("select value from meta where key = 'kept'").pluck().get()).toBe('yes');
    connection.close();

    const fault = await rejection(open('forward', directory));
    expect(fault).toMatchObject({
      code: 'schema_too_new',
      message: expect.stringContaining(`schema ${current + 1}`),
      hint: expect.stringContaining(`orch serve restore ${join(directory, copy ?? '')}`),
    });
    expect(readdirSync(directory)).toHaveLength(1);
  });

  it('is copied before each migration, and the newest two copies are kept', async () => {
    await postgres.createDatabase('copies');
    const directory = temporaryDirectory();
    const migrations = [...MIGRATIONS];
    for (let version = current + 1; version <= current + 4; version += 1) {
      await (await open('copies', directory, { migrations: [...migrations] })).close();
      migrations.push({ version, up: async () => undefined });
    }
    const kept = readdirSync(directory).map((name) => /schema-(\d+)-/.exec(name)?.[1]);
    expect(kept.sort()).toEqual([String(current + 1), String(current + 2)]);
  });

  it('stays as it was when a migration fails', async () => {
    await postgres.createDatabase('failing');
    const directory = temporaryDirectory();
    await (await open('failing', directory)).close();
    const before = await dump('failing');
    const migrations = [...MIGRATIONS, addColumn, failing];
    const fault = await rejection(open('failing', directory, { migrations }));
    expect(fault).toMatchObject({ code: 'migration_failed', message: expect.stringContaining('no_such_column') });
    expect(await dump('failing')).toEqual(before);
    // Services start again and again: the copies do not pile up.
    await rejection(open('failing', directory, { migrations }));
    expect(readdirSync(directory)).toEqual([]);
    await (await open('failing', directory)).close();
  });

  it('is left alone when it cannot be copied before its migration', async () => {
    await postgres.createDatabase('uncopied');
    await (await open('uncopied', temporaryDirectory())).close();
    const before = await dump('uncopied');
    const nowhere = join(temporaryDirectory(), 'none');
    const fault = await rejection(open('uncopied', nowhere, { migrations: [...MIGRATIONS, addColumn] }));
    expect(fault.code).toBe('store_unavailable');
    expect(await dump('uncopied')).toEqual(before);
  });

  const dump = (database: string): Promise<string> =>
    postgres.sql(
      `select string_agg(table_name || '.' || column_name, ',' order by table_name, column_name)
       from information_schema.columns where table_schema = 'orch';
       select string_agg(key || '=' || value, ',' order by key) from orch.meta where key not in ('writer', 'last_batch')`,
      database,
    );
});
