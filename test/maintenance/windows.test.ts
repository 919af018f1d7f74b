/** Maintenance windows: when they are active, and what the audit log hears of them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rejection } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';
import { ADA, HOUR, type MaintenanceBench, MINUTE, openBench } from '../support/maintenance.js';

/** Bounds in seconds from now. */
async function open(bench: MaintenanceBench, reason: string, [from, until]: readonly [number, number]) {
  const now = bench.now();
  return bench.windows.create({ reason, starts_at: now + from, ends_at: now + until }, ADA);
}

const pass = async (bench: MaintenanceBench, seconds: number) => {
  bench.clock.advance(seconds * 1000);
  await bench.tick();
};

describe('a maintenance window', () => {
  it('is active from its start until its end, and both are reported at the time', async () => {
    const bench = await openBench();
    const { id, ...window } = await open(bench, 'new kernel', [HOUR, 2 * HOUR]);
    expect(window).toMatchObject({ reason: 'new kernel', status: 'scheduled', created_by: ADA.actor.id });
    expect([bench.told(), bench.isMaintenance()]).toEqual([['created new kernel'], false]);
    await pass(bench, HOUR - 1);
    expect([bench.told(), bench.isMaintenance()]).toEqual([[], false]);
    await pass(bench, 1);
    expect([bench.told(), bench.isMaintenance()]).toEqual([['started new kernel'], true]);
    expect(await bench.windows.get(id)).toMatchObject({ status: 'active' });
    await pass(bench, HOUR - 1);
    expect([bench.told(), bench.isMaintenance()]).toEqual([[], true]);
    await pass(bench, 1);
    expect([bench.told(), bench.isMaintenance()]).toEqual([['ended new kernel'], false]);
    await pass(bench, HOUR);
    expect(bench.told()).toEqual([]);
    expect(await bench.windows.list()).toMatchObject([{ id, status: 'ended' }]);
    expect(bench.events.map(({ actor, target }) => [actor.type, target.type, target.id])).toEqual([
      ['operator', 'window', id],
      ['system', 'window', id],
      ['system', 'window', id],
    ]);
  });

  it('begins with its making when its start has passed', async () => {
    const bench = await openBench();
    expect(await open(bench, 'now', [0, HOUR])).toMatchObject({ status: 'active' });
    expect([bench.told(), bench.isMaintenance()]).toEqual([['created now', 'started now'], true]);
    expect(bench.events[1]).toMatchObject({ actor: ADA.actor, metadata: { request_id: ADA.requestId } });
    await bench.tick();
    expect(bench.told()).toEqual([]);
  });

  it('that is over when it is made never begins', async () => {
    const bench = await openBench();
    const { id } = await open(bench, 'yesterday', [-2 * HOUR, -HOUR]);
    await bench.tick();
    expect([bench.told(), bench.isMaintenance()]).toEqual([['created yesterday'], false]);
    expect(await bench.windows.get(id)).toMatchObject({ status: 'ended' });
    await bench.windows.remove(id, ADA);
    expect(bench.told()).toEqual(['deleted yesterday']);
  });

  it.each([
    ['its start', 0],
    ['a time before its start', -1],
  ])('does not end at %s', async (_what, length) => {
    const bench = await openBench();
    const refused = await rejection(open(bench, 'none', [HOUR, HOUR + length]));
    expect(refused).toMatchObject({ code: 'invalid_body', errors: [{ path: '/ends_at' }] });
    const { id, starts_at } = await open(bench, 'some', [HOUR, 2 * HOUR]);
    const change = { ends_at: starts_at + length };
    expect(await rejection(bench.windows.update(id, change, ADA))).toMatchObject({ code: 'invalid_body' });
    expect(bench.told()).toEqual(['created some']);
  });

  it('is ended early, moved, and given another reason', async () => {
    const bench = await openBench();
    const { id, starts_at, ends_at } = await open(bench, 'disk', [0, HOUR]);
    bench.told();
    await bench.windows.update(id, { ends_at }, ADA);
    expect(bench.told()).toEqual([]);
    await bench.windows.update(id, { ends_at: ends_at + HOUR, reason: 'disks' }, ADA);
    expect(bench.told()).toEqual(['updated disks']);
    expect(bench.events.at(-1)?.metadata).toMatchObject({ before: { reason: 'disk' }, reason: 'disks' });
    await pass(bench, HOUR);
    expect(bench.isMaintenance()).toBe(true);
    const ended = await bench.windows.update(id, { ends_at: bench.now(), reason: null }, ADA);
    expect(ended).toMatchObject({ status: 'ended', starts_at, ends_at: bench.now(), reason: 'disks' });
    expect([bench.told(), bench.isMaintenance()]).toEqual([['updated disks', 'ended disks'], false]);
    await pass(bench, 2 * HOUR);
    expect(bench.told()).toEqual([]);
  });

  it('that is over does not begin again', async () => {
    const bench = await openBench();
    const { id, ends_at } = await open(bench, 'late', [0, MINUTE]);
    bench.clock.advance(MINUTE * 1000);
    const refused = await rejection(bench.windows.update(id, { ends_at: ends_at + HOUR }, ADA));
    expect(refused).toMatchObject({ code: 'maintenance_window_over' });
    await bench.tick();
    expect((await rejection(bench.windows.update(id, { ends_at: ends_at + 1 }, ADA))).code).toBe(refused.code);
    await bench.windows.update(id, { ends_at, reason: 'what it was for' }, ADA);
    expect(bench.told()).toEqual(['created late', 'started late', 'ended late', 'updated what it was for']);
  });

  it('ends when it is deleted', async () => {
    const bench = await openBench();
    const active = await open(bench, 'active', [0, HOUR]);
    const scheduled = await open(bench, 'scheduled', [HOUR, 2 * HOUR]);
    bench.told();
    await bench.windows.remove(active.id, ADA);
    await bench.windows.remove(scheduled.id, ADA);
    expect(bench.told()).toEqual(['ended active', 'deleted active', 'deleted scheduled']);
    expect(bench.isMaintenance()).toBe(false);
    await pass(bench, 2 * HOUR);
    expect([bench.told(), await bench.windows.list()]).toEqual([[], []]);
    for (const missing of [
      () => bench.windows.remove(active.id, ADA),
      () => bench.windows.get(active.id),
      () => bench.windows.update(active.id, { ends_at: 1 }, ADA),
    ]) {
      expect((await rejection(missing())).code).toBe('maintenance_window_not_found');
    }
  });

  it('that overlaps another one keeps the fleet in maintenance until both are over', async () => {
    const bench = await openBench();
    await open(bench, 'long', [0, 3 * HOUR]);
    await open(bench, 'short', [HOUR, 2 * HOUR]);
    bench.told();
    const seen: unknown[] = [];
    for (let hour = 1; hour <= 3; hour += 1) {
      await pass(bench, HOUR);
      seen.push([bench.told(), bench.isMaintenance()]);
    }
    expect(seen).toEqual([
      [['started short'], true],
      [['ended short'], true],
      [['ended long'], false],
    ]);
  });
});

