/** Windows that are limited to some agents, and windows that permit the applies of assignments. */
import { describe, expect, it } from 'vitest';
import { insertAssignment } from '../../daemon/engine/assignments/assignment-store.js';
import { rejection } from '../support/database.js';
import { ADA, HOUR, type MaintenanceBench, openBench } from '../support/maintenance.js';

const labels = (role: string) => ({ attributes: {}, tags: { role } });

async function withAssignments(): Promise<MaintenanceBench> {
  const bench = await openBench();
  for (const name of ['web', 'db']) {
    const times = { created_at: 1, created_by: ADA.actor.id };
    const row = { name, modules: [], selector: `role=${name}`, description: null, ...times };
    await insertAssignment(bench.db, { ...row, stopped_id: null, stopped_reason: null });
  }
  return bench;
}

const create = (bench: MaintenanceBench, [from, until]: readonly [number, number], scope: object) => {
  const now = bench.now();
  return bench.windows.create({ reason: 'nights', starts_at: now + from, ends_at: now + until, ...scope }, ADA);
};

const permit = (bench: MaintenanceBench, times: readonly [number, number]) =>
  create(bench, times, { kind: 'permit', assignments: ['web'] });

const closed = (bench: MaintenanceBench) => bench.watch().closedFor(['db', 'web']);

const pass = async (bench: MaintenanceBench, seconds: number) => {
  bench.clock.advance(seconds * 1000);
  await bench.tick();
};

describe('a pause with a selector', () => {
  it('pauses the agents that match, and neither the others nor deliveries', async () => {
    const bench = await withAssignments();
    expect(await create(bench, [0, HOUR], { selector: 'role=db' })).toMatchObject({
      kind: 'pause',
      selector: 'role=db',
    });
    const watch = bench.watch();
    expect([watch.isPaused(labels('db')), watch.isPaused(labels('web'))]).toEqual([true, false]);
    expect([watch.pausesSome(), bench.isMaintenance()]).toEqual([true, false]);
    await pass(bench, HOUR);
    expect([watch.isPaused(labels('db')), watch.pausesSome()]).toEqual([false, false]);
  });

  it('without a selector pauses all', async () => {
    const bench = await withAssignments();
    await create(bench, [0, HOUR], {});
    expect([bench.watch().isPaused(labels('web')), bench.isMaintenance()]).toEqual([true, true]);
  });
});

describe('a permit', () => {
  it('closes its assignment except while it is active, and pauses nothing', async () => {
    const bench = await withAssignments();
    const { starts_at, ends_at } = await permit(bench, [HOUR, 2 * HOUR]);
    expect(closed(bench)).toEqual({
      assignment: 'web',
      next: { starts_at: starts_at * 1000, ends_at: ends_at * 1000, starts_in: HOUR * 1000 },
    });
    expect(bench.watch().closedFor(['db'])).toBeNull();
    await pass(bench, HOUR);
    expect([closed(bench), bench.isMaintenance(), bench.watch().isPaused(labels('web'))]).toEqual([null, false, false]);
    await pass(bench, HOUR);
    expect(closed(bench)).toEqual({ assignment: 'web', next: null });
    expect(bench.told()).toEqual(['created nights', 'started nights', 'ended nights']);
  });

  it('keeps its assignment closed after its end until it is deleted, also over a restart', async () => {
    const bench = await withAssignments();
    const { id } = await permit(bench, [HOUR, 2 * HOUR]);
    await pass(bench, 3 * HOUR);
    await bench.restart();
    expect(closed(bench)).toMatchObject({ assignment: 'web' });
    await bench.windows.remove(id, ADA);
    expect(closed(bench)).toBeNull();
  });

  it('that a clock has jumped over does not open, and none opens again when the clock is set back', async () => {
    const bench = await withAssignments();
    await permit(bench, [HOUR, 2 * HOUR]);
    const before = bench.clock.now();
    bench.clock.setWall(before + 3 * HOUR * 1000);
    await bench.tick();
    expect(closed(bench)).toMatchObject({ assignment: 'web', next: null });
    bench.clock.setWall(before + 1.5 * HOUR * 1000);
    await bench.tick();
    expect(closed(bench)).toMatchObject({ assignment: 'web', next: null });
  });

  it('that was deleted while it was active is no longer open for others of its assignment', async () => {
    const bench = await withAssignments();
    await permit(bench, [HOUR, 2 * HOUR]);
    const { id } = await permit(bench, [0, HOUR]);
    expect(closed(bench)).toBeNull();
    await bench.windows.remove(id, ADA);
    expect(closed(bench)).toMatchObject({ assignment: 'web' });
  });
});

describe('a window with a wrong scope', () => {
  it.each([
    [{ kind: 'permit' }, 'invalid_body', 'at least one assignment'],
    [{ kind: 'permit', assignments: ['web'], selector: 'role=db' }, 'invalid_body', '/selector belongs to a pause'],
    [{ assignments: ['web'] }, 'invalid_body', '/assignments belongs to a permit'],
    [{ kind: 'permit', assignments: ['none'] }, 'assignment_not_found', 'there is no assignment "none"'],
    [{ selector: 'role=' + '"' }, 'invalid_selector', ''],
  ])('is refused: %j', async (scope, code, message) => {
    const bench = await withAssignments();
    const fault = await rejection(create(bench, [0, HOUR], scope));
    expect(fault.code).toBe(code);
    expect(fault.message).toContain(message);
    expect(await bench.windows.list()).toEqual([]);
  });
});
