import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { firstAuditSeq, readAuditChain } from '../../daemon/core/audit-store.js';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { auditOf, event, newAuditKey, operatorParty } from '../support/audit.js';
import { ManualClock, openStore, temporaryDirectory } from '../support/database.js';

const never = new AbortController().signal;
const ada: RequestContext = { actor: operatorParty('ada'), rights: ALL_RIGHTS, requestId: 'request-1', address: null };
const DAY = 86_400_000;

/** A log with an event on each of some days, and one now. */
async function daily(days: number, options: Parameters<typeof auditOf>[1] = {}) {
  const clock = new ManualClock(Date.parse('2026-03-01T12:00:00Z'));
  const audit = auditOf(await openStore(), { clock, ...options });
  for (let day = 0; day < days; day += 1) {
    await audit.emit(event({ summary: `day ${day}` }));
    clock.advance(DAY);
  }
  const summaries = async () => (await readAuditChain(audit.db, 0, 10_000)).map(({ summary }) => summary);
  return { ...audit, clock, summaries, intact: async () => (await verification(audit)).intact };
}

const verification = (audit: ReturnType<typeof auditOf>) => audit.verification.run({ since: null, signal: never });

describe('pruning the audit log', () => {
  it('deletes what is older than a time, and the rest still verifies', async () => {
    const log = await daily(5);
    expect(await log.pruning.prune(Date.parse('2026-03-04T12:00:00Z'), ada, never)).toBe(3);
    expect(await log.summaries()).toEqual([
      'day 3',
      'day 4',
      '3 audit events from before 2026-03-04T12:00:00.000Z were deleted',
    ]);
    const [, , pruned] = await readAuditChain(log.db, 0, 10);
    expect(pruned).toMatchObject({ event_type: 'audit.pruned', actor_name: 'ada', target_type: 'audit' });
    expect(JSON.parse(pruned?.metadata_json ?? '')).toEqual({
      count: 3,
      before: '2026-03-04T12:00:00.000Z',
      first_seq: 1,
      last_seq: 3,
      request_id: 'request-1',
    });
    expect(await verification(log)).toMatchObject({ intact: true, first_seq: 4, last_seq: 6, pruned: { seq: 3 } });
  });

  it('can delete everything, and the log goes on', async () => {
    const log = await daily(3);
    expect(await log.pruning.prune(Date.parse('2100-01-01'), ada, never)).toBe(3);
    expect(await log.pruning.prune(Date.parse('2100-01-01'), ada, never)).toBe(1);
    expect(await log.pruning.prune(0, ada, never)).toBe(0);
    await log.emit(event({ summary: 'more' }));
    expect(await log.summaries()).toEqual([
      '1 audit event from before 2100-01-01T00:00:00.000Z was deleted',
      '0 audit events from before 1970-01-01T00:00:00.000Z were deleted',
      'more',
    ]);
    expect(await verification(log)).toMatchObject({ intact: true, first_seq: 5, last_seq: 7 });
  });

  it('leaves a note that only the key can make', async () => {
    const log = await daily(5);
    await log.pruning.prune(Date.parse('2026-03-04T12:00:00Z'), ada, never);
    const other = auditOf(log, { key: newAuditKey(), clock: log.clock });
    expect(await verification(other)).toMatchObject({ intact: false, problem: { what: 'bad_signature', seq: 3 } });
    await log.db.deleteFrom('audit_marks').execute();
    expect(await verification(log)).toMatchObject({ problem: { what: 'missing', seq: 1 } });
  });

  it('is one decision: rows that are left by a crash go later, and are not missed', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    const clock = new ManualClock();
    const key = newAuditKey();
    const store = await openStore({ file });
    const log = auditOf(store, { clock, key });
    await log.emit(...Array.from({ length: 1000 }, () => event()));
    clock.advance(1000);
    await log.emit(event({ summary: 'new' }));
    expect(await log.pruning.prune(clock.now(), ada, AbortSignal.abort())).toBe(1000);
    expect(await firstAuditSeq(log.db)).toBe(1);
    await store.close();
    const again = auditOf(await openStore({ file }), { clock, key });
    expect(await verification(again)).toMatchObject({ intact: true, first_seq: 1001, last_seq: 1002 });
    expect((await verifyChain(again.db)).broken).toBeNull();
    await again.pruning.run();
    expect(await firstAuditSeq(again.db)).toBe(1001);
    expect(await verification(again)).toMatchObject({ intact: true, events: 2 });
  });

  it('leaves other work its turn', async () => {
    const log = auditOf(await openStore());
    for (let n = 0; n < 10; n += 1) await log.emit(...Array.from({ length: 2000 }, () => event()));
    let rounds = 0;
    let running = true;
    const count = () => {
      rounds += 1;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    expect(await log.pruning.prune(Number.MAX_SAFE_INTEGER / 2 ** 12, ada, never)).toBe(20_000);
    running = false;
    expect(rounds).toBeGreaterThanOrEqual(80);
    expect(await firstAuditSeq(log.db)).toBe(20_001);
  });
});

describe('the retention of the audit log', () => {
  it('is that of the configuration until it is set, and stays set', async () => {
    let standard: number | null = 90;
    const log = await daily(1, { retentionDays: () => standard });
    expect(await log.retention.days()).toBe(90);
    standard = 30;
    expect(await log.retention.days()).toBe(30);
    await log.retention.set(7, ada);
    standard = 1;
    expect(await log.retention.days()).toBe(7);
    await log.retention.set(null, ada);
    expect(await log.retention.days()).toBeNull();
    const [, first, second] = await readAuditChain(log.db, 0, 10);
    expect(first).toMatchObject({
      event_type: 'audit.retention_changed',
      summary: 'ada set audit events to be kept for 7 days, before for 30 days',
    });
    expect(JSON.parse(second?.metadata_json ?? '')).toEqual({ before: 7, after: null, request_id: 'request-1' });
  });

  it('deletes old events once a day, and tells of it once', async () => {
    const log = await daily(5, { retentionDays: () => 3 });
    await log.pruning.run();
    await log.pruning.run();
    expect(await log.summaries()).toEqual([
      'day 2',
      'day 3',
      'day 4',
      '2 audit events from before 2026-03-03T00:00:00.000Z were deleted',
    ]);
    log.clock.advance(DAY);
    await log.pruning.run();
    expect((await log.summaries())[0]).toBe('day 3');
    expect(await log.intact()).toBe(true);
  });

  it('deletes nothing when it is turned off, or nothing is old', async () => {
    const off = await daily(5, { retentionDays: () => null });
    await off.pruning.run();
    expect(await off.summaries()).toHaveLength(5);
    const young = await daily(5, { retentionDays: () => 30 });
    await young.pruning.run();
    expect(await young.summaries()).toHaveLength(5);
  });

  it('that is made shorter holds from the next round on', async () => {
    const log = await daily(5, { retentionDays: () => 4 });
    await log.pruning.run();
    await log.retention.set(1, ada);
    await log.pruning.run();
    expect((await log.summaries())[0]).toContain('day 4');
  });
});
