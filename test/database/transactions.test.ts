import { setImmediate } from 'node:timers/promises';
import type { Transaction } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { getMeta, setMeta } from '../../daemon/database/meta.js';
import type { Database, Queryable } from '../../daemon/database/schema.js';
import { ConnectionQueue } from '../../daemon/database/sqlite/sqlite-dialect.js';
import { storeDriverOf } from '../../daemon/database/store-driver.js';
import { openStore, rejection } from '../support/database.js';
import { itOnSqlite } from '../support/store.js';

/** Writes in one transaction, as the unit of work does. */
const write = <T>(db: Queryable, work: (tx: Transaction<Database>) => Promise<T>): Promise<T> =>
  storeDriverOf(db).transact(work, { lastEventIdOf: () => null, onDoubt: () => undefined });

describe('transactions of concurrent requests', () => {
  it('queue in the order they came', async () => {
    const { db } = await openStore();
    const order: string[] = [];
    const transaction = (name: string) =>
      write(db, async (tx) => {
        order.push(`${name} begins`);
        await setMeta(tx, name, '1');
        await getMeta(tx, name);
        order.push(`${name} ends`);
      });
    await Promise.all(['a', 'b', 'c'].map(transaction));
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('do not lose updates', async () => {
    const { db } = await openStore();
    await setMeta(db, 'count', '0');
    const increment = () =>
      write(db, async (tx) => {
        await setMeta(tx, 'count', String(Number(await getMeta(tx, 'count')) + 1));
      });
    await Promise.all(Array.from({ length: 100 }, increment));
    expect(await getMeta(db, 'count')).toBe('100');
  });

  it('are not seen by others before they commit, nor ever when they fail', async () => {
    const { db } = await openStore();
    await setMeta(db, 'state', 'before');
    const failing = write(db, async (tx) => {
      await setMeta(tx, 'state', 'within');
      await getMeta(tx, 'state');
      throw new Error('changed my mind');
    });
    const seen = getMeta(db, 'state');
    await expect(failing).rejects.toThrow('changed my mind');
    expect(await seen).toBe('before');
    expect(await getMeta(db, 'state')).toBe('before');
  });

  it('leave the connection in order when a statement is wrong', async () => {
    const { db } = await openStore();
    const wrong = write(db, (tx) =>
      tx
        .insertInto('modules')
        .values({} as never)
        .execute(),
    );
    await expect(wrong).rejects.toThrow();
    await setMeta(db, 'a', '1');
    expect(await getMeta(db, 'a')).toBe('1');
  });

  itOnSqlite('that ask the database instead of themselves are told so, and the others go on', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { db } = await openStore();
      const stuck = db.transaction().execute(async (tx) => {
        await setMeta(tx, 'a', '1');
        await getMeta(db, 'a');
      });
      await setImmediate();
      const other = setMeta(db, 'b', '2');
      vi.advanceTimersByTime(9000);
      await setImmediate();
      const late = getMeta(db, 'b');
      vi.advanceTimersByTime(1500);
      expect(await rejection(stuck)).toMatchObject({
        code: 'store_unavailable',
        message: 'the store was busy for 10 seconds',
      });
      expect(await rejection(other)).toMatchObject({ code: 'store_unavailable' });
      expect(await late).toBeNull();
      expect(await getMeta(db, 'a')).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the queue for the connection', () => {
  it('lets the rest of the process have a turn during a long stretch of work', async () => {
    const queue = new ConnectionQueue();
    let rounds = 0;
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        await setImmediate();
        rounds += 1;
      }
    })();
    const giveUp = performance.now() + 20_000;
    while (rounds < 3 && performance.now() < giveUp) {
      await queue.acquire();
      queue.release();
    }
    isOver = true;
    await others;
    expect(rounds).toBeGreaterThanOrEqual(3);
  });
});
