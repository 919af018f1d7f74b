/** A store that lost its newest commits, because a byte of its write-ahead log is not what was written. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sqlite } from '../support/database.js';
import { ORCH, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const log = sandbox.path('serve', 'orch.db-wal');
const SECRETS = 12;
let server: Running;

let starts = 0;
const serve = async (...args: readonly string[]) => {
  const started = await sandbox.serve(args);
  server = started.server;
  const { api_url, tls_fingerprint } = started.ready;
  starts += 1;
  const profile = `start-${starts}`;
  await sandbox.orch(['profile', 'create', profile, '--url', api_url, '--tls-fingerprint', tls_fingerprint]);
  await sandbox.orch(['profile', 'use', profile]);
};

function flipByte(file: string, offset: number): void {
  const descriptor = openSync(file, 'r+');
  const byte = Buffer.alloc(1);
  readSync(descriptor, byte, 0, 1, offset);
  writeSync(descriptor, Buffer.from([(byte[0] ?? 0) ^ 0x40]), 0, 1, offset);
  closeSync(descriptor);
}

/** Runs `orch serve`, which has to refuse, and returns its words on one line. */
async function refusal(): Promise<string> {
  const args = [
    '--agent-port',
    '0',
    '--api-port',
    '0',
    '--agent-host',
    '127.0.0.1',
    '--data-dir',
    sandbox.path('serve'),
  ];
  const { status, stderr } = await sandbox.orch(['serve', ...args]);
  expect(status).not.toBe(0);
  return stderr.replace(/\s+/g, ' ');
}

interface Event {
  readonly event_type: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  await serve();
  for (let n = 0; n < SECRETS; n += 1) {
    expect(await sandbox.orch(['secrets', 'set', `s${n}`, '-'], { input: 'value' })).toMatchObject({ status: 0 });
  }
}, 120_000);
afterAll(() => sandbox.dispose());

describe('a store with a damaged log', () => {
  it('is reported with the number of missing events, and not used', async () => {
    await server.stop('SIGKILL');
    // The last quarter of the log holds the last secrets.
    flipByte(log, Math.floor(statSync(log).size * 0.75));
    const said = await refusal();
    expect(said).toMatch(/ends too early: its \d+ newest events are missing, it goes up to audit event \d+ of \d+/);
    expect(said).toMatch(/"orch serve restore FILE".*"orch serve --new-epoch"/);
    expect(existsSync(sandbox.path('serve', 'audit.head'))).toBe(true);
    expect(await refusal()).toContain('newest events are missing');
  });

  it('goes on without them when asked to, which the audit log says', async () => {
    await serve('--new-epoch');
    const { events } = await sandbox.json<{ events: readonly Event[] }>([
      'audit',
      'list',
      '--type',
      'audit.events_lost',
    ]);
    const { missing, last_seq, expected_seq } = { ...events[0]?.metadata };
    expect(events).toHaveLength(1);
    expect(missing).toBe(Number(expected_seq) - Number(last_seq));
    const left = await sandbox.json<readonly unknown[]>(['secrets', 'list']);
    expect(left.length).toBeLessThan(SECRETS);
    expect((await sandbox.orch(['audit', 'verify'])).status).toBe(0);
    expect(await server.stop()).toBe(0);
    await serve();
    expect(await server.stop()).toBe(0);
  });

  it('is not reported where nothing is lost: after a kill', async () => {
    await serve();
    await sandbox.orch(['secrets', 'set', 'last', '-'], { input: 'value' });
    await server.stop('SIGKILL');
    await serve();
    expect((await sandbox.orch(['secrets', 'show', 'last'])).status).toBe(0);
    await server.stop('SIGKILL');
  });
});

describe('a store whose file of the newest event', () => {
  const head = sandbox.path('serve', 'audit.head');

  it.each([
    ['is missing', () => {}, 'audit.head is missing'],
    ['is empty', () => writeFileSync(head, ''), 'audit.head holds no event'],
    ['holds something else', () => writeFileSync(head, randomBytes(1024)), 'audit.head holds no event'],
    ['is a directory', () => mkdirSync(head), 'audit.head is a directory'],
  ] as const)('%s is not used until the operator accepts it', async (_, spoil, said) => {
    const kept = readFileSync(head);
    rmSync(head);
    spoil();
    const refused = await refusal();
    expect(refused).toContain(`${said}, so it is unknown whether the store`);
    expect(refused).toMatch(/put the file back.*"orch serve restore FILE".*"orch serve --new-epoch"/);
    rmSync(head, { recursive: true, force: true });
    writeFileSync(head, kept, { mode: 0o600 });
  });

  it('is missing can go on, which the audit log says', async () => {
    rmSync(head);
    await serve('--new-epoch');
    const { events } = await sandbox.json<{ events: readonly Event[] }>([
      'audit',
      'list',
      '--type',
      'audit.events_lost',
    ]);
    expect(events[0]?.metadata).toMatchObject({
      missing: null,
      problem: expect.stringContaining('audit.head is missing'),
    });
    expect(existsSync(head)).toBe(true);
    expect(await server.stop()).toBe(0);
  });
});

describe('a store that cannot be checked', () => {
  it('is not called damaged, and is checked once that is possible', async () => {
    const release = sandbox.path('release');
    cpSync(dirname(ORCH), release, { recursive: true });
    const worker = readdirSync(release, { recursive: true, encoding: 'utf8' }).find((name) =>
      name.endsWith('check-copy-worker.js'),
    );
    const file = join(release, worker ?? '');
    renameSync(file, `${file}.away`);
    symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), sandbox.path('node_modules'));
    sandbox.program = join(release, 'orch.js');
    await serve('--log-level', 'debug');
    sandbox.program = ORCH;
    await until(() => server.output().includes('the store could not be checked'), 'the check has failed');
    expect(await sandbox.orch(['status'])).toMatchObject({ status: 0 });
    const type = ['--type', 'orchestrator.store_damaged'];
    expect(await sandbox.json(['audit', 'list', ...type])).toMatchObject({ events: [] });
    renameSync(`${file}.away`, file);
    await until(() => server.output().includes('the store was checked and is whole'), 'the check is repeated');
    expect(await server.stop()).toBe(0);
  });
});

describe('a store with a damaged page', () => {
  it('is reported soon after the start, by the log, the audit log and the status', async () => {
    const file = sandbox.path('serve', 'orch.db');
    const connection = new Sqlite(file);
    const root = connection.prepare('select rootpage from sqlite_master where name = ?').pluck();
    const page = Number(root.get('drift_records_status'));
    const size = Number(connection.pragma('page_size', { simple: true }));
    connection.close();
    flipByte(file, (page - 1) * size);
    await serve();
    await until(() => server.output().includes('the store is damaged'), 'the damage is found');
    const status = await sandbox.orch(['status', '-o', 'json']);
    expect(status.status).toBe(1);
    expect(JSON.parse(status.stdout).reasons).toContainEqual(expect.objectContaining({ code: 'store_check_failed' }));
    const type = ['--type', 'orchestrator.store_damaged'];
    const { events } = await sandbox.json<{ events: readonly Event[] }>(['audit', 'list', ...type]);
    expect(events).toMatchObject([{ metadata: { damage: expect.stringContaining(`page ${page}`) } }]);
    expect(readdirSync(sandbox.path('serve')).filter((name) => name.includes('check'))).toEqual([]);
    expect(await server.stop()).toBe(0);
  });
});
