/** The effect of a clock that jumps on records and on their deletion, and its reports. */
import { describe, expect, it } from 'vitest';
import { readAuditPage } from '../../daemon/audit/audit-reader.js';
import { ClockTrust } from '../../daemon/core/clock-trust.js';
import { ClockWatch } from '../../daemon/core/clock-watch.js';
import type { OpenDatabase } from '../../daemon/database/database.js';
import { deleteIdempotencyKeysBefore } from '../../daemon/http/idempotency.js';
import { auditOf, event } from '../support/audit.js';
import { ManualClock, openStore, recordingLogger, temporaryDirectory } from '../support/database.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const reading = (wall: number, steady = wall) => ({ wall, steady });

describe('the trust in a clock', () => {
  it('is whole while it runs evenly, and over a short time without the orchestrator after an hour', () => {
    const trust = new ClockTrust(reading(0), { wall: -2 * DAY, doubt: 0 });
    expect(trust).toMatchObject({ doubt: 2 * DAY, needsOperator: false, time: -2 * DAY });
    expect(trust.read(reading(HOUR - 1))).toBe(0);
    expect(trust.time).toBe(HOUR - 1 - 2 * DAY);
    trust.read(reading(HOUR));
    expect(trust).toMatchObject({ doubt: 0, time: HOUR });
  });

  it('does not come back by itself after a long jump ahead, however long the clock runs on', () => {
    const trust = new ClockTrust(reading(0), null);
    expect(trust.read(reading(400 * DAY, 0))).toBe(400 * DAY);
    for (let day = 1; day <= 30; day += 1) trust.read(reading((400 + day) * DAY, day * DAY));
    expect(trust).toMatchObject({ needsOperator: true, time: 30 * DAY });
    trust.accept();
    expect(trust).toMatchObject({ needsOperator: false, time: 430 * DAY });
  });

  it('is whole again when the jump is taken back, also over a restart', () => {
    const trust = new ClockTrust(reading(0), null);
    trust.read(reading(400 * DAY, 0));
    const later = new ClockTrust(reading(MINUTE), trust.memory);
    expect(later).toMatchObject({ doubt: 0, needsOperator: false, time: MINUTE });
  });

  it('is whole when a clock that started at 1970 is set right', () => {
    const right = 20_000 * DAY;
    const trust = new ClockTrust(reading(0), { wall: right, doubt: 0 });
    expect(trust).toMatchObject({ needsOperator: false, time: 0 });
    trust.read(reading(right + 5 * MINUTE, 5 * MINUTE));
    expect(trust).toMatchObject({ needsOperator: false });
    expect(trust.doubt).toBeLessThanOrEqual(5 * MINUTE);
  });
});

describe('the time by which age is judged', () => {
  it('is a whole number that every store takes, whatever fractions the monotonic clock has', async () => {
    const trust = new ClockTrust(reading(0, 0.25), { wall: 0, doubt: 0.5 });
    trust.read(reading(2 * DAY, 1000.123456));
    expect(trust.time).toBe(Math.trunc(trust.time));
    const { db } = await openStore();
    expect(await deleteIdempotencyKeysBefore(db, trust.time)).toBe(0);
  });
});

/** An audit log of four days, and the orchestrator that keeps it for two. */
async function watched(clock = new ManualClock()) {
  const file = `${temporaryDirectory()}/orch.db`;
  const logger = recordingLogger();
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const opened: OpenDatabase[] = [];
  const begin = async () => {
    await opened.pop()?.close();
    const store = await openStore({ file, onFatal });
    opened.push(store);
    const ages: { time: () => number } = { time: () => clock.now() };
    const log = auditOf(store, { clock, ageTime: () => ages.time(), retentionDays: () => 2 });
    const watch = new ClockWatch({ db: store.db, uow: log.uow, clock, logger });
    ages.time = watch.ageTime;
    await watch.start();
    const types = async () => (await readAuditPage(store.db, {}, 500)).events.map((one) => one.event_type).reverse();
    return { ...log, watch, types };
  };
  return { begin, clock, logger };
}

describe('an orchestrator whose clock jumps', () => {
  it.each(['while it runs', 'while it is stopped'])(
    'ahead %s deletes nothing until the clock is accepted',
    async (when) => {
      const { begin, clock, logger } = await watched();
      let one = await begin();
      await one.emit(event(), event());
      clock.setWall(clock.now() + 400 * DAY);
      if (when === 'while it is stopped') {
        await one.watch.stop();
        one = await begin();
      }
      await one.watch.tick();
      await one.pruning.run();
      expect(await one.types()).toEqual(['orchestrator.started', 'orchestrator.started', 'orchestrator.clock_jumped']);
      expect(logger.lines).toMatchObject([
        { level: 'warn', message: expect.stringContaining('went ahead by 400 days') },
      ]);
      expect(one.watch.problems()).toMatchObject([
        { code: 'clock_jumped', detail: expect.stringMatching(/400 days ahead.*orch serve accept-clock/) },
      ]);
      clock.advance(DAY);
      await one.pruning.run();
      expect(await one.types()).toHaveLength(3);

      expect(await one.watch.accept()).toMatchObject({ waits: true });
      await one.pruning.run();
      expect(one.watch.problems()).toEqual([]);
      expect(await one.types()).toEqual(['orchestrator.clock_jumped', 'orchestrator.clock_accepted', 'audit.pruned']);
    },
  );

  it('ahead and back dates what follows rightly, finds it by its time, and says what lies ahead', async () => {
    const { begin, clock, logger } = await watched();
    const right = clock.now();
    const one = await begin();
    await one.emit(event({ type: 'module.uploaded' }));
    clock.setWall(right + 400 * DAY);
    await one.watch.tick();
    await one.emit(event({ type: 'module.deleted' }));
    await one.watch.tick();
    clock.setWall(right + HOUR);
    await one.watch.tick();
    await one.emit(event({ type: 'secret.created' }));
    await one.watch.tick();

    const page = async (filter: Parameters<typeof readAuditPage>[1]) =>
      (await readAuditPage(one.db, filter, 50)).events.map(({ event_type }) => event_type).reverse();
    expect(await page({ after: right, before: right + 2 * HOUR })).toEqual([
      'module.uploaded',
      'orchestrator.clock_jumped',
      'secret.created',
    ]);
    expect(await page({ after: right + 2 * HOUR })).toEqual(['orchestrator.clock_jumped', 'module.deleted']);
    expect(await page({ before: right })).toEqual([]);
    expect(one.watch.problems()).toMatchObject([
      { code: 'times_ahead', detail: expect.stringContaining('400 days ahead of the clock') },
    ]);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'The clock of the orchestrator went ahead by 400 days while the orchestrator ran',
      'The clock of the orchestrator went back by 400 days while the orchestrator ran',
    ]);
    expect((await one.verification.run({ since: null, signal: new AbortController().signal })).intact).toBe(true);
    await one.watch.accept();
    expect(one.watch.problems()).toEqual([]);

    // Events of a time that has not come are not old, and neither is what was written before them.
    clock.advance(30 * DAY);
    await one.watch.tick();
    await one.pruning.run();
    expect(await one.types()).not.toContain('module.uploaded');
    expect(await one.types()).toContain('module.deleted');
  });

  it('back deletes nothing at all', async () => {
    const { begin, clock } = await watched();
    const one = await begin();
    clock.advance(DAY);
    await one.emit(event());
    clock.setWall(0);
    await one.watch.tick();
    await one.pruning.run();
    expect(await one.types()).toEqual(['orchestrator.started', 'orchestrator.clock_jumped']);
    expect(one.watch.ageTime()).toBe(0);
  });
});
