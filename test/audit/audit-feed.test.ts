import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FollowOptions } from '../../daemon/audit/audit-feed.js';
import { readAuditPage } from '../../daemon/audit/audit-reader.js';
import type { EventType } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { isFault } from '../../src/kernel/fault.js';
import { agentParty, auditOf, event, operatorParty } from '../support/audit.js';
import { openStore } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';
import { until } from '../support/until.js';

type Start = Partial<Pick<FollowOptions, 'filter' | 'after' | 'behind'>>;

async function scene() {
  const audit = auditOf(await openStore());
  await audit.feed.start();
  onTestFinished(() => audit.feed.stop());
  /** A reader that keeps what it gets until it is ended. */
  const follow = async (start: Start = {}) => {
    const controller = new AbortController();
    const pages = audit.feed.follow({ filter: {}, after: null, behind: null, ...start, signal: controller.signal });
    const got: { readonly id: string; readonly summary: string }[] = [];
    const first = await pages.next();
    const reading = (async () => {
      for await (const { events } of pages) got.push(...events);
    })();
    onTestFinished(() => controller.abort());
    return {
      got,
      place: first.value?.place ?? null,
      end: async () => {
        controller.abort();
        await reading;
      },
      reading,
      until: async (count: number) => {
        await until(() => got.length >= count, `${count} events have come`);
        return got.map(({ summary }) => summary);
      },
    };
  };
  const tell = (...summaries: readonly string[]) => audit.emit(...summaries.map((summary) => event({ summary })));
  return { ...audit, follow, tell };
}

