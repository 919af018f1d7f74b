/** `orch store copy` of stores of earlier schemas: only the copy is migrated, and what fails leaves no copy. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monotonicFactory } from 'ulid';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { copyStore } from '../../daemon/backup/copy-store.js';
import { openDatabase } from '../../daemon/database/database.js';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { CuttingWay, type Loss } from '../support/cutting-way.js';
import { rejection, Sqlite, temporaryDirectory } from '../support/database.js';
import { oldStore } from '../support/old-store.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';

if (noPostgres !== null) console.info(`skipped: ${noPostgres}`);

const current = MIGRATIONS.at(-1)?.version ?? 0;

function copy(from: string, to: string, steps: string[] = []) {
  return copyStore({
    from: { text: from, passwordFile: '' },
    to: { text: to, passwordFile: '' },
    env: {},
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    newId: monotonicFactory(),
    logger: silentLogger,
    onProgress: (step) => steps.push(step),
  });
}

const sha256 = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
const versionOf = (file: string): unknown => {
  const connection = new Sqlite(file, { readonly: true });
  const version = connection.pragma('user_version', { simple: true });
  connection.close();
  return version;
};

describe('a copy in a file', () => {
  it('is migrated, and the original is as it was', async () => {
    const from = oldStore(3);
    new Sqlite(from).close();
    const before = sha256(from);
    const to = join(temporaryDirectory(), 'copy.db');
    const copied = await copy(from, to);
    expect(readdirSync(join(to, '..'))).toEqual(['copy.db']);
    expect(versionOf(to)).toBe(current);
    expect(versionOf(from)).toBe(3);
    expect(sha256(from)).toBe(before);
    expect(copied).toMatchObject({ from, to, schema: current, epoch: expect.any(Number) });
    expect(copied.rows.audit_events).toBe(copied.last_seq);
  });

  it('is not made of a store in use, of another file, or of a store of a newer program', async () => {
    const to = join(temporaryDirectory(), 'copy.db');
    const from = oldStore(current);
    const user = new Sqlite(from);
    user.pragma('locking_mode = EXCLUSIVE');
    user.exec('begin exclusive');
    expect((await rejection(copy(from, to))).code).toBe('data_dir_locked');
    user.exec('rollback; pragma user_version = 9999');
    user.close();
    expect((await rejection(copy(from, to))).code).toBe('schema_too_new');
    const directory = temporaryDirectory();
    expect(await rejection(copy(directory, to))).toMatchObject({ code: 'data_dir_invalid' });
    const other = new Sqlite(join(directory, 'orch.db'));
    other.exec('create table other (id integer)');
    other.close();
    expect((await rejection(copy(directory, to))).message).toContain('is no store of an orchestrator');
    expect(existsSync(to)).toBe(false);
    expect(readdirSync(join(to, '..'))).toEqual([]);
  });
});

describe.skipIf(noPostgres !== null)('a copy on PostgreSQL', () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await TestPostgres.start();
  });
  afterAll(() => postgres?.remove());

  it.each([1, 7, 12, current])('of schema %i has all rows, and comes back as it went', async (version) => {
    const from = oldStore(version);
    const url = await postgres.createDatabase(`from_${version}`);
    const steps: string[] = [];
    const there = await copy(from, url, steps);
    expect(versionOf(from)).toBe(version);
    expect(steps).toContain(`Verifying the audit log: ${there.last_seq} events`);
    expect(await postgres.sql("select value from orch.meta where key = 'schema_version'", `from_${version}`)).toBe(
      String(current),
    );
    const directory = temporaryDirectory();
    const back = await copy(url, directory);
    expect(back.last_seq).toBe(there.last_seq + 1);
    expect(back.epoch).toBeGreaterThan(there.epoch);
    expect(versionOf(join(directory, 'orch.db'))).toBe(current);
    // Numbers that the database gives out go on after those of the copy.
    const store = await openDatabase({ ...location(url), logger: silentLogger, clock: Date, onFatal: () => undefined });
    const { operator_id } = await store.db.selectFrom('operators').select('operator_id').executeTakeFirstOrThrow();
    const row = { operator_id, public_key: 'e'.repeat(64), username: 'eve', role: 'viewer', bootstrap: 0, added_at: 1 };
    await store.db
      .insertInto('operators')
      .values({ ...row, operator_id: 'e'.repeat(32), added_by: operator_id } as never)
      .execute();
    await store.close();
  });

  it('of an older store on PostgreSQL is migrated, and the original is as it was', async () => {
    const url = await postgres.createDatabase('older');
    const migrations = MIGRATIONS.slice(0, -1);
    const old = await openDatabase({
      ...location(url),
      migrations,
      logger: silentLogger,
      clock: Date,
      onFatal: () => undefined,
    });
    await old.close();
    const directory = join(temporaryDirectory(), 'data');
    mkdirSync(directory, { mode: 0o700 });
    await copy(url, directory);
    expect(versionOf(join(directory, 'orch.db'))).toBe(current);
    const version = "select value from orch.meta where key = 'schema_version'";
    expect(await postgres.sql(version, 'older')).toBe(String(current - 1));
  });

  it('is not made when it fails in the middle', async () => {
    const url = await postgres.createDatabase('refusing');
    await postgres.sql(
      `create function public.refuse() returns event_trigger language plpgsql as $$ begin raise exception 'no room'; end $$;
       create event trigger refuse on ddl_command_end when tag in ('CREATE TRIGGER') execute function public.refuse()`,
      'refusing',
    );
    const from = oldStore(current);
    expect(await rejection(copy(from, url))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('no room'),
      hint: expect.stringContaining('nothing was changed'),
    });
    expect(await postgres.sql("select to_regnamespace('orch') is null", 'refusing')).toBe('t');
    await postgres.sql('drop event trigger refuse', 'refusing');
    await copy(from, url);
  });

  it.each<[Loss, string]>([
    ['answer', 'usage'],
    ['request', 'made'],
  ])('whose last commit loses its %s reports the doubt, and a second run settles it', async (loss, second) => {
    const name = `lost_${loss}`;
    await postgres.createDatabase(name);
    const way = await CuttingWay.to(postgres.port);
    onTestFinished(() => way.close());
    const url = `postgres://orch@127.0.0.1:${way.port}/${name}`;
    const from = oldStore(current);
    way.loseCommit(loss);
    expect(await rejection(copy(from, url))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('has not answered whether it has committed'),
      hint: expect.stringContaining('repeat the command'),
    });
    const outcome = await copy(from, url).then(
      () => 'made',
      (error) => error.code,
    );
    expect(outcome).toBe(second);
  });
});

const location = (url: string) => ({
  file: join(temporaryDirectory(), 'orch.db'),
  server: { url, password: { file: '', env: {} }, readers: 1, processName: `test ${Math.random()}` },
});
