/** A restore that is killed at any point leaves one of the two stores, whole, and can be done again. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { sealCopy } from '../../daemon/backup/seal-copy.js';
import { SYSTEM } from '../../daemon/core/domain-event.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { openDatabase } from '../../daemon/database/database.js';
import { setMeta } from '../../daemon/database/meta.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { loadOrCreateKey } from '../../src/identity/private-key.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { ManualClock, newIds, Sqlite, temporaryDirectory } from '../support/database.js';
import { IS_EXHAUSTIVE, itInLong } from '../support/exhaustive.js';

const program = fileURLToPath(new URL('programs/restore-until.mjs', import.meta.url));

/** Between two calls before which it is killed. */
const STEP = IS_EXHAUSTIVE ? 1 : 4;

/** Stands for the newest event of the present store. */
const HEAD = 'the newest event';

/** How the store that is replaced looks when the restore begins. */
type Shape = 'closed' | 'with its log' | 'damaged, with its log';

/** A directory whose store was backed up and went on. */
async function prepare(shape: Shape): Promise<{ readonly template: string; readonly backup: string }> {
  const root = temporaryDirectory();
  const template = join(root, 'data');
  mkdirSync(template, { mode: 0o700 });
  const key = publicKeyOfKeyObject(loadOrCreateKey(join(template, 'identity.key')));
  writeFileSync(join(template, 'audit.head'), HEAD);
  const clock = new ManualClock();
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const live = join(root, 'live.db');
  const store = await openDatabase({ server: null, file: live, clock, logger: silentLogger, onFatal });
  const uow = new TransactionalWriter({ db: store.db, clock, newId: newIds(clock), publish: () => {} });
  const write = (marker: string) =>
    uow.write(async (tx, emit) => {
      await setMeta(tx, 'marker', marker);
      emit({ type: 'orchestrator.started', actor: SYSTEM, target: SYSTEM, summary: marker, metadata: {} });
    });
  await write('backup');
  const backup = join(root, 'backup.db');
  await store.backup(backup);
  await sealCopy({ file: backup, note: { made_at: clock.now(), version: '0.1.0', public_key: key } });
  await write('present');
  if (shape === 'closed') await store.close();
  // As a process that was killed leaves it: what was written last is in the log alone.
  for (const end of ['', '-wal']) {
    if (existsSync(`${live}${end}`)) cpSync(`${live}${end}`, join(template, `orch.db${end}`));
  }
  await store.close();
  if (shape === 'damaged, with its log') {
    for (const end of ['', '-wal']) writeFileSync(join(template, `orch.db${end}`), 'no database '.repeat(1000));
  }
  return { template, backup };
}

const run = (directory: string, backup: string, limit: number) =>
  spawnSync(process.execPath, [program, directory, backup, String(limit)], { encoding: 'utf8', timeout: 60_000 });

/** The state that `orch serve` would find; `unusable` where it refuses to start. */
function found(directory: string): unknown {
  const copy = `${directory}.look`;
  rmSync(copy, { recursive: true, force: true });
  cpSync(directory, copy, { recursive: true });
  try {
    const connection = new Sqlite(join(copy, 'orch.db'), { fileMustExist: true });
    try {
      expect(connection.pragma('integrity_check', { simple: true })).toBe('ok');
      const marker = connection.prepare("select value from meta where key = 'marker'").pluck().get();
      const restored = "select count(*) from audit_events where event_type = 'orchestrator.restored'";
      return `${marker}, ${connection.prepare(restored).pluck().get()} restored`;
    } finally {
      connection.close();
    }
  } catch (error) {
    if (error instanceof Error && error.message.includes('not a database')) return 'unusable';
    throw error;
  }
}

describe.each([
  ['closed', 'present, 0 restored'],
  ['with its log', 'present, 0 restored'],
  ['damaged, with its log', 'unusable'],
] as const)('a restore over a store that is %s', (shape, before) => {
  it('leaves the old store or the new one, wherever it is killed', async () => {
    const { template, backup } = await prepare(shape);
    const seen = new Set<unknown>();
    let end: number | null = null;
    for (let limit = 0; end === null && limit < 100; limit += STEP) {
      const directory = `${template}-${limit}`;
      cpSync(template, directory, { recursive: true });
      const { status, signal, stdout, stderr } = run(directory, backup, limit);
      expect([status, signal], stderr).toEqual(status === 0 ? [0, null] : [null, 'SIGKILL']);
      const state = found(directory);
      expect(readFileSync(join(directory, 'audit.head'), 'utf8'), `killed before call ${limit}`).toBe(HEAD);
      expect([before, 'backup, 1 restored'], `killed before call ${limit}`).toContain(state);
      seen.add(state);
      if (status === 0) end = Number(stdout);
      else if (limit % (5 * STEP) === 0)
        expect(run(directory, backup, 1000), 'it can be done again').toMatchObject({ status: 0 });
      if (status === 0 || limit % (5 * STEP) === 0) {
        expect(found(directory)).toBe('backup, 1 restored');
        expect(readdirSync(directory).filter((name) => /^(restoring|lock|orch\.db-)/.test(name))).toEqual([]);
      }
      rmSync(directory, { recursive: true, force: true });
    }
    expect(end).toBeGreaterThan(10);
    expect([...seen].sort()).toEqual(['backup, 1 restored', before].sort());
  });
});

itInLong(
  'a restore that was killed after it had given the present store a second name keeps the present store once',
  async () => {
    const { template, backup } = await prepare('closed');
    const kept = () => readdirSync(template).filter((name) => name.startsWith('orch.db.replaced-'));
    for (let limit = 0; kept().length === 0 && limit < 100; limit += 1) run(template, backup, limit);
    expect(kept()).toHaveLength(1);
    expect(readFileSync(join(template, 'orch.db'))).toEqual(readFileSync(join(template, kept()[0] ?? '')));
    expect(run(template, backup, 1000)).toMatchObject({ status: 0 });
    expect(kept()).toHaveLength(1);
  },
);