describe('the feed of the audit log', () => {
  it('gives what is written from now on', async () => {
    const { follow, tell } = await scene();
    await tell('before');
    const reader = await follow();
    await tell('one', 'two');
    await tell('three');
    expect(await reader.until(3)).toEqual(['one', 'two', 'three']);
    await reader.end();
    await tell('four');
    expect(reader.got).toHaveLength(3);
  });

  it('begins behind an event, or at a time', async () => {
    const { follow, tell, db, clock } = await scene();
    await tell('one', 'two');
    clock.advance(1000);
    const time = clock.now();
    await tell('three', 'four');
    const { events } = await readAuditPage(db, {}, 10);
    const two = events.find(({ summary }) => summary === 'two')?.id ?? '';
    expect(await (await follow({ behind: two })).until(2)).toEqual(['three', 'four']);
    expect(await (await follow({ after: time })).until(2)).toEqual(['three', 'four']);
    expect(await (await follow({ after: 0 })).until(4)).toHaveLength(4);
    expect((await follow()).place).toBe(events[0]?.id);
    const late = await follow({ behind: '7ZZZZZZZZZZZZZZZZZZZZZZZZZ' });
    await tell('five');
    expect(await late.until(1)).toEqual(['five']);
  });

  it('goes on behind an event that was pruned meanwhile', async () => {
    const { follow, tell, db, clock, pruning } = await scene();
    await tell('one', 'two', 'three');
    const { events } = await readAuditPage(db, {}, 10);
    clock.advance(1000);
    await tell('four');
    const context = { actor: operatorParty('ada'), rights: ALL_RIGHTS, requestId: 'r', address: null };
    await pruning.prune(clock.now(), context, new AbortController().signal);
    const reader = await follow({ behind: events.at(-1)?.id ?? '' });
    expect((await reader.until(2))[0]).toBe('four');
  });

  /** Four events of which all but the last can be pruned, and their IDs. */
  async function prunable() {
    const s = await scene();
    await s.tell('one', 'two', 'three');
    s.clock.advance(1000);
    await s.tell('four');
    const { events } = await readAuditPage(s.db, {}, 10);
    const context = { actor: operatorParty('ada'), rights: ALL_RIGHTS, requestId: 'r', address: null };
    const prune = () => s.pruning.prune(s.clock.now(), context, new AbortController().signal);
    return { ...s, prune, ids: events.map(({ id }) => id).reverse() };
  }

  it('tells a reader that resumes behind a pruned event, and no other', async () => {
    const { feed, prune, ids } = await prunable();
    const firstGap = async (start: Start) => {
      const { signal } = new AbortController();
      const pages = feed.follow({ filter: {}, after: null, behind: null, ...start, signal });
      const { value } = await pages.next();
      await pages.return(undefined);
      return value?.gap ?? null;
    };
    const [one = '', , three = '', four = ''] = ids;
    // Older than every event, and nothing was ever pruned.
    const older = '0'.repeat(26);
    for (const behind of [older, one, three]) expect(await firstGap({ behind })).toBeNull();
    await prune();
    for (const behind of [older, one, three])
      expect(await firstGap({ behind })).toEqual({
        after: behind,
        next: four,
        deleted: null,
        detail: `the audit log no longer has the event ${behind} to go on after, nor any before ${four}: the events between them are missing, if there were any`,
      });
    for (const start of [{ behind: four }, { behind: '7ZZZZZZZZZZZZZZZZZZZZZZZZZ' }, { after: 0 }, {}])
      expect(await firstGap(start)).toBeNull();
  });

  it('tells a reader that was too slow how many events it has missed, and goes on behind them', async () => {
    const { feed, tell, clock, prune } = await prunable();
    const controller = new AbortController();
    const pages = feed.follow({ filter: {}, after: 0, behind: null, signal: controller.signal });
    onTestFinished(() => controller.abort());
    const next = async () => (await pages.next()).value ?? { events: [], place: null, gap: null };
    const summaries = ({ events }: Awaited<ReturnType<typeof next>>) =>
      events.map(({ summary }: { readonly summary: string }) => summary);
    await next();
    const before = await next();
    expect([summaries(before), before.gap]).toEqual([['one', 'two', 'three', 'four'], null]);
    await tell('five', 'six');
    clock.advance(1000);
    await tell('seven');
    await prune();
    const { gap, ...after } = await next();
    expect(summaries({ ...after, gap })[0]).toBe('seven');
    expect(gap).toEqual({
      after: before.place,
      next: after.events[0]?.id,
      deleted: 2,
      detail: `2 events after ${before.place} were deleted from the audit log before they could be sent`,
    });
    await tell('eight');
    const last = await next();
    expect([summaries(last), last.gap]).toEqual([['eight'], null]);
  });

  it('gives only what matters to a reader', async () => {
    const { follow, emit } = await scene();
    const web = agentParty('web-1');
    const ada = operatorParty('ada');
    const told = (type: EventType) => event({ type, summary: type, actor: ada, target: web });
    const readers = [
      await follow({ filter: { agent: web.id } }),
      await follow({ filter: { agent: 'web-1' } }),
      await follow({ filter: { operator: ada.id, category: 'agent.t' } }),
      await follow({ filter: { eventType: 'agent.removed' } }),
    ];
    await emit(event({ summary: 'of nobody' }), told('agent.approved'));
    await emit(told('agent.tags_changed'), told('agent.removed'), event({ summary: 'of nobody' }));
    const all = ['agent.approved', 'agent.tags_changed', 'agent.removed'];
    const expected = [all, all, ['agent.tags_changed'], ['agent.removed']];
    for (const [index, reader] of readers.entries()) {
      const wanted = expected[index] ?? [];
      expect(await reader.until(wanted.length)).toEqual(wanted);
      await reader.end();
    }
  });

  it('leaves nothing out and repeats nothing, however readers come, go and resume while it grows (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ write: fc.integer({ min: 1, max: 30 }), pause: fc.integer({ min: 0, max: 3 }) }), {
          minLength: 3,
          maxLength: 12,
        }),
        fc.integer({ min: 1, max: 40 }),
        async (steps, patience) => {
          const audit = auditOf(await openStore());
          await audit.feed.start();
          const total = steps.reduce((sum, { write }) => sum + write, 0);
          const got: string[] = [];
          let behind: string | null = null;
          const writing = (async () => {
            for (const { write, pause } of steps) {
              await audit.emit(...Array.from({ length: write }, () => event()));
              await setTimeout(pause);
            }
          })();
          // Each reader leaves after a while, in the middle of a page, and the next one goes on behind what it has got.
          for (let reader = 0; got.length < total && reader < 2000; reader += 1) {
            const { signal } = new AbortController();
            let taken = 0;
            const start: FollowOptions = { filter: {}, after: behind === null ? 0 : null, behind, signal };
            reading: for await (const { events } of audit.feed.follow(start)) {
              for (const { id } of events) {
                got.push(id);
                behind = id;
                taken += 1;
                if (taken === patience) break reading;
              }
              if (got.length >= total) break;
            }
          }
          await writing;
          await audit.feed.stop();
          const page = await readAuditPage(audit.db, {}, 1000);
          expect(got).toEqual(page.events.map(({ id }) => id).reverse());
        },
      ),
      { numRuns: drawn(20) },
    );
  });

  it('tells every reader that the orchestrator stops', async () => {
    const { follow, feed } = await scene();
    const reader = await follow();
    const ended = reader.reading.then(
      () => 'quietly',
      (error: unknown) => isFault(error, 'shutting_down'),
    );
    await feed.stop();
    expect(await ended).toBe(true);
    const late = feed.follow({ filter: {}, after: null, behind: null, signal: new AbortController().signal });
    await late.next();
    await expect(late.next()).rejects.toMatchObject({ code: 'shutting_down' });
  });

  it('takes so many readers and no more, and has room again when one is gone', async () => {
    const { follow } = await scene();
    const readers = [];
    for (let n = 0; n < 256; n += 1) readers.push(await follow());
    await expect(follow()).rejects.toMatchObject({ code: 'rate_limited' });
    await readers[0]?.end();
    await (await follow()).end();
    for (const reader of readers) await reader.end();
  });
});

describe('pages of the audit log', () => {
  it('neither repeat nor leave out while others write (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1, maxLength: 20 }),
        async (limit, writes) => {
          const audit = auditOf(await openStore());
          await audit.emit(...Array.from({ length: 120 }, () => event()));
          const there = (await readAuditPage(audit.db, {}, 500)).events.map(({ id }) => id);
          const writing = (async () => {
            for (const count of writes) {
              await audit.emit(...Array.from({ length: count }, () => event()));
              await setTimeout(0);
            }
          })();
          const read: string[] = [];
          let cursor: string | undefined;
          for (let page = 0; page < 500; page += 1) {
            const { events, hasMore } = await readAuditPage(audit.db, { cursor }, limit);
            read.push(...events.map(({ id }) => id));
            cursor = read.at(-1);
            if (!hasMore) break;
          }
          await writing;
          expect(new Set(read).size).toBe(read.length);
          expect(read).toEqual([...read].sort().reverse());
          // Events that were written meanwhile are newer than the first page, or on it.
          expect(read.slice(-there.length)).toEqual(there);
        },
      ),
      { numRuns: drawn(30) },
    );
  });
});
