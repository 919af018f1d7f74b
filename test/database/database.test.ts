import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { getMeta, setMeta } from '../../daemon/database/meta.js';
import { isSupportedSqlite, sqlitePackages } from '../../daemon/database/sqlite/load-sqlite.js';
import { openStore, recordingLogger, rejection, Sqlite, temporaryDirectory } from '../support/database.js';

const program = (name: string) => fileURLToPath(new URL(`programs/${name}`, import.meta.url));

const run = (name: string, ...args: readonly string[]) =>
  spawnSync(process.execPath, [program(name), ...args], { encoding: 'utf8', timeout: 20_000 });

/** Leaves the store as a crash does: the marker says that it is in use. */
async function leaveUnclean(file: string): Promise<void> {
  const store = await openStore({ file });
  await setMeta(store.db, 'filler', 'x'.repeat(200_000));
  await store.close();
  const connection = new Sqlite(file);
  connection.prepare("update meta set value = '0' where key = 'stopped_cleanly'").run();
  connection.close();
}

describe('the store', () => {
  it('is durable, strict about keys, and owned by one connection', async () => {
    const { db } = await openStore();
    const read = async (name: string) => {
      const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(db);
      return Object.values(rows[0] ?? {})[0];
    };
    expect(await read('synchronous')).toBe(2);
    expect(await read('journal_mode')).toBe('wal');
    expect(await read('locking_mode')).toBe('exclusive');
    expect(await read('foreign_keys')).toBe(1);
    expect(await read('trusted_schema')).toBe(0);
  });

  it('is still durable after it was opened again, which is when better-sqlite3 would relax', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await (await openStore({ file })).close();
    const { db } = await openStore({ file });
    const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(db);
    expect(rows).toEqual([{ synchronous: 2 }]);
  });

  it('keeps what was written, and nothing beside the file once it is closed', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'orch.db');
    const store = await openStore({ file });
    await setMeta(store.db, 'epoch', '7');
    await setMeta(store.db, 'epoch', '8');
    await store.close();
    await store.close();
    expect(readdirSync(directory)).toEqual(['orch.db']);
    expect(await getMeta((await openStore({ file })).db, 'epoch')).toBe('8');
  });

  it('is readable for its user alone', async () => {
    const directory = temporaryDirectory();
    const before = process.umask(0o000);
    try {
      const store = await openStore({ file: join(directory, 'orch.db') });
      await setMeta(store.db, 'a', 'b');
      await store.backup(join(directory, 'copy.db'));
      const modes = readdirSync(directory).map((name) => [name, statSync(join(directory, name)).mode & 0o777]);
      expect(modes).toEqual([
        ['copy.db', 0o600],
        ['orch.db', 0o600],
        ['orch.db-wal', 0o600],
      ]);
    } finally {
      process.umask(before);
    }
  });

  it('says that it is closed', async () => {
    const store = await openStore();
    await store.close();
    await expect(getMeta(store.db, 'a')).rejects.toThrow('the store is closed');
  });

  it('is refused to a second process, which says why, and free again when the first has ended', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    const store = await openStore({ file });
    expect(run('open.mjs', file).stdout).toBe(`data_dir_locked: ${file} is open in another process\n`);
    await store.close();
    expect(run('open.mjs', file).stdout).toBe('opened\n');
  });

  it('is refused to a second connection of the same process', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await openStore({ file });
    expect(await rejection(openStore({ file }))).toMatchObject({ code: 'data_dir_locked' });
  });

  it('is refused while another program reads it', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await (await openStore({ file })).close();
    const reader = new Sqlite(file);
    reader.exec('begin; select * from meta');
    expect(await rejection(openStore({ file }))).toMatchObject({
      code: 'data_dir_locked',
      hint: 'stop the other orchestrator, or whatever else reads the file',
    });
    reader.close();
  });

  it('that cannot be opened names the file and what is in the way', async () => {
    const directory = temporaryDirectory();
    const missing = await rejection(openStore({ file: join(directory, 'no', 'orch.db') }));
    expect(missing).toMatchObject({ code: 'data_dir_invalid' });
    expect(missing.message).toContain('ENOENT');
    mkdirSync(join(directory, 'orch.db'));
    const isDirectory = await rejection(openStore({ file: join(directory, 'orch.db') }));
    expect(isDirectory).toMatchObject({ code: 'data_dir_invalid' });
    expect(isDirectory.message).toContain('EISDIR');
  });

  it('whose log cannot be opened names the log', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await (await openStore({ file })).close();
    mkdirSync(`${file}-wal`);
    const refused = await rejection(openStore({ file }));
    expect(refused).toMatchObject({ code: 'data_dir_invalid' });
    expect(refused.message).toMatch(/^\S+orch\.db-wal cannot be opened: EISDIR/);
  });

  it('needs better-sqlite3, and says how to get it', () => {
    const { stdout } = run('open-without-sqlite.mjs', join(temporaryDirectory(), 'orch.db'));
    expect(stdout).toMatch(/^native_module_missing: better-sqlite3\S* cannot be loaded: .+\n/);
    expect(stdout).toContain('apt-get install g++ make python3; Fedora: dnf install gcc-c++ make python3');
  });

  it.each([
    ['3.51.3', true],
    ['3.51.10', true],
    ['3.53.0', true],
    ['4.0.0', true],
    ['3.51.2', false],
    ['3.50.9', false],
    ['2.99.99', false],
  ])('of SQLite %s is supported: %s', (version, supported) => {
    expect(isSupportedSqlite(version)).toBe(supported);
  });

  it.each([
    ['20.20.2', '9', ['better-sqlite3']],
    ['22.12.0', '9', ['better-sqlite3']],
    ['22.14.0', '10', ['better-sqlite3-13', 'better-sqlite3']],
    ['24.21.0', '10', ['better-sqlite3-13']],
    ['26.10.0', '11', ['better-sqlite3-13']],
  ])('is opened on Node %s, which has Node-API %s, with %j', (node, napi, packages) => {
    expect(sqlitePackages({ node, napi })).toEqual(packages);
  });
});