describe('after a restart', () => {
  it('what began and ended meanwhile is reported once, in its order, with its own times', async () => {
    const bench = await openBench();
    const now = bench.now();
    await open(bench, 'b', [2 * HOUR, 4 * HOUR]);
    await open(bench, 'a', [HOUR, 3 * HOUR]);
    await open(bench, 'c', [3 * HOUR, 24 * HOUR]);
    await bench.stop();
    bench.told();
    bench.clock.advance(5 * HOUR * 1000);
    await bench.restart();
    expect(bench.told()).toEqual(['started a', 'started b', 'started c', 'ended a', 'ended b']);
    const at = (hours: number) => new Date((now + hours * HOUR) * 1000).toISOString();
    expect(bench.events.slice(-5).map(({ metadata }) => metadata.at)).toEqual([at(1), at(2), at(3), at(3), at(4)]);
    expect(bench.isMaintenance()).toBe(true);
    await bench.restart();
    expect(bench.told()).toEqual([]);
  });
});

describe('a clock that was set', () => {
  it('back makes the window active again at its time, and tells nothing twice', async () => {
    const bench = await openBench();
    const { id, ends_at } = await open(bench, 'night', [HOUR, 2 * HOUR]);
    const before = bench.clock.now();
    await pass(bench, 30 * 24 * HOUR);
    expect(bench.told()).toEqual(['created night', 'started night', 'ended night']);
    bench.clock.setWall(before);
    await bench.tick();
    expect(bench.isMaintenance()).toBe(false);
    expect((await rejection(bench.windows.update(id, { ends_at: ends_at + 1 }, ADA))).code).toBe(
      'maintenance_window_over',
    );
    await pass(bench, HOUR);
    expect(bench.isMaintenance()).toBe(true);
    await pass(bench, HOUR);
    expect([bench.told(), bench.isMaintenance()]).toEqual([[], false]);
  });

  it('whatever happens: a window begins at most once and ends once if it began', async () => {
    const seconds = fc.integer({ min: -3 * HOUR, max: 3 * HOUR });
    const step = fc.oneof(
      fc.record({ do: fc.constant('open' as const), from: seconds, length: fc.integer({ min: 1, max: 3 * HOUR }) }),
      fc.record({ do: fc.constant('move' as const), which: fc.nat(), to: seconds }),
      fc.record({ do: fc.constant('delete' as const), which: fc.nat() }),
      fc.record({ do: fc.constant('pass' as const), seconds: fc.nat({ max: 3 * HOUR }) }),
      fc.record({ do: fc.constant('set' as const), seconds }),
      fc.record({ do: fc.constant('restart' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const bench = await openBench();
        const ids: string[] = [];
        const expected = (code: string) => expect(['invalid_body', 'maintenance_window_over']).toContain(code);
        for (const one of steps) {
          if (one.do === 'open') ids.push((await open(bench, 'x', [one.from, one.from + one.length])).id);
          if (one.do === 'pass') await pass(bench, one.seconds);
          if (one.do === 'set') bench.clock.setWall(bench.clock.now() + one.seconds * 1000);
          if (one.do === 'restart') await bench.restart();
          if (ids.length === 0) continue;
          const place = 'which' in one ? one.which % ids.length : 0;
          const id = ids[place] ?? '';
          if (one.do === 'move') {
            const moved = bench.windows.update(id, { ends_at: bench.now() + one.to }, ADA);
            await moved.then(undefined, (error: { code: string }) => expected(error.code));
          }
          if (one.do === 'delete') {
            await bench.windows.remove(id, ADA);
            ids.splice(place, 1);
          }
          const rows = await bench.windows.list();
          const now = bench.now();
          expect(bench.isMaintenance()).toBe(rows.some(({ starts_at, ends_at }) => starts_at <= now && now < ends_at));
        }
        bench.clock.setWall(bench.clock.now() + 24 * HOUR * 1000);
        await bench.tick();
        for (const id of new Set(bench.events.map(({ target }) => target.id))) {
          const events = bench.events.filter(({ target }) => target.id === id);
          const told = events.map(({ type }) => type).filter((type) => /started|ended/.test(type));
          expect([[], ['maintenance.started', 'maintenance.ended']]).toContainEqual(told);
        }
      }),
      { numRuns: drawn(40) },
    );
  });
});
