/** The audit log from the outside, with real processes: followed over restarts and crashes, tampered with, pruned, verified. */
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditEvent, AuditVerification } from '../../src/contract/audit.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { StoreLab } from '../support/store-lab.js';

const sandbox = new Sandbox();
let server: Running;
let ready: Ready;
let copies = 0;

const database = () => sandbox.path('serve', 'orch.db');
const serve = async () => {
  const port = ready ? ['--api-port', new URL(ready.api_url).port] : [];
  ({ server, ready } = await sandbox.serve(port));
};

async function verify(...args: readonly string[]): Promise<{ status: number | null; report: AuditVerification }> {
  const { status, stdout } = await sandbox.orch(['audit', 'verify', '-o', 'json', ...args]);
  return { status, report: JSON.parse(stdout) };
}

/** Makes an event, by its name. */
const change = async (days: number) => {
  expect((await sandbox.orch(['audit', 'retention', 'set', String(days)])).status).toBe(0);
};

/** Does something to the log of the stopped orchestrator, and starts that again. */
async function tampered(...statements: readonly string[]): Promise<void> {
  expect(await server.stop()).toBe(0);
  // An attacker who can write the store can also remove this file and the note that there is one.
  rmSync(head());
  new StoreLab(database()).tamper("delete from meta where key = 'audit.head'", ...statements);
  await serve();
}

/** The file that knows the last event beside the store. */
const head = () => sandbox.path('serve', 'audit.head');

interface Copy {
  /** Path of the store. */
  readonly store: string;
  readonly head: Buffer;
}

/** Stops the orchestrator, copies its log, and starts it again. */
async function copied(): Promise<Copy> {
  await server.stop();
  copies += 1;
  const copy = { store: sandbox.path(`copy-${copies}.db`), head: readFileSync(head()) };
  new StoreLab(database()).copyTo(copy.store);
  await serve();
  return copy;
}

/** Puts the log back as it was before. */
async function restored(copy: Copy): Promise<void> {
  await server.stop();
  for (const end of ['-wal', '-shm', '-journal']) rmSync(`${database()}${end}`, { force: true });
  new StoreLab(copy.store).copyTo(database());
  writeFileSync(head(), copy.head, { mode: 0o600 });
  await serve();
}

beforeAll(async () => {
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  await serve();
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
});
afterAll(() => sandbox.dispose());

describe('orch audit tail', () => {
  it('misses and repeats nothing over a restart, a crash and whatever is written meanwhile', async () => {
    const tail = sandbox.start(['audit', 'tail', '--after', '1d ago', '-o', 'json']);
    const shown = () =>
      tail
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as AuditEvent);
    for (let days = 1; days <= 5; days += 1) await change(days);
    await until(() => shown().length >= 7, 'the events are shown');
    expect(await server.stop()).toBe(0);
    await serve();
    for (let days = 6; days <= 8; days += 1) await change(days);
    await server.stop('SIGKILL');
    await serve();
    await change(9);
    const { events } = await sandbox.json<{ events: readonly AuditEvent[] }>(['audit', '--limit', '500']);
    await until(() => shown().length >= events.length, 'everything is shown');
    expect(shown()).toEqual([...events].reverse());
    expect(tail.output()).not.toContain('unauthenticated');
    expect(await tail.stop('SIGINT')).toBe(130);
  });
});

describe('orch audit verify', () => {
  it('says that everything is as it was written, after a crash too', async () => {
    await server.stop('SIGKILL');
    await serve();
    const { status, report } = await verify();
    expect([status, report]).toMatchObject([0, { intact: true, first_seq: 1, problem: null }]);
    expect(statSync(sandbox.path('serve', 'audit.key')).mode & 0o777).toBe(0o600);
    const told = await sandbox.orch(['audit', 'verify', '--since', report.checkpoint?.text ?? '']);
    expect(told).toMatchObject({ status: 0, stderr: '' });
    expect(told.stdout).toContain('The given checkpoint is of this log');
  });

  it.each([
    ['altered', "update audit_events set actor_name = 'nobody' where seq = 4", 4],
    ['missing', 'delete from audit_events where seq = 4', 4],
    [
      'out_of_order',
      'update audit_events set seq = 1000 where seq = 4; update audit_events set seq = 4 where seq = 6; ' +
        'update audit_events set seq = 6 where seq = 1000',
      4,
    ],
  ])('names the first event that is %s', async (what, statement, seq) => {
    const before = await copied();
    await tampered(statement);
    expect(await verify()).toMatchObject({ status: 1, report: { intact: false, problem: { what, seq } } });
    const told = await sandbox.orch(['audit', 'verify']);
    expect(told.status).toBe(1);
    expect(told.stdout).toContain(`The audit log is broken: event ${seq} is `);
    expect(server.output()).not.toContain('"level":"fatal"');
    await restored(before);
    expect((await verify()).status).toBe(0);
  });

  it('finds an end that was cut off: by its own checkpoint, and by one that was kept elsewhere', async () => {
    const before = await copied();
    const { report } = await verify();
    const kept = report.checkpoint?.text ?? '';
    const last = report.last_seq ?? 0;
    await tampered(`delete from audit_events where seq > ${last - 3}`);
    expect(server.output()).toContain('the audit log is not as it was written');
    expect(await verify()).toMatchObject({ status: 1, report: { problem: { what: 'missing', seq: last - 2 } } });
    await restored(before);
    await tampered(`delete from audit_events where seq > ${last - 3}`, 'delete from audit_marks');
    expect((await verify()).status).toBe(0);
    expect(await verify('--since', kept)).toMatchObject({ status: 1, report: { since: { found: 'not_confirmed' } } });
    await restored(before);
    expect((await verify('--since', kept)).status).toBe(1);
  });

  it('refuses to start with a key file that others can read, and goes on with a new one when it is gone', async () => {
    const key = sandbox.path('serve', 'audit.key');
    await server.stop();
    chmodSync(key, 0o644);
    const refused = await sandbox.orch(['serve', '--data-dir', sandbox.path('serve'), '--api-port', '0']);
    expect([refused.status, refused.stdout + refused.stderr]).toEqual([1, expect.stringContaining('audit.key')]);
    rmSync(key);
    await serve();
    expect(existsSync(key)).toBe(true);
    expect((await verify()).status).toBe(0);
    const { events } = await sandbox.json<{ events: readonly AuditEvent[] }>(['audit', '--type', 'audit.key_changed']);
    expect(events).toMatchObject([{ severity: 'critical', actor: { type: 'system' } }]);
  });
});

describe('orch audit prune', () => {
  it('leaves a log that still verifies, and an event that tells of it', async () => {
    const time = new Date().toISOString();
    await change(30);
    const { deleted } = await sandbox.json<{ deleted: number }>(['audit', 'prune', '--before', time, '--yes']);
    expect(deleted).toBeGreaterThan(10);
    expect(await verify()).toMatchObject({ status: 0, report: { pruned: { seq: deleted }, first_seq: deleted + 1 } });
    await server.stop('SIGKILL');
    await serve();
    expect(await verify()).toMatchObject({ status: 0, report: { first_seq: deleted + 1 } });
    const { events } = await sandbox.json<{ events: readonly AuditEvent[] }>(['audit', '--category', 'audit.']);
    expect(events.at(-2)).toMatchObject({ event_type: 'audit.pruned', metadata: { count: deleted } });
    await tampered("update audit_marks set seq = seq - 1 where kind = 'cut'");
    expect((await verify()).report.problem).toMatchObject({ what: 'bad_signature' });
  });
});