describe('a damaged store', () => {
  it('that is no database is refused', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    writeFileSync(file, 'this is not what you are looking for '.repeat(100));
    const fault = await rejection(openStore({ file }));
    expect(fault).toMatchObject({
      code: 'data_dir_invalid',
      message: `${file}, or orch.db-wal beside it, is damaged or no database: file is not a database`,
      hint: 'put a backup in its place: orch serve restore FILE',
    });
  });

  it('is found out after an unclean stop', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await leaveUnclean(file);
    truncateSync(file, statSync(file).size - 64 * 1024);
    const logger = recordingLogger();
    const fault = await rejection(openStore({ file, logger }));
    expect(fault.code).toBe('data_dir_invalid');
    expect(fault.message).toContain('is damaged or no database');
  });

  it('is checked after an unclean stop only', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await leaveUnclean(file);
    const unclean = recordingLogger();
    await (await openStore({ file, logger: unclean })).close();
    expect(unclean.lines.map(({ message }) => message)).toEqual(['the store was not closed in order, checking it']);
    const clean = recordingLogger();
    await openStore({ file, logger: clean });
    expect(clean.lines).toEqual([]);
  });

  it('found out in the middle of work ends everything', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    await leaveUnclean(file);
    const connection = new Sqlite(file);
    connection.prepare("update meta set value = '1' where key = 'stopped_cleanly'").run();
    const page = connection.prepare("select rootpage from sqlite_master where name = 'modules'").pluck().get();
    const size = Number(connection.pragma('page_size', { simple: true }));
    connection.close();
    const descriptor = openSync(file, 'r+');
    writeSync(descriptor, Buffer.alloc(size, 0xaa), 0, size, (Number(page) - 1) * size);
    closeSync(descriptor);
    const fatal: unknown[] = [];
    const { db } = await openStore({ file, onFatal: (error) => fatal.push(error) });
    const fault = await rejection(db.selectFrom('modules').selectAll().execute());
    expect(fault).toMatchObject({ code: 'store_unavailable' });
    expect(fatal).toHaveLength(1);
    expect(await rejection(getMeta(db, 'epoch'))).toMatchObject({
      code: 'store_unavailable',
      message: 'the store failed and the orchestrator is stopping',
    });
    expect(fatal).toHaveLength(1);
  });
});

describe('a copy of the store', () => {
  it('is whole, and made while others write', async () => {
    const directory = temporaryDirectory();
    const { db, backup } = await openStore({ file: join(directory, 'orch.db') });
    for (let i = 0; i < 50; i += 1) await setMeta(db, `before-${i}`, 'x'.repeat(20_000));
    const copying = backup(join(directory, 'copy.db'));
    for (let i = 0; i < 50; i += 1) await setMeta(db, `during-${i}`, 'x'.repeat(20_000));
    await copying;
    const copy = await openStore({ file: join(directory, 'copy.db') });
    const { rows } = await sql<{ quick_check: string }>`pragma quick_check`.execute(copy.db);
    expect(rows).toEqual([{ quick_check: 'ok' }]);
    expect(await getMeta(copy.db, 'before-49')).toHaveLength(20_000);
    expect(existsSync(join(directory, 'copy.db.partial'))).toBe(false);
  });

  it('takes the place of an older one only when it is complete', async () => {
    const directory = temporaryDirectory();
    const { backup } = await openStore();
    const file = join(directory, 'copy.db');
    writeFileSync(file, 'old');
    await backup(file);
    expect(readFileSync(file).subarray(0, 15).toString()).toBe('SQLite format 3');
    const fault = await rejection(backup(join(directory, 'no', 'copy.db')));
    expect(fault).toMatchObject({
      code: 'store_unavailable',
      hint: 'choose a place that is writable and has room for the copy',
    });
  });
});
