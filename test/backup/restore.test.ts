/** Restoring stores of every schema that there was, and what a backup of one refuses. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type RestoreOptions, restoreStore } from '../../daemon/backup/restore-store.js';
import { stoppedBackup } from '../../daemon/backup/stopped-store.js';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import { loadOrCreateKey } from '../../src/identity/private-key.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { RestorePlan } from '../../src/programs/store.js';
import { ManualClock, newIds, rejection, Sqlite, temporaryDirectory } from '../support/database.js';

const databases = fileURLToPath(new URL('../database/databases/', import.meta.url));
const versions = readdirSync(databases).map((name) => Number.parseInt(name, 10));
const newest = MIGRATIONS.at(-1)?.version ?? 0;

function oldStore(version: number, directory: string, name: string): string {
  const file = join(directory, name);
  const connection = new Sqlite(file);
  connection.exec(readFileSync(join(databases, `${version}.sql`), 'utf8'));
  // Its secrets were sealed with keys that are gone.
  for (const table of ['secrets', 'channels', 'deliveries']) {
    const there = connection.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table);
    if (there !== undefined) connection.exec(`delete from ${table}`);
  }
  connection.close();
  return file;
}

function directory(): { readonly dataDir: string; readonly options: Omit<RestoreOptions, 'file'> } {
  const dataDir = join(temporaryDirectory(), 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  loadOrCreateKey(join(dataDir, 'identity.key'));
  const clock = new ManualClock();
  const location = { file: join(dataDir, 'orch.db'), server: null };
  const common = { dataDir, location, clock, newId: newIds(clock), logger: silentLogger };
  return { dataDir, options: { ...common, newIdentity: false, confirm: async () => {} } };
}

const read = <T>(file: string, sql: string): T => {
  const connection = new Sqlite(file);
  try {
    return connection.prepare(sql).pluck().get() as T;
  } finally {
    connection.close();
  }
};

describe('a restore', () => {
  it.each(versions)('brings a store of schema %i up to date, and begins a new epoch', async (version) => {
    const { dataDir, options } = directory();
    const file = oldStore(version, temporaryDirectory(), 'old.db');
    const restored = await restoreStore({ ...options, file });
    expect(restored).toMatchObject({ schema: version, made_at: null, present: 'none', kept: null });
    const place = join(dataDir, 'orch.db');
    expect(statSync(place).mode & 0o7777).toBe(0o600);
    expect(readdirSync(dataDir).sort()).toEqual(['identity.key', 'orch.db']);
    const connection = new Sqlite(place);
    expect(connection.pragma('user_version', { simple: true })).toBe(newest);
    expect(connection.pragma('integrity_check', { simple: true })).toBe('ok');
    connection.close();
    expect(read<string>(place, "select value from meta where key = 'engine.generation'")).toBe(
      `${restored.epoch}.${options.clock.now()}`,
    );
    expect(read(place, 'select count(*) from sessions')).toBe(0);
    expect(read(place, 'select event_type from audit_events order by seq desc limit 1')).toBe('orchestrator.restored');
  });

  it('is above the epoch of the store that it replaces, and tells who comes back', async () => {
    const { dataDir, options } = directory();
    const file = oldStore(newest, temporaryDirectory(), 'old.db');
    const present = oldStore(newest, dataDir, 'orch.db');
    const connection = new Sqlite(present);
    connection.exec(`
      insert or replace into meta (key, value) values ('engine.generation', '41.7');
      update operators set removed_at = 1, removed_by = 'system' where removed_at is null;
      update agents set status = 'rejected';
    `);
    connection.close();
    const plans: RestorePlan[] = [];
    const confirm = async (plan: RestorePlan) => void plans.push(plan);
    const restored = await restoreStore({ ...options, file, confirm });
    expect(restored.epoch).toBe(42);
    expect(plans[0]?.operators_back.length).toBeGreaterThan(0);
    expect(plans[0]?.agents_back.length).toBeGreaterThan(0);
    expect(read(restored.kept ?? '', "select value from meta where key = 'engine.generation'")).toBe('41.7');
  });

  it('that is not agreed to changes nothing', async () => {
    const { dataDir, options } = directory();
    const file = oldStore(newest, temporaryDirectory(), 'old.db');
    const confirm = async () => {
      throw new Error('no');
    };
    await expect(restoreStore({ ...options, file, confirm })).rejects.toThrow('no');
    expect(readdirSync(dataDir)).toEqual(['identity.key']);
  });
});

describe('a backup of a stopped orchestrator', () => {
  it('leaves a store of an older program alone', async () => {
    const { dataDir, options } = directory();
    const store = oldStore(newest - 1, dataDir, 'orch.db');
    const before = readFileSync(store);
    const file = join(temporaryDirectory(), 'copy.db');
    const fault = await rejection(stoppedBackup(options, { file, force: false }));
    expect(fault).toMatchObject({ code: 'usage' });
    expect(fault.message).toContain(`it has schema ${newest - 1}, and this one makes ${newest}`);
    expect(existsSync(file)).toBe(false);
    expect(readFileSync(store).equals(before)).toBe(true);
  });

  it('is restored as it was', async () => {
    const { dataDir, options } = directory();
    oldStore(newest, dataDir, 'orch.db');
    const file = join(temporaryDirectory(), 'copy.db');
    const made = await stoppedBackup(options, { file, force: false });
    const restored = await restoreStore({ ...options, file });
    expect(restored).toMatchObject({ sha256: made.sha256, last_seq: made.last_seq, present_seq: made.last_seq + 1 });
    expect(restored.made_at).toBe(new Date(options.clock.now()).toISOString());
    expect(read(join(dataDir, 'orch.db'), "select count(*) from meta where key = 'backup'")).toBe(0);
  });
});
