/** Applies and drift checks store contents once, unchanged results in short, and nothing for confirmed ones. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { deleteDriftBefore } from '../../daemon/engine/drift/drift-store.js';
import { deleteOperationsBefore } from '../../daemon/engine/operations/operation-store.js';
import { type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const FILES = { '/a': 'a', '/b': 'b', '/c': 'c' };
const DAY = 24 * 3600 * 1000;

async function applied(): Promise<{ readonly bench: Bench; readonly agent: ScriptedAgent; readonly first: string }> {
  const bench = await openBench();
  const agent = await bench.agent('1');
  await bench.upload('site', FILES);
  const { operation_id: first } = await bench.apply(agent, ['site']);
  bench.clock.advance(60_000);
  return { bench, agent, first };
}

const contentsIn = (bench: Bench) => bench.db.selectFrom('run_contents').select('content_id').execute();
const rowsOf = (bench: Bench, id: string) =>
  bench.db.selectFrom('operation_results').selectAll().where('operation_id', '=', id).execute();
const managedIn = (bench: Bench) => bench.db.selectFrom('applied_resources').selectAll().orderBy('position').execute();

describe('an apply that changes nothing', () => {
  it('adds no content and one row of results, and the API shows each of them', async () => {
    const { bench, agent, first } = await applied();
    agent.isBrief = false;
    const second = await bench.apply(agent, ['site']);
    expect(await contentsIn(bench)).toHaveLength(1);
    const rows = await rowsOf(bench, second.operation_id);
    expect(rows.reduce((sum, { unchanged }) => sum + (unchanged ?? 0), 0)).toBe(3);
    expect(second.summary).toMatchObject({ total: 3, unchanged: 3 });
    expect(second.resources.map(({ identity, status }) => `${identity} ${status}`)).toEqual([
      '/a unchanged',
      '/b unchanged',
      '/c unchanged',
    ]);
    expect(await rowsOf(bench, first)).toHaveLength(3);
  });

  it('leaves the rows of the managed resources alone, and the state names it nevertheless', async () => {
    const { bench, agent, first } = await applied();
    const before = await managedIn(bench);
    const { operation_id: second } = await bench.apply(agent, ['site']);
    expect(await managedIn(bench)).toEqual(before);
    const state = await bench.engine.state.get(agent.nodeId);
    expect(state.operation_id).toBe(second);
    expect(new Set(state.applied.map(({ operation_id }) => operation_id))).toEqual(new Set([second]));
    expect(new Set(before.map(({ operation_id }) => operation_id))).toEqual(new Set([first]));
    const operation = await bench.engine.operations.get(second);
    expect(new Set(state.applied.map(({ applied_at }) => applied_at))).toEqual(new Set([operation.finished_at]));
  });
});

describe('a state that equalled a content', () => {
  it('keeps who confirmed its resources when a part of them changes', async () => {
    const { bench, agent } = await applied();
    const { operation_id: second } = await bench.apply(agent, ['site']);
    await bench.upload('site', { ...FILES, '/b': 'other' });
    agent.mishaps.set('/c', 'fail');
    const { operation_id: third, status } = await bench.apply(agent, ['site']);
    expect(status).toBe('failed');
    const { applied: resources } = await bench.engine.state.get(agent.nodeId);
    expect(resources.map(({ identity, operation_id }) => [identity, operation_id])).toEqual([
      ['/a', third],
      ['/b', third],
      ['/c', second],
    ]);
  });

  it('is not taken for the same when a resource is removed, and comes back', async () => {
    const { bench, agent } = await applied();
    await bench.upload('site', { '/a': 'a', '/b': 'b' });
    const removed = await bench.apply(agent, ['site'], { allowRemovals: 1 });
    expect(removed.summary.removed).toBe(1);
    expect([...agent.machine.keys()]).toEqual(['/a', '/b']);
    await bench.upload('site', FILES);
    await bench.apply(agent, ['site']);
    const { applied: resources } = await bench.engine.state.get(agent.nodeId);
    expect(resources.map(({ identity }) => identity)).toEqual(['/a', '/b', '/c']);
    expect(await contentsIn(bench)).toHaveLength(2);
  });

  it('is compared by drift checks, whose records keep every result', async () => {
    const { bench, agent, first } = await applied();
    agent.machine.set('/b', 'by hand');
    const drifted = await bench.drift(agent);
    expect(drifted.resources.map(({ identity, status }) => `${identity} ${status}`)).toEqual([
      '/a unchanged',
      '/b pending',
      '/c unchanged',
    ]);
    const row = await bench.db.selectFrom('drift_records').selectAll().executeTakeFirstOrThrow();
    expect(row.content_id).not.toBeNull();
    expect(row.operation_id).toBe(first);
    await bench.upload('site', { '/z': 'z' });
    await bench.apply(agent, ['site'], { allowRemovals: 3 });
    expect(await bench.engine.drift.get(drifted.drift_id, ALL_RIGHTS)).toEqual(drifted);
  });
});

it('a content goes with the last record that refers to it', async () => {
  const { bench, agent } = await applied();
  await bench.drift(agent);
  await bench.upload('site', { '/z': 'z' });
  await bench.apply(agent, ['site'], { allowRemovals: 3 });
  await bench.apply(agent, ['site']);
  await bench.drift(agent);
  // The first content, the one with the removals, and the last one.
  expect(await contentsIn(bench)).toHaveLength(3);
  const later = bench.clock.now() + DAY;
  expect(await deleteOperationsBefore(bench.db, later, 1000)).toBe(1);
  expect(await contentsIn(bench)).toHaveLength(3);
  expect(await deleteDriftBefore(bench.db, later, 1000)).toBe(1);
  expect(await contentsIn(bench)).toHaveLength(2);
});
