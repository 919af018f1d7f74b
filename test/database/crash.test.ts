import { spawn, spawnSync } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { SYSTEM } from '../../daemon/core/domain-event.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { getMeta, setMeta } from '../../daemon/database/meta.js';
import type { Queryable } from '../../daemon/database/schema.js';
import { isFault } from '../../src/kernel/fault.js';
import { ManualClock, newIds, openStore, rejection, temporaryDirectory } from '../support/database.js';
import { fill, skipped, tinyDisk } from '../support/tiny-disk.js';

const ROUNDS = 8;

/** Lets another process commit for a while, kills it, and returns the numbers whose commits it saw acknowledged. */
async function commitUntilKilled(file: string, from: number, ms: number): Promise<readonly number[]> {
  const program = fileURLToPath(new URL('programs/commit-forever.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, file, String(from)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  const isCommitting = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      output += chunk;
      resolve();
    });
  });
  const ended = new Promise((resolve) => child.on('close', (_code, signal) => resolve(signal)));
  await Promise.race([isCommitting, ended]);
  await sleep(ms);
  child.kill('SIGKILL');
  expect(await ended).toBe('SIGKILL');
  return output.slice(0, output.lastIndexOf('\n')).split('\n').map(Number);
}

const numbersIn = async (db: Queryable): Promise<readonly number[]> => {
  const rows = await db.selectFrom('meta').select('key').where('key', 'like', 'n-%').execute();
  return rows.map(({ key }) => Number(key.slice(2)));
};

describe('a process that is killed in the middle of commits', () => {
  it(`loses none that was acknowledged, in ${ROUNDS} rounds`, async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    const acknowledged = new Set<number>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const from = round * 1_000_000;
      for (const number of await commitUntilKilled(file, from, 20 + round * 15)) acknowledged.add(number);
      const store = await openStore({ file });
      const stored = await numbersIn(store.db);
      expect([...acknowledged].filter((number) => !stored.includes(number))).toEqual([]);
      const report = await verifyChain(store.db);
      expect(report).toMatchObject({ verified: stored.length, broken: null });
      await store.close();
    }
    expect(acknowledged.size).toBeGreaterThan(ROUNDS);
  });
});

describe('a disk that fails', () => {
  it('ends the process at once, and what it had acknowledged is there', async (context) => {
    const strace = spawnSync('strace', ['-V'], { encoding: 'utf8' });
    if (strace.status !== 0) return context.skip(skipped('strace is not on this machine').reason);
    const directory = temporaryDirectory();
    const file = join(directory, 'orch.db');
    const program = fileURLToPath(new URL('programs/commit-forever.mjs', import.meta.url));
    const inject = ['-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:error=EIO:when=40+'];
    const { status, stdout, stderr } = spawnSync(
      'strace',
      ['-f', '-o', join(directory, 'trace'), ...inject, process.execPath, program, file, '0'],
      { encoding: 'utf8', timeout: 30_000 },
    );
    if (stderr.includes('ptrace')) return context.skip(skipped(`strace may not trace here: ${stderr.trim()}`).reason);
    expect(status).toBe(70);
    const acknowledged = stdout.trim().split('\n').map(Number);
    expect(acknowledged.length).toBeGreaterThan(1);
    const { db } = await openStore({ file });
    const stored = await numbersIn(db);
    expect(acknowledged.filter((number) => !stored.includes(number))).toEqual([]);
    expect(await verifyChain(db)).toMatchObject({ verified: stored.length, broken: null });
  });
});

describe('a full disk', () => {
  it('refuses writes as a whole, keeps reading, and is over when there is room again', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const ballast = join(disk.path, 'ballast');
    const file = join(disk.path, 'orch.db');
    const store = await openStore({ file });
    const { db } = store;
    const published: string[] = [];
    const publish = ({ summary }: { readonly summary: string }) => void published.push(summary);
    const writer = new TransactionalWriter({ db, clock: new ManualClock(), newId: newIds(), publish });
    const write = (number: number) =>
      writer.write(async (tx, emit) => {
        await setMeta(tx, `n-${number}`, 'x'.repeat(5000));
        emit({ type: 'orchestrator.started', actor: SYSTEM, target: SYSTEM, summary: `${number}`, metadata: {} });
      });
    await write(0);
    fill(ballast);

    const outcomes = await Promise.allSettled(Array.from({ length: 300 }, (_, index) => write(index + 1)));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.every((reason) => isFault(reason, 'store_unavailable'))).toBe(true);
    expect(refused[0]).toMatchObject({
      message: 'the disk of the data directory is full, nothing was written',
      hint: 'free some space there, then try again',
    });
    const done = 301 - refused.length;
    expect(await numbersIn(db)).toHaveLength(done);
    expect(await verifyChain(db)).toMatchObject({ verified: done, broken: null });
    expect(published).toHaveLength(done);

    rmSync(ballast);
    await write(1000);
    expect(await numbersIn(db)).toContain(1000);
    expect(await sql`pragma quick_check`.execute(db)).toMatchObject({ rows: [{ quick_check: 'ok' }] });
  });

  it('does not keep the store from being opened and read', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    const file = join(disk.path, 'orch.db');
    const before = await openStore({ file });
    await setMeta(before.db, 'epoch', '3');
    await before.close();
    fill(join(disk.path, 'ballast'));
    const { db } = await openStore({ file });
    expect(await getMeta(db, 'epoch')).toBe('3');
    expect(await rejection(setMeta(db, 'big', 'x'.repeat(100_000)))).toMatchObject({ code: 'store_unavailable' });
    expect(statSync(file).size).toBeGreaterThan(0);
  });

  it('keeps a new store from being made, in plain words', async (context) => {
    const disk = tinyDisk();
    if ('reason' in disk) return context.skip(disk.reason);
    fill(join(disk.path, 'ballast'));
    expect(await rejection(openStore({ file: join(disk.path, 'orch.db') }))).toMatchObject({
      code: 'store_unavailable',
      message: 'the disk of the data directory is full, nothing was written',
    });
  });
});
