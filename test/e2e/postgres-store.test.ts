/** The commands for the store on a real PostgreSQL, with real orchestrators: backup, restore, copy, and starts that are refused. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditEvent, AuditVerification } from '../../src/contract/audit.js';
import { Sqlite } from '../support/database.js';
import { type Finished, type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';

if (noPostgres !== null) console.info(`skipped: ${noPostgres}`);

const KEY = '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29';

interface Copied {
  readonly last_seq: number;
  readonly rows: Readonly<Record<string, number>>;
  readonly epoch: number;
  readonly next: readonly string[];
}

interface Restored {
  readonly kept: string | null;
  readonly epoch: number;
  readonly present_seq: number | null;
  readonly sessions: number;
}

describe.skipIf(noPostgres !== null)('a store on PostgreSQL', () => {
  const sandbox = new Sandbox();
  const data = sandbox.path('serve');
  const backup = sandbox.path('backup.db');
  let postgres: TestPostgres;
  let url: string;
  let server: Running | null = null;
  let ready: Ready;

  const orch = (...args: readonly string[]) => sandbox.orch(args);
  const done = async (...args: readonly string[]): Promise<Finished> => {
    const finished = await orch(...args);
    if (finished.status !== 0) throw new Error(`orch ${args.join(' ')}: ${finished.status}\n${finished.stderr}`);
    return finished;
  };
  const here = () => ['--data-dir', data, '--store', url];
  const start = async (...args: readonly string[]): Promise<void> => {
    const ports = ready === undefined ? [] : ['--api-port', new URL(ready.api_url).port];
    ({ server, ready } = await sandbox.serve([...ports, '--store', url, ...args]));
  };
  const stop = async (): Promise<void> => {
    await server?.stop();
    server = null;
  };
  const pushModule = async (name: string): Promise<void> => {
    const file = sandbox.path(`${name}.orch.yaml`);
    writeFileSync(
      file,
      `name: ${name}\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      file-unix: {path: /tmp/${name}, source: ${name}.bin}\n`,
    );
    writeFileSync(sandbox.path(`${name}.bin`), `the file beside module ${name}`);
    await done('module', 'publish', file);
  };
  const verified = () => sandbox.json<AuditVerification>(['audit', 'verify']);
  const events = async (type: string) =>
    (await sandbox.json<{ events: readonly AuditEvent[] }>(['audit', '--type', type])).events;
  const modules = async () => (await sandbox.json<{ name: string }[]>(['module', 'list'])).map(({ name }) => name);

  /** Runs `orch` that is expected to fail, and returns its error in one line. */
  const refused = async (...args: readonly string[]): Promise<string> => {
    const { status, stderr } = await orch(...args);
    expect(status, stderr).not.toBe(0);
    return stderr.replaceAll(/\s+/g, ' ');
  };
  const startRefused = async (...args: readonly string[]): Promise<string> => {
    const started = await sandbox.serve(args).catch((error: Error) => error.message);
    if (typeof started === 'string') return started.replaceAll(/\s+/g, ' ');
    await started.server.stop();
    throw new Error(`orch serve ${args.join(' ')} has started`);
  };

  beforeAll(async () => {
    postgres = await TestPostgres.start();
    url = await postgres.createDatabase('orch');
    await done('operator', 'init');
    await start();
    await done('profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint);
    await pushModule('one');
    await sandbox.orch(['secrets', 'set', 'TOKEN'], { input: 'xyzzy' });
  });
  afterAll(async () => {
    await sandbox.dispose();
    await postgres?.remove();
  });

  it('is backed up to a file while the orchestrator runs, and while it is stopped with exactly its rows', async () => {
    const made = await sandbox.json<{ last_seq: number; sha256: string }>(['serve', 'backup', backup, ...here()]);
    expect(createHash('sha256').update(readFileSync(backup)).digest('hex')).toBe(made.sha256);
    expect((await events('orchestrator.backed_up'))[0]?.metadata).toMatchObject({ last_seq: made.last_seq });
    expect((await verified()).intact).toBe(true);
    await pushModule('two');
    await stop();

    const before = await rowsOnServer(url);
    const stopped = sandbox.path('stopped.db');
    const second = await sandbox.json<{ last_seq: number }>(['serve', 'backup', stopped, ...here()]);
    expect(second.last_seq).toBeGreaterThan(made.last_seq);
    expect(rowsInFile(stopped)).toEqual(before);
    expect(before.modules).toHaveLength(2);
    expect(statSync(stopped).mode & 0o777).toBe(0o600);
  });

  it('is replaced by a backup in one step, and the former store is kept as a schema', async () => {
    const restored = await sandbox.json<Restored>(['serve', 'restore', backup, ...here(), '--yes']);
    expect(restored).toMatchObject({ epoch: 2, kept: expect.stringMatching(/^orch_replaced_20/) });
    expect(await postgres.sql(`select count(*) from "${restored.kept}".modules`, 'orch')).toBe('2');
    await start();
    expect(await modules()).toEqual(['one']);
    expect((await verified()).intact).toBe(true);
    const [event] = await events('orchestrator.restored');
    expect(event?.metadata).toMatchObject({ by: 'restore', epoch: 2, replaced_last_seq: restored.present_seq });
    await postgres.sql(`drop schema "${restored.kept}" cascade`, 'orch');
  });

  it('is not touched while an orchestrator uses it, wherever that one runs', async () => {
    expect(await refused('serve', 'restore', backup, ...here(), '--yes')).toMatch(/in use by process .*orch serve/);
    const elsewhere = copyOfKeys('elsewhere');
    const there = ['--data-dir', elsewhere, '--store', url];
    expect(await refused('serve', 'restore', backup, ...there, '--yes')).toMatch(/in use by another orchestrator/);
    expect(await refused('store', 'copy', url, sandbox.path('copied.db'))).toMatch(/in use by another orchestrator/);
    expect(existsSync(sandbox.path('copied.db'))).toBe(false);
    await stop();
  });

  it('is left by an orchestrator that hangs, and written by nobody else than who took it over', async () => {
    if (server === null) await start();
    const hanging = (server as Running).process;
    const answer = async () => {
      const { status, stdout } = await sandbox.orch(['status', '-o', 'json']);
      return `${status} ${stdout}`;
    };
    hanging.kill('SIGSTOP');
    try {
      const other = ['--data-dir', copyOfKeys('beside'), '--store', url];
      const { server: successor } = await sandbox.serve(other);
      hanging.kill('SIGCONT');
      await until(
        async () => (await answer()).includes('store_unreachable'),
        'the first one knows that it lost the store',
      );
      expect(await refused('module', 'remove', 'one', '--yes')).toMatch(/cannot be reached|in use/);
      await successor.stop();
    } finally {
      hanging.kill('SIGCONT');
    }
    // What it knows is no longer so, which only a new start mends.
    await until(() => hanging.exitCode !== null, 'the first one has ended');
    await start();
    expect(await modules()).toEqual(['one']);
    expect((await verified()).intact).toBe(true);
    await stop();
  });

  it('is the old one after a restore that was killed at any point of its transaction', async () => {
    const before = await rowsOnServer(url);
    const head = readFileSync(sandbox.path('serve', 'audit.head'), 'utf8');
    for (const tag of ['ALTER SCHEMA', 'CREATE SCHEMA', 'CREATE INDEX', 'CREATE TRIGGER']) {
      await postgres.sql(
        `create function public.wait_here() returns event_trigger language plpgsql as 'begin perform pg_sleep(60); end';
         create event trigger wait_here on ddl_command_end when tag in ('${tag}') execute function public.wait_here()`,
        'orch',
      );
      const restoring = sandbox.start(['serve', 'restore', backup, ...here(), '--yes']);
      const waits = "select exists (select 1 from pg_stat_activity where wait_event = 'PgSleep')";
      await until(async () => (await postgres.sql(waits)) === 't', `the restore has come to ${tag}`);
      await restoring.stop('SIGKILL');
      await postgres.sql('drop event trigger wait_here; drop function public.wait_here()', 'orch');
      await postgres.sql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'");
      expect(await rowsOnServer(url)).toEqual(before);
      expect(await keptSchemas()).toEqual([]);
      // Without it the next start could not tell whether the store has its newest events.
      expect(readFileSync(sandbox.path('serve', 'audit.head'), 'utf8')).toBe(head);
    }
    await start();
    expect((await sandbox.orch(['audit', 'verify'])).status).toBe(0);
    await stop();
  });

  it('is copied to a data directory and back, with all rows, and both copies serve', async () => {
    const directory = copyOfKeys('moved');
    const copied = await sandbox.json<Copied>(['store', 'copy', url, directory]);
    const original = await rowsOnServer(url);
    expect(copied.rows).toEqual(
      Object.fromEntries(Object.entries(original).map(([table, rows]) => [table, rows.length])),
    );
    const copy = rowsInFile(join(directory, 'orch.db'));
    for (const table of ['agents', 'modules', 'module_revisions', 'module_file_parts', 'operators', 'secrets']) {
      expect(copy[table]).toEqual(original[table]);
    }
    expect(copy.audit_events?.slice(0, -1)).toEqual(original.audit_events);
    expect(copy.sessions).toEqual([]);
    expect(copied.next.join()).toContain(`orch serve --data-dir ${directory}`);

    const port = new URL(ready.api_url).port;
    const moved = await sandbox.serve(['--api-port', port, '--data-dir', directory]);
    expect(await modules()).toEqual(['one']);
    await pushModule('three');
    expect((await verified()).intact).toBe(true);
    const [event] = await events('orchestrator.restored');
    expect(event?.metadata).toMatchObject({ by: 'store_copy', epoch: copied.epoch, last_seq: copied.last_seq });
    await moved.server.stop();

    const second = await postgres.createDatabase('orch_second');
    const { stdout, stderr } = await done('store', 'copy', directory, second);
    expect(stderr).toMatch(/Copying audit_events: \d+ rows/);
    expect(stdout).toContain(`orch serve --data-dir ${directory} --store '${second}'`);
    const back = await sandbox.serve(['--api-port', port, '--data-dir', directory, '--store', second]);
    expect((await modules()).sort()).toEqual(['one', 'three']);
    await pushModule('four');
    expect((await verified()).intact).toBe(true);
    await back.server.stop();

    // The file in the data directory is older than what this directory served last.
    expect(await startRefused('--data-dir', directory)).toMatch(/ends too early/);
    // The same is seen when that file is copied.
    const third = await postgres.createDatabase('orch_third');
    expect(await refused('store', 'copy', directory, third)).toMatch(/audit\.head knows of audit event/);
    expect(await postgres.sql("select to_regnamespace('orch') is null", 'orch_third')).toBe('t');
    // From server to server, and from file to file.
    await done('store', 'copy', second, third);
    const again = await sandbox.serve(['--api-port', port, '--data-dir', directory, '--store', third]);
    expect((await modules()).sort()).toEqual(['four', 'one', 'three']);
    expect((await verified()).intact).toBe(true);
    await again.server.stop();
    await done('store', 'copy', backup, sandbox.path('file-copy.db'));
    expect(rowsInFile(sandbox.path('file-copy.db')).modules).toEqual(rowsInFile(backup).modules);
  });

  it('is never overwritten by a copy', async () => {
    const second = postgres.url('orch_second');
    const empty = await postgres.createDatabase('orch_empty');
    expect(await refused('store', 'copy', backup, second)).toMatch(/holds a store already.*rename/);
    expect(await refused('store', 'copy', url, sandbox.path('moved'))).toMatch(/holds a store already/);
    expect(await refused('store', 'copy', url, url)).toMatch(/the same store/);
    expect(await refused('store', 'copy', sandbox.path('none.db'), empty)).toMatch(/there is no store/);
    expect(await refused('store', 'copy', empty, sandbox.path('none.db'))).toMatch(/there is no store/);
    const damaged = sandbox.path('damaged.db');
    copyFileSync(backup, damaged);
    const connection = new Sqlite(damaged);
    connection.exec("drop trigger audit_events_no_update; update audit_events set summary = 'forged' where seq = 2");
    connection.close();
    expect(await refused('store', 'copy', damaged, empty)).toMatch(/audit log .* is not whole: event 2/);
    expect(await postgres.sql("select to_regnamespace('orch') is null", 'orch_empty')).toBe('t');
  });

  it('that is empty or another one does not start beside keys, unless it is asked for', async () => {
    const empty = await postgres.createDatabase('orch_other');
    expect(await startRefused('--data-dir', data, '--store', empty)).toMatch(
      /holds no store.*orch store copy.*--new-store/,
    );
    expect(await startRefused(...here(), '--new-store')).toMatch(/there is a store in/);
    const begun = await sandbox.serve(['--data-dir', copyOfKeys('begun'), '--store', empty, '--new-store']);
    await begun.server.stop();
    expect(
      Number(await postgres.sql("select value::float from orch.meta where key = 'engine.generation'", 'orch_other')),
    ).toBeGreaterThan(1);

    renameSync(join(data, 'identity.key'), join(data, 'identity.away'));
    expect(await startRefused(...here())).toMatch(/identity\.key.*--new-identity/);
    expect(await refused('serve', 'restore', backup, ...here(), '--yes')).toMatch(/identity\.key is missing/);
    renameSync(join(data, 'identity.away'), join(data, 'identity.key'));
    expect(await startRefused('--data-dir', sandbox.path('moved'), '--store', empty)).toMatch(/orch/);
    const other = copyOfKeys('others');
    rmSync(join(other, 'identity.key'));
    const renewed = await sandbox.serve(['--data-dir', other, '--store', url, '--new-identity']);
    expect(renewed.ready.public_key).not.toBe(ready.public_key);
    await renewed.server.stop();
    expect(await startRefused(...here())).toMatch(/the store is of the orchestrator/);
    await done('serve', 'restore', backup, ...here(), '--yes');
    for (const name of await keptSchemas()) await postgres.sql(`drop schema "${name}" cascade`, 'orch');
  });

  it('that was restored by hand begins a new epoch, gets an admin and another key of the secrets', async () => {
    expect(
      await refused('serve', 'recover-admin', KEY, '--data-dir', data, '--store', postgres.url('orch_empty'), '--yes'),
    ).toMatch(/there is no store in/);
    const admin = await sandbox.json<{ change: string }>([
      'serve',
      'recover-admin',
      KEY,
      '--username',
      'eve',
      ...here(),
      '--yes',
    ]);
    expect(admin.change).toBe('added');
    await start('--new-epoch');
    expect((await events('orchestrator.restored'))[0]?.metadata).toMatchObject({ by: 'new_epoch' });
    const rotated = await sandbox.json<{ kept: string }>(['serve', 'rotate-secrets-key', '--data-dir', data]);
    expect(existsSync(rotated.kept)).toBe(true);
    expect((await verified()).intact).toBe(true);
    await stop();
  });

  async function keptSchemas(): Promise<readonly string[]> {
    const text = await postgres.sql("select nspname from pg_namespace where nspname like 'orch\\_replaced%'", 'orch');
    return text.split('\n').filter(Boolean);
  }

  /** A data directory with the keys of the orchestrator alone. */
  function copyOfKeys(name: string): string {
    const directory = sandbox.path(name);
    mkdirSync(directory, { mode: 0o700 });
    for (const key of readdirSync(data).filter((one) => one.endsWith('.key'))) {
      copyFileSync(join(data, key), join(directory, key));
      chmodSync(join(directory, key), 0o600);
    }
    return directory;
  }
});

