/** A store that is restored to an earlier state, and the agents that are ahead of it. */

import { expect, it } from 'vitest';
import { resetForNewEpoch } from '../../daemon/backup/new-epoch.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { beginEpoch, epochBegun, storedEpoch } from '../../daemon/engine/epoch.js';
import { findOperation } from '../../daemon/engine/operations/operation-store.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import { openStore } from '../support/database.js';
import { ALICE, type Bench, openBench } from '../support/engine.js';
import { StoreLab } from '../support/store-lab.js';

/** Puts the store back to what it was, in a new epoch or not. */
async function putBack(bench: Bench, restore: () => void, isNewEpoch: boolean): Promise<void> {
  for (const agent of bench.fleet.agents.values()) agent.disconnect();
  await bench.close();
  restore();
  if (isNewEpoch) {
    const { db, close } = await openStore({ file: bench.file, clock: bench.clock });
    await resetForNewEpoch(db, { now: bench.clock.now(), others: [], reason: 'a backup was restored' });
    await close();
  }
  await bench.open();
}

async function copyOf(bench: Bench): Promise<() => void> {
  await bench.restart();
  await bench.close();
  const kept = `${bench.file}.kept`;
  new StoreLab(bench.file).copyTo(kept);
  await bench.open();
  return () => new StoreLab(kept).copyTo(bench.file);
}

it('is above its own epoch and all others, and above what another restore of the same backup has sent', async () => {
  const { db } = await openStore();
  expect(await storedEpoch(db)).toBe(1);
  expect(await epochBegun(db)).toBe(0);
  expect(await beginEpoch(db, { now: 1_000, others: [] })).toBe(2);
  expect(await beginEpoch(db, { now: 2_000, others: [7, 3] })).toBe(8);
  expect(await storedEpoch(db)).toBe(8);
  const row = await db.selectFrom('meta').select('value').where('key', '=', 'engine.generation').executeTakeFirst();
  expect(row?.value).toBe('8.2000');
  expect(await epochBegun(db)).toBe(2_000);
});

it('sends nothing again that was under way, and asks the agent what became of it', async () => {
  const bench = await openBench();
  const agent = await bench.agent('1');
  agent.diligent = false;
  await bench.upload('site', { '/a': 'x' });
  const id = await bench.start(agent, ['site']);
  const copy = await copyOf(bench);
  agent.diligent = true;
  agent.connect();
  await bench.settle();
  expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
  const sent = () => agent.received.filter(({ type }) => type === 'run').length;
  const before = sent();

  await putBack(bench, copy, true);
  expect(await findOperation(bench.db, id)).toMatchObject({ state: 'recovering', accepted: 1 });
  agent.connect();
  await bench.settle();
  expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'interrupted' });
  expect(sent()).toBe(before);
  expect(agent.executions.get('/a') ?? [...agent.executions.values()][0]).toBe(1);
  expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
});

it('does not send what waited for its agent when the backup was made', async () => {
  const bench = await openBench();
  const agent = await bench.agent('1');
  await bench.upload('site', { '/a': 'x' });
  await bench.disconnect(agent);
  agent.connect();
  const id = await bench.start(agent, ['site']);
  expect(await findOperation(bench.db, id)).toMatchObject({ state: 'queued' });
  const copy = await copyOf(bench);
  await putBack(bench, copy, true);
  agent.connect();
  await bench.settle();
  expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'interrupted' });
  expect(agent.machine.size).toBe(0);
});

/** Passes the time in which a restarted orchestrator waits for its agents. */
async function calm(bench: Bench): Promise<void> {
  await bench.rest();
  bench.clock.advance(120_000);
  await bench.rest();
}

it('halts a rollout that was under way, which goes on only when an operator resumes it', async () => {
  const bench = await openBench();
  const agents = [await bench.agent('1'), await bench.agent('2')];
  await bench.upload('site', { '/a': 'x' });
  for (const agent of agents) agent.diligent = false;
  const target = { kind: 'selector', selector: 'platform=linux' } as const;
  const pace = { ...DEFAULT_PACE, concurrency: 1 };
  const order = { target, modules: ['site'], limits: NO_LIMITS, expect: null, pace };
  const { id } = await bench.engine.rollouts.apply(order, ALICE);
  await bench.settle();
  const sent = () => agents.map(({ received }) => received.filter(({ type }) => type === 'run').length);
  const both = sent();
  expect(both.toSorted()).toEqual([0, 1]);
  const copy = await copyOf(bench);

  await putBack(bench, copy, true);
  for (const agent of agents) {
    agent.diligent = true;
    agent.connect();
  }
  await calm(bench);
  expect(await bench.engine.rollouts.get(id)).toMatchObject({ state: 'halted', reason: 'a backup was restored' });
  expect(sent()).toEqual(both);
  await bench.engine.rollouts.resume(id, ALICE);
  await calm(bench);
  expect((await bench.engine.rollouts.get(id)).state).not.toBe('halted');
  expect(sent().toSorted()).toEqual([1, 1]);
});

it('holds automatic applies until an operator resumes them, whatever is uploaded', async () => {
  const bench = await openBench();
  await bench.upload('site', { '/a': 'old' });
  const agent = await bench.agent('a', { connected: false });
  await bench.arrive(agent);
  const assignment = { name: 'sites', modules: ['site'], selector: 'platform=linux', description: null };
  await bench.engine.assignments.create({ ...assignment, mode: 'enforce' }, ALICE);
  await calm(bench);
  expect(agent.machine.get('/a')).toContain('old');
  const copy = await copyOf(bench);
  await bench.arrive(agent);
  await bench.upload('site', { '/a': 'new' });
  await calm(bench);
  expect(agent.machine.get('/a')).toContain('new');

  await putBack(bench, copy, true);
  await bench.arrive(agent);
  await calm(bench);
  expect(agent.machine.get('/a')).toContain('new');
  await bench.upload('site', { '/a': 'newer' });
  await bench.engine.assignments.update(
    'sites',
    { modules: null, selector: null, description: 'x', mode: null },
    ALICE,
  );
  await calm(bench);
  expect(agent.machine.get('/a')).not.toContain('newer');
  expect(await bench.engine.assignments.get('sites', ALL_RIGHTS)).toMatchObject({
    stopped_reason: 'a backup was restored',
  });
  expect(await bench.engine.assignments.resume('sites', ALICE)).toMatchObject({ stopped_reason: null });
  await calm(bench);
  expect(agent.machine.get('/a')).toContain('newer');
});
