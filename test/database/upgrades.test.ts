/** Upgrades of stores with content: the backup before a migration, and what a migration that ends early leaves. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import type { Migration } from '../../daemon/database/migrations/migration.js';
import { ManualClock, openStore, rejection, Sqlite, temporaryDirectory } from '../support/database.js';
import { oldStore } from '../support/old-store.js';
import { fill, tinyDisk } from '../support/tiny-disk.js';

const current = MIGRATIONS.at(-1)?.version ?? 0;
const PROGRAM = fileURLToPath(new URL('programs/migrate-further.mjs', import.meta.url));

/** Migrations of later programs, each of which adds a table. */
const later = (count: number): readonly Migration[] => [
  ...MIGRATIONS,
  ...Array.from({ length: count }, (_, index) => ({
    version: current + 1 + index,
    up: async (db: Parameters<Migration['up']>[0]) => {
      await sql`create table ${sql.table(`later_${index}`)} (id integer)`.execute(db);
    },
  })),
];

const backups = (file: string): readonly string[] =>
  readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.schema-`));

const schemaIn = (file: string): unknown => {
  const connection = new Sqlite(file, { readonly: true });
  try {
    return connection.pragma('user_version', { simple: true });
  } finally {
    connection.close();
  }
};

/** Opens the store as this program does, and checks that it is the one of before. */
async function stillOpens(file: string): Promise<void> {
  const { db, close } = await openStore({ file });
  expect(await sql`pragma user_version`.execute(db)).toMatchObject({ rows: [{ user_version: current }] });
  expect(await sql`select name from pragma_table_info('agents') where name = 'note'`.execute(db)).toMatchObject({
    rows: [],
  });
  const { verified, broken } = await verifyChain(db);
  expect({ some: verified > 0, broken }).toEqual({ some: true, broken: null });
  await close();
}

describe('the backup before a migration', () => {
  it('has the old schema and all rows, for the owner alone', async () => {
    const file = oldStore(current - 1);
    const clock = new ManualClock();
    await (await openStore({ file, clock })).close();
    expect(backups(file)).toEqual([`orch.db.schema-${current - 1}-2026-03-01T12-00-00.000Z`]);
    const backup = `${file}.schema-${current - 1}-2026-03-01T12-00-00.000Z`;
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    expect(schemaIn(backup)).toBe(current - 1);
    const copy = new Sqlite(backup);
    const before = new Sqlite(oldStore(current - 1, temporaryDirectory()));
    const count = 'select count(*) from audit_events';
    expect(copy.prepare(count).pluck().get()).toEqual(before.prepare(count).pluck().get());
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok');
    copy.close();
    before.close();
  });

  it('is kept for the two newest migrations, also when the clock was set back', async () => {
    const file = oldStore(current);
    const clock = new ManualClock();
    writeFileSync(`${file}.schema-3-2026-01-01T00-00-00.000Z.partial`, 'cut off');
    for (const [count, ms] of [
      [1, 0],
      [2, 1000],
      [3, -5000],
    ] as const) {
      clock.advance(ms);
      await (await openStore({ file, clock, migrations: later(count) })).close();
    }
    expect(backups(file).map((name) => name.slice('orch.db.'.length))).toEqual([
      `schema-${current + 1}-2026-03-01T12-00-01.000Z`,
      `schema-${current + 2}-2026-03-01T11-59-56.000Z`,
    ]);
  });

  it('is not made of a new store, nor of a copy', async () => {
    const { close } = await openStore({ file: `${temporaryDirectory()}/orch.db` });
    await close();
    const file = oldStore(current - 1);
    await (await openStore({ file, isCopy: true })).close();
    expect(backups(file)).toEqual([]);
  });

  it('is named to the older program that finds the newer schema', async () => {
    const file = oldStore(current);
    await (await openStore({ file, clock: new ManualClock(), migrations: later(1) })).close();
    expect(await rejection(openStore({ file }))).toMatchObject({
      code: 'schema_too_new',
      hint: expect.stringContaining(`orch serve restore ${file}.schema-${current}-2026-03-01T12-00-00.000Z`),
    });
  });
});

describe('a migration that ends early', () => {
  it('by an error in a later one of several leaves the store as it was, and no backup of it', async () => {
    const file = oldStore(current);
    const failing: Migration = {
      version: current + 2,
      up: async (db) => {
        await sql`insert into later_0 values (1)`.execute(db);
        await sql`insert into agents (node_id) values ('x')`.execute(db);
      },
    };
    expect(await rejection(openStore({ file, migrations: [...later(1), failing] }))).toMatchObject({
      code: 'migration_failed',
      message: `${file} cannot be migrated from schema ${current} to ${current + 2}: NOT NULL constraint failed: agents.public_key`,
      hint: 'go back to the orch that ran before: the store is as it was, and the orch that ran before still starts with it',
    });
    expect(backups(file)).toEqual([]);
    await stillOpens(file);
  });

  it('by a kill leaves the store as it was, and its backup', async () => {
    const file = oldStore(current);
    const child = spawn(process.execPath, [PROGRAM, file, 'middle'], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await new Promise((resolve, reject) => {
      child.stdout.once('data', resolve);
      child.once('exit', reject);
    });
    // The changes have left the memory of the process, and wait in the log for a commit.
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(1_000_000);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    expect(backups(file)).toHaveLength(1);
    await stillOpens(file);
  });

  it('by a disk that fills up leaves the store as it was, and says what to do', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const file = oldStore(current, disk.path);
    const bulk: Migration = {
      version: current + 1,
      up: async (db) => {
        await sql`create table bulk as with recursive n(i) as (values (1) union all select i + 1 from n where i < 8000)
          select i, randomblob(1000) as text from n`.execute(db);
      },
    };
    expect(await rejection(openStore({ file, migrations: [...MIGRATIONS, bulk] }))).toMatchObject({
      code: 'migration_failed',
      message: `${file} cannot be migrated from schema ${current} to ${current + 1}: database or disk is full`,
      hint: `free some space in ${disk.path}, then start again; the store is as it was, and the orch that ran before still starts with it`,
    });
    expect(backups(file)).toEqual([]);
    await stillOpens(file);
  });

  it('is not begun without room for its backup', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const file = oldStore(current, disk.path);
    fill(`${disk.path}/ballast`);
    const before = readFileSync(file);
    expect(await rejection(openStore({ file, migrations: later(1) }))).toMatchObject({
      code: 'disk_full',
      message: expect.stringMatching(/its backup and migration need \d\.\d MiB: \S+ has 0\.0 MiB free$/),
      hint: expect.stringContaining('free some space there, then start again; the store is as it was'),
    });
    expect(backups(file)).toEqual([]);
    expect(readFileSync(file).equals(before)).toBe(true);
    await stillOpens(file);
  });
});