type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

/** Keys of `meta` that belong to one database, or to one file. */
const OWN_META = ['schema_version', 'writer', 'last_batch', 'backup', 'stopped_cleanly'];

function comparable(table: string, rows: readonly Readonly<Record<string, unknown>>[]): Rows[string] {
  const wanted = table === 'meta' ? rows.filter(({ key }) => !OWN_META.includes(String(key))) : rows;
  const keyed = wanted.map((row) => [JSON.stringify(Object.entries(row).sort()), row] as const);
  if (table === 'audit_events') return [...wanted].sort((a, b) => Number(a.seq) - Number(b.seq));
  return keyed.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

async function rowsOnServer(url: string): Promise<Rows> {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: () => (text: string) => text } });
  await client.connect();
  try {
    const tables = await client.query("select tablename from pg_tables where schemaname = 'orch'");
    const found: Record<string, Rows[string]> = {};
    for (const { tablename } of tables.rows) {
      const { rows } = await client.query(`select * from orch."${tablename}"`);
      found[tablename] = comparable(tablename, rows);
    }
    return found;
  } finally {
    await client.end();
  }
}

function rowsInFile(file: string): Rows {
  const connection = new Sqlite(file, { readonly: true });
  try {
    const names = connection
      .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'")
      .pluck()
      .all() as readonly string[];
    const found: Record<string, Rows[string]> = {};
    for (const name of names) {
      const rows = connection.prepare(`select * from "${name}"`).all() as Readonly<Record<string, unknown>>[];
      const texts = rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value === null ? null : String(value)])),
      );
      found[name] = comparable(name, texts);
    }
    return found;
  } finally {
    connection.close();
  }
}
