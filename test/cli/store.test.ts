/** The questions and the output of `orch serve backup`, `restore` and `recover-admin`. */
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { StorePrograms } from '../../src/programs/store.js';
import { expectGolden, noPrograms, runOrch, transcript } from '../support/cli.js';

const KEY = '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29';
const SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const PLAN = {
  sha256: SHA256,
  data_dir: '/var/lib/orch',
  store: '/var/lib/orch',
  made_at: '2026-02-27T02:00:00.000Z',
  schema: 9,
  last_seq: 4096,
  last_hash: SHA256,
  last_at: '2026-02-27T01:59:58.120Z',
  present: 'store',
  present_seq: 4711,
  present_at: '2026-03-01T11:58:00.000Z',
  operators_back: ['mallory'],
  agents_back: ['web-07', 'web-08'],
} as const;
const ANEW = {
  epoch: 2,
  sessions: 3,
  tokens: 1,
  operations: 2,
  deliveries: 1,
  recordings: 2,
  secrets_key: null,
  rollouts: ['01K0ROLLOUT'],
  assignments: ['web'],
};

/** Notes what it is asked for. */
function prepared(): { readonly store: StorePrograms; readonly asked: unknown[] } {
  const asked: unknown[] = [];
  const store: StorePrograms = {
    backup: async (request) => {
      asked.push(request);
      const keys = ['/var/lib/orch/identity.key', '/var/lib/orch/secrets.key'];
      return {
        file: '/mnt/orch.db',
        bytes: 12_345_678,
        sha256: SHA256,
        schema: 9,
        last_seq: 4096,
        last_hash: SHA256,
        keys,
      };
    },
    restore: async ({ confirm, ...request }) => {
      asked.push(request);
      const plan = { ...PLAN, file: '/mnt/orch.db' };
      await confirm(plan);
      return { ...plan, ...ANEW, kept: '/var/lib/orch/orch.db.replaced-2026-03-01T12-00-00.000Z' };
    },
    recoverAdmin: async ({ confirm, ...request }) => {
      asked.push(request);
      const found = { operator_id: 'a'.repeat(32), username: 'ada', public_key: KEY, former_role: null } as const;
      await confirm({ ...found, change: 'added' });
      return { ...found, change: 'added' };
    },
    copy: async ({ onProgress, ...request }) => {
      asked.push(request);
      onProgress('Reading /var/lib/orch/orch.db');
      return {
        from: '/var/lib/orch/orch.db',
        to: 'postgres://orch@db.example:5432/orch',
        schema: 9,
        last_seq: 4096,
        last_hash: SHA256,
        rows: { agents: 12, audit_events: 4096, channels: 0 },
        ...ANEW,
        next: ["orch serve --data-dir /var/lib/orch --store 'postgres://orch@db.example/orch'"],
      };
    },
  };
  return { store, asked };
}

async function golden(name: string, argv: readonly string[], status: number): Promise<unknown> {
  const { store, asked } = prepared();
  const ran = await runOrch(argv, { programs: { ...noPrograms, store }, env: { NO_COLOR: '1' } });
  expect(ran.status).toBe(status);
  expectGolden(name, transcript(argv, ran));
  return asked[0];
}

describe('orch serve', () => {
  it('backup says where it is and what has to be kept apart from it', async () => {
    const argv = ['serve', 'backup', '/mnt/orch.db', '--config', 'serve.yaml'];
    expect(await golden('serve-backup', argv, 0)).toEqual({
      file: '/mnt/orch.db',
      force: false,
      flags: { config: 'serve.yaml' },
    });
  });

  it('backup hands on a whole path, so that it does not matter where the orchestrator runs', async () => {
    const { store, asked } = prepared();
    await runOrch(['serve', 'backup', 'orch.db', '--force', '--data-dir', 'd'], { programs: { ...noPrograms, store } });
    expect(asked).toEqual([{ file: resolve('orch.db'), force: true, flags: { data_dir: 'd' } }]);
  });

  it('restore tells what will be gone and who comes back, before it asks and after', async () => {
    expect(await golden('serve-restore', ['serve', 'restore', '/mnt/orch.db', '--yes'], 0)).toEqual({
      file: '/mnt/orch.db',
      newIdentity: false,
      flags: {},
    });
    await golden('serve-restore-no-terminal', ['serve', 'restore', '/mnt/orch.db'], 64);
  });

  it('restore names the schema that keeps a replaced store on PostgreSQL', async () => {
    const place = 'postgres://orch@db.example:5432/orch';
    const { store } = prepared();
    const onServer: StorePrograms = {
      ...store,
      restore: async ({ confirm }) => {
        const plan = { ...PLAN, store: place, file: '/mnt/orch.db' };
        await confirm(plan);
        return { ...plan, ...ANEW, kept: 'orch_replaced_2026_03_01_12_00_00_000' };
      },
    };
    const argv = ['serve', 'restore', '/mnt/orch.db', '--store', place, '--yes'];
    const ran = await runOrch(argv, { programs: { ...noPrograms, store: onServer }, env: { NO_COLOR: '1' } });
    expectGolden('serve-restore-postgres', transcript(argv, ran));
  });

  it('recover-admin takes a key and a name', async () => {
    const argv = ['serve', 'recover-admin', KEY, '--username', 'ada', '--yes'];
    expect(await golden('serve-recover-admin', argv, 0)).toEqual({ publicKey: KEY, username: 'ada', flags: {} });
    await golden('serve-recover-admin-bad-key', ['serve', 'recover-admin', 'abc', '--yes'], 64);
  });
});

describe('orch store copy', () => {
  it('says what it does meanwhile, what it copied and how to go on', async () => {
    const argv = ['store', 'copy', '/var/lib/orch', 'postgres://orch@db.example/orch', '--to-password-file', '/p'];
    expect(await golden('store-copy', argv, 0)).toEqual({
      from: { text: '/var/lib/orch', passwordFile: '' },
      to: { text: 'postgres://orch@db.example/orch', passwordFile: '/p' },
    });
  });
});
