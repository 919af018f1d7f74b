import { createHash } from 'node:crypto';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { GENESIS_HASH } from '../../daemon/core/audit-log.js';
import { lastAuditRow, readAuditChain } from '../../daemon/core/audit-store.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { isUlid } from '../../src/kernel/ids.js';
import { event, writerOf } from '../support/audit.js';
import { ManualClock, newIds, openStore, temporaryDirectory } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';
import { StoreLab } from '../support/store-lab.js';

/** A closed store with ten events, the ways to tamper with it, and its check. */
async function tenEvents() {
  const file = join(temporaryDirectory(), 'orch.db');
  const store = await openStore({ file });
  const { emit } = writerOf(store);
  for (let n = 1; n <= 10; n += 1) await emit(event({ summary: `event ${n}`, metadata: { n } }));
  const last = await lastAuditRow(store.db);
  await store.close();
  return {
    last: { seq: last?.seq ?? 0, hash: last?.hash ?? '' },
    tamper: (...statements: readonly string[]) => new StoreLab(file).tamper(...statements),
    verify: async (since?: { readonly seq: number; readonly hash: string }) => {
      const reopened = await openStore({ file });
      const report = await verifyChain(reopened.db, since);
      await reopened.close();
      return report;
    },
  };
}

describe('the audit log', () => {
  it('is a chain that anyone can check', async () => {
    const { emit, db } = writerOf(await openStore());
    await emit(
      event({ summary: 'one', metadata: { b: 1, a: [true, null] } }),
      event({ type: 'agent.pending', summary: 'two' }),
    );
    const [one, two] = await readAuditChain(db, 0, 10);
    expect(one).toMatchObject({ seq: 1, severity: 'info', metadata_json: '{"a":[true,null],"b":1}' });
    expect(two).toMatchObject({ seq: 2, severity: 'notice' });
    expect(isUlid(one?.id ?? '')).toBe(true);
    const party = '{"id":"system","name":"orchestrator","type":"system"}';
    const json =
      `{"actor":${party},"event_type":"orchestrator.started","id":"${one?.id}","metadata":{"a":[true,null],"b":1},` +
      `"seq":1,"severity":"info","summary":"one","target":${party},"timestamp":${one?.timestamp}}`;
    const hash = createHash('sha256').update(Buffer.alloc(32)).update(json).digest('hex');
    expect(one?.hash).toBe(hash);
    expect(GENESIS_HASH).toBe('0'.repeat(64));
    expect(await verifyChain(db)).toEqual({ verified: 2, head: { seq: 2, hash: two?.hash }, broken: null });
  });

  it('is in order when it is empty', async () => {
    const { db } = await openStore();
    expect(await verifyChain(db)).toMatchObject({ verified: 0, broken: null });
  });

  it('has IDs that never go back, and times that follow only a clock that was set back far', async () => {
    const file = join(temporaryDirectory(), 'orch.db');
    const wall = Date.parse('2026-03-01T12:00:00Z');
    for (const time of [wall, wall - 86_400_000, wall - 1, wall + 5]) {
      const store = await openStore({ file });
      const clock = new ManualClock(time);
      const writer = new TransactionalWriter({ db: store.db, clock, newId: newIds(clock), publish: () => undefined });
      for (let n = 0; n < 3; n += 1) await writer.write(async (_tx, emit) => emit(event()));
      clock.setWall(time - 1000);
      await writer.write(async (_tx, emit) => emit(event()));
      await store.close();
    }
    const { db } = await openStore({ file });
    const rows = await readAuditChain(db, 0, 100);
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
    for (const [index, row] of rows.slice(1).entries()) {
      expect(row.id > (rows[index]?.id ?? '')).toBe(true);
    }
    const yesterday = wall - 86_400_000;
    const same = (time: number) => Array.from({ length: 4 }, () => time);
    const times = [same(wall), same(yesterday), same(wall - 1), same(wall + 5)].flat();
    expect(rows.map(({ timestamp }) => timestamp)).toEqual(times);
    expect((await verifyChain(db)).broken).toBeNull();
  });

  it('keeps any text that agents and operators make up (property)', async () => {
    const { emit, db } = writerOf(await openStore());
    const text = fc.string({ unit: 'binary' });
    await fc.assert(
      fc.asyncProperty(text, text, fc.dictionary(text, fc.jsonValue()), async (summary, name, metadata) => {
        await emit(
          event({
            summary: `${summary}\ud800`,
            target: { id: name, name: `${name}\udc00x`, type: 'agent' },
            metadata: JSON.parse(JSON.stringify(metadata)),
          }),
        );
        expect((await verifyChain(db)).broken).toBeNull();
      }),
      { numRuns: drawn(100) },
    );
  });
});

