/** The end of the audit log beside the database. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AuditHead, lostEvents, lostEventsFault, readHead } from '../../daemon/audit/audit-head.js';
import { readChainHead } from '../../daemon/core/audit-log.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { auditOf, event, newAuditKey } from '../support/audit.js';
import { openStore, recordingLogger, temporaryDirectory } from '../support/database.js';

async function bench() {
  const store = await openStore();
  const log = auditOf(store);
  const file = join(temporaryDirectory(), 'audit.head');
  const { key, clock, db } = log;
  const head = new AuditHead({ file, key, clock, logger: silentLogger });
  head.open(1, await readChainHead(db));
  const write = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      await log.emit(event());
      head.committed(await readChainHead(db));
    }
    await head.close();
    head.open(1, await readChainHead(db));
  };
  return { ...log, file, head, write };
}

describe('the end of the audit log in a file', () => {
  it('is that of the store, also when a write to it was torn', async () => {
    const { db, key, file, head, emit } = await bench();
    expect(readHead(file, key)).toBeNull();
    for (let n = 0; n < 3; n += 1) {
      await emit(event());
      head.committed(await readChainHead(db));
    }
    await head.close();
    expect(readHead(file, key)?.seq).toBe(3);
    const bytes = readFileSync(file);
    expect(bytes).toHaveLength(1024);
    const newest = bytes.subarray(0, 512).includes('.3.') ? 0 : 512;
    bytes.fill(0, newest + 100, newest + 300);
    writeFileSync(file, bytes);
    expect(readHead(file, key)?.seq).toBe(2);
    expect(await lostEvents(db, { file, key, isBeside: true })).toBeNull();
  });

  it('tells of a store that ends before it, or has another event there, and not of one that was pruned', async () => {
    const { db, key, file, write, clock, pruning, emit } = await bench();
    await write(5);
    const kept = readFileSync(file);
    const older = auditOf(await openStore(), { key });
    expect(await lostEvents(older.db, { file, key, isBeside: true })).toMatchObject({
      missing: 5,
      last_seq: 0,
      expected_seq: 5,
    });
    for (let n = 0; n < 4; n += 1) await older.emit(event());
    const lost = await lostEvents(older.db, { file, key, isBeside: true });
    expect(lost).toMatchObject({ missing: 1, last_seq: 4 });
    if (lost !== null) expect(lostEventsFault('/data', lost).message).toContain('its newest event is missing');
    await older.emit(event({ summary: 'something else' }));
    expect(await lostEvents(older.db, { file, key, isBeside: true })).toMatchObject({
      missing: 0,
      last_seq: 5,
    });
    expect(await lostEvents(older.db, { file, key: newAuditKey(), isBeside: true })).toBeNull();

    clock.advance(1000);
    const before = clock.now();
    await emit(event());
    const context = { actor: event().actor, rights: ALL_RIGHTS, requestId: 'r', address: null };
    expect(await pruning.prune(before, context, new AbortController().signal)).toBe(5);
    writeFileSync(file, kept);
    expect(await lostEvents(db, { file, key, isBeside: true })).toBeNull();
  });

  it('keeps no commit from standing when it cannot be written', async () => {
    const { db, key, clock, emit } = await bench();
    const logger = recordingLogger();
    const head = new AuditHead({ file: join(temporaryDirectory(), 'missing', 'audit.head'), key, clock, logger });
    head.open(1, await readChainHead(db));
    await emit(event());
    head.committed(await readChainHead(db));
    await head.close();
    expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('could not be noted') }]);
  });
});
