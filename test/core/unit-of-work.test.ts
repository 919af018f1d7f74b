import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { getMeta, setMeta } from '../../daemon/database/meta.js';
import type { Queryable } from '../../daemon/database/schema.js';
import { Fault } from '../../src/kernel/fault.js';
import { event, writerOf } from '../support/audit.js';
import { openStore, rejection } from '../support/database.js';
import { refuseWrites } from '../support/store-lab.js';

const auditCount = async (db: Queryable) => (await verifyChain(db)).verified;

describe('a unit of work', () => {
  it('commits the change with its events, and publishes them before it is done', async () => {
    const { writer, published, db } = writerOf(await openStore());
    const result = await writer.write(async (tx, emit) => {
      emit(event({ summary: 'first' }));
      await setMeta(tx, 'a', '1');
      emit(event({ summary: 'second', metadata: { request_id: 'r' } }));
      expect(published).toEqual([]);
      return 42;
    });
    expect(result).toBe(42);
    expect(published).toMatchObject([
      { seq: 1, summary: 'first', type: 'orchestrator.started' },
      { seq: 2, summary: 'second', metadata: { request_id: 'r' } },
    ]);
    expect(await getMeta(db, 'a')).toBe('1');
    expect(await auditCount(db)).toBe(2);
  });

  it('that fails leaves neither the change nor an event', async () => {
    const { writer, published, db } = writerOf(await openStore());
    const failing = writer.write(async (tx, emit) => {
      await setMeta(tx, 'a', '1');
      emit(event());
      throw new Fault('name_taken', 'taken');
    });
    expect(await rejection(failing)).toMatchObject({ code: 'name_taken' });
    expect(await getMeta(db, 'a')).toBeNull();
    expect(await auditCount(db)).toBe(0);
    expect(published).toEqual([]);
  });

  it('does not happen when its event cannot be written', async () => {
    const { writer, db } = writerOf(await openStore());
    await refuseWrites(db, { table: 'audit_events', kind: 'insert', message: 'no audit today' });
    const failing = writer.write(async (tx, emit) => {
      await setMeta(tx, 'a', '1');
      emit(event());
    });
    await expect(failing).rejects.toThrow('no audit today');
    expect(await getMeta(db, 'a')).toBeNull();
    await writer.write((tx) => setMeta(tx, 'b', '2'));
    expect(await getMeta(db, 'b')).toBe('2');
  });

  it('does its work in the order of the calls, each seeing what those before it did', async () => {
    const { writer, published } = writerOf(await openStore());
    const counts = await Promise.all(
      Array.from({ length: 200 }, () =>
        writer.write(async (tx, emit) => {
          const count = Number((await getMeta(tx, 'count')) ?? 0) + 1;
          await setMeta(tx, 'count', String(count));
          emit(event({ summary: String(count) }));
          return count;
        }),
      ),
    );
    expect(counts).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
    expect(published.map(({ seq, summary }) => [seq, summary])).toEqual(counts.map((count) => [count, String(count)]));
  });

  it('that fails among others takes none of them with it', async () => {
    const { writer, published, db } = writerOf(await openStore());
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, index) =>
        writer.write(async (tx, emit) => {
          await setMeta(tx, `n-${index}`, '1');
          emit(event({ summary: `${index}` }));
          if (index % 3 === 1) throw new Error(`${index} fails`);
        }),
      ),
    );
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(10);
    expect(published).toHaveLength(20);
    const rows = await db.selectFrom('meta').select('key').where('key', 'like', 'n-%').execute();
    expect(rows).toHaveLength(20);
    expect(await verifyChain(db)).toMatchObject({ verified: 20, broken: null });
  });

  it('shares the commit with others that wait, and none with those that come later', async () => {
    const { writer, published } = writerOf(await openStore());
    const committedBefore: number[] = [];
    const unit = () =>
      writer.write(async (_tx, emit) => {
        committedBefore.push(published.length);
        emit(event());
      });
    await Promise.all(Array.from({ length: 64 }, unit));
    await unit();
    expect(committedBefore).toEqual([...Array.from({ length: 64 }, () => 0), 64]);
  });

  it('fails as a whole, with the others of its commit, when the store rolls back by itself', async () => {
    const { writer, db } = writerOf(await openStore());
    const outcomes = await Promise.allSettled([
      writer.write((tx) => setMeta(tx, 'a', '1')),
      writer.write(async (tx) => {
        await sql`rollback`.execute(tx);
        throw new Error('odd');
      }),
      writer.write((tx) => setMeta(tx, 'b', '1')),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ reason: { code: 'store_unavailable' } });
    expect([await getMeta(db, 'a'), await getMeta(db, 'b')]).toEqual([null, '1']);
  });

  it('is refused when the store is closed', async () => {
    const store = await openStore();
    const { writer } = writerOf(store);
    await store.close();
    await expect(writer.write((tx) => setMeta(tx, 'a', '1'))).rejects.toThrow();
    await expect(writer.write((tx) => setMeta(tx, 'a', '1'))).rejects.toThrow();
  });
});