describe('tampering with the audit log', () => {
  it('is not seen where there is none', async () => {
    const { verify, last } = await tenEvents();
    expect(await verify()).toEqual({ verified: 10, head: last, broken: null });
    expect(await verify(last)).toEqual({ verified: 0, head: last, broken: null });
  });

  it.each([
    ['summary', "update audit_events set summary = 'nothing' where seq = 4"],
    ['actor', "update audit_events set actor_id = 'mallory' where seq = 4"],
    ['target', "update audit_events set target_name = 'mallory' where seq = 4"],
    ['type', "update audit_events set event_type = 'agent.pending' where seq = 4"],
    ['severity', "update audit_events set severity = 'critical' where seq = 4"],
    ['time', 'update audit_events set timestamp = timestamp + 1 where seq = 4'],
    ['metadata', `update audit_events set metadata_json = '{"n":5}' where seq = 4`],
    ['metadata that are no JSON', "update audit_events set metadata_json = '{' where seq = 4"],
    ['hash', "update audit_events set hash = replace(hash, substr(hash, 1, 1), 'x') where seq = 4"],
  ])('by another %s is found at that event', async (_what, statement) => {
    const { tamper, verify } = await tenEvents();
    tamper(statement);
    const report = await verify();
    expect(report).toMatchObject({ verified: 3, head: { seq: 3 }, broken: { seq: 4, what: 'altered' } });
    expect(isUlid(report.broken?.id ?? '')).toBe(true);
  });

  it('by deleting an event is found where it was', async () => {
    const { tamper, verify } = await tenEvents();
    tamper('delete from audit_events where seq = 4');
    expect(await verify()).toMatchObject({ verified: 3, broken: { seq: 4, id: null, what: 'missing' } });
  });

  it('by deleting an event and closing the gap is found', async () => {
    const { tamper, verify } = await tenEvents();
    tamper('delete from audit_events where seq = 4', 'update audit_events set seq = seq - 1 where seq > 4');
    expect(await verify()).toMatchObject({ verified: 3, broken: { seq: 4, what: 'altered' } });
  });

  it('by deleting the first events is found', async () => {
    const { tamper, verify } = await tenEvents();
    tamper('delete from audit_events where seq < 3');
    expect(await verify()).toMatchObject({ verified: 0, broken: { seq: 1, what: 'missing' } });
  });

  it('by exchanging two events is found at the first', async () => {
    const { tamper, verify } = await tenEvents();
    tamper(
      'update audit_events set seq = 100 where seq = 4',
      'update audit_events set seq = 4 where seq = 7',
      'update audit_events set seq = 7 where seq = 100',
    );
    expect(await verify()).toMatchObject({ verified: 3, broken: { seq: 4, what: 'out_of_order' } });
  });

  it('by cutting off the newest is found by who knows one of them', async () => {
    const { tamper, verify, last } = await tenEvents();
    tamper('delete from audit_events where seq > 7');
    expect(await verify()).toMatchObject({ verified: 7, broken: null });
    expect(await verify(last)).toMatchObject({ broken: { seq: 10, what: 'missing' } });
    expect(await verify({ seq: 5, hash: 'f'.repeat(64) })).toMatchObject({ broken: { seq: 5, what: 'altered' } });
  });
});

describe('a long audit log', () => {
  it('is checked in slices', async () => {
    const { emit, db } = writerOf(await openStore());
    await emit(...Array.from({ length: 1000 }, () => event()));
    expect(await verifyChain(db)).toMatchObject({ verified: 1000, broken: null });
    await emit(...Array.from({ length: 501 }, () => event()));
    const [middle] = await readAuditChain(db, 999, 1);
    expect(await verifyChain(db, middle)).toMatchObject({ verified: 501, head: { seq: 1501 }, broken: null });
  });
});
