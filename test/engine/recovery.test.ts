import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { findOperation } from '../../daemon/engine/operations/operation-store.js';
import { deleteAgent } from '../../daemon/fleet/agent-store.js';
import { ALICE, type Bench, oneSecret, openBench, type ScriptedAgent } from '../support/engine.js';

const FILES = { '/a': 'x', '/b': 'x', '/c': 'x' };
const MINUTE = 60_000;

/** An apply of three files, of which `done` are carried out and reported. */
async function underWay(bench: Bench, done: number): Promise<{ agent: ScriptedAgent; id: string }> {
  const agent = await bench.agent('1');
  agent.diligent = false;
  await bench.upload('site', FILES);
  const id = await bench.start(agent, ['site']);
  await bench.settle();
  for (let count = 0; count < done; count += 1) agent.work();
  await bench.settle();
  return { agent, id };
}

/** The agent comes back and works to the end. */
async function comeBack(bench: Bench, agent: ScriptedAgent): Promise<void> {
  agent.diligent = true;
  agent.mute = false;
  if (!agent.connected) agent.connect();
  await bench.settle();
}

const stateOf = async (bench: Bench, id: string) => (await findOperation(bench.db, id))?.state;
const once = (agent: ScriptedAgent) => [...agent.executions.values()].every((count) => count === 1);

async function finish(bench: Bench, agent: ScriptedAgent, id: string): Promise<void> {
  await comeBack(bench, agent);
  const operation = await bench.engine.operations.detail(id);
  expect(operation).toMatchObject({ status: 'succeeded', summary: { total: 3, changed: 3 } });
  expect(operation.resources.map(({ identity }) => identity)).toEqual(['/a', '/b', '/c']);
  expect(once(agent)).toBe(true);
  expect(agent.journal.size).toBe(0);
}

describe('a connection that is cut', () => {
  it('leaves the apply running, and its results arrive when the agent is back', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.disconnect(agent);
    agent.work();
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'running',
      summary: { total: 3, changed: 1 },
    });
    await finish(bench, agent, id);
    expect(agent.received.filter(({ type }) => type === 'run')).toHaveLength(1);
  });

  it('before the run arrived makes it be sent again', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.disconnect(agent);
    expect(await stateOf(bench, id)).toBe('dispatched');
    await finish(bench, agent, id);
  });

  it('after the end, but before it was acknowledged, does no harm', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 3);
    agent.work();
    while (await bench.deliver(agent));
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    await bench.disconnect(agent);
    expect(agent.journal.size).toBe(1);
    await finish(bench, agent, id);
    expect(bench.eventTypes('state.apply_succeeded')).toHaveLength(1);
  });

  it('while an apply waits for the inventory keeps it until the agent is ready', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    expect(await stateOf(bench, id)).toBe('queued');
    await bench.disconnect(agent);
    await finish(bench, agent, id);
  });

  it('for longer than the time of delivery ends what was never sent as not delivered', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    await bench.disconnect(agent);
    bench.clock.advance(10 * MINUTE);
    await bench.engine.tick();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'failed', error: { code: 'not_delivered' } });
    await comeBack(bench, agent);
    expect(agent.machine.size).toBe(0);
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });

  it('for longer than the time of delivery leaves what was sent, but never confirmed, as interrupted', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.disconnect(agent);
    bench.clock.advance(10 * MINUTE);
    await bench.engine.tick();
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'interrupted',
      error: { code: 'interrupted' },
    });
    await comeBack(bench, agent);
    expect(agent.machine.size).toBe(0);
  });

  it('until the time of delivery is over, of a run that never arrived, ends it as not delivered', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.disconnect(agent);
    bench.clock.advance(10 * MINUTE);
    await comeBack(bench, agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'failed', error: { code: 'not_delivered' } });
    expect(agent.machine.size).toBe(0);
  });

  it('does not lose a cancellation', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.disconnect(agent);
    await bench.engine.applies.cancel(id, ALICE);
    await bench.restart();
    agent.connect();
    await bench.settle();
    agent.work();
    await comeBack(bench, agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'cancelled', summary: { changed: 1 } });
    expect(bench.events.at(-1)).toMatchObject({ type: 'state.apply_cancelled', actor: { name: 'alice' } });
  });

  it('makes an apply that was cancelled before it arrived end without being sent again', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.disconnect(agent);
    await bench.engine.applies.cancel(id, ALICE);
    expect((await bench.engine.operations.get(id)).status).toBe('queued');
    await comeBack(bench, agent);
    expect((await bench.engine.operations.get(id)).status).toBe('cancelled');
    expect(agent.received.filter(({ type }) => type === 'run')).toEqual([]);
  });
});

describe('a dispatch', () => {
  it('that cannot be noted is not sent, and is made up for later', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    bench.isStoreBroken = true;
    await bench.deliver(agent);
    expect(bench.violations).toMatchObject([{ code: 'store_unavailable' }]);
    expect(agent.received).toEqual([]);
    bench.isStoreBroken = false;
    await finish(bench, agent, id);
  });
});

describe('results', () => {
  it('that come twice are stored once', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    const items = agent.journal.get(id)?.items ?? [];
    agent.outbox.push({ type: 'run_results', run_id: id, from: 0, items: [...items] });
    agent.work();
    const both = agent.journal.get(id)?.items ?? [];
    agent.outbox.unshift({ type: 'run_results', run_id: id, from: 0, items: [...both] });
    await bench.settle();
    expect((await bench.engine.operations.detail(id)).resources).toHaveLength(2);
    agent.diligent = true;
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'succeeded', summary: { changed: 3 } });
    expect(bench.violations).toEqual([]);
  });

  it('that are missing are asked for again, once', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 0);
    agent.work();
    agent.outbox.pop();
    agent.work();
    agent.work();
    agent.work();
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'succeeded', summary: { changed: 3 } });
    // Once for the gap, once more for the end that came before the answer.
    expect(agent.received.filter(({ type }) => type === 'run_resume')).toHaveLength(2);
    expect(once(agent)).toBe(true);
  });

  it('that the store refuses cost the connection and come again', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    bench.isStoreBroken = true;
    agent.work();
    await bench.deliver(agent);
    expect(bench.violations).toMatchObject([{ code: 'store_unavailable' }]);
    bench.isStoreBroken = false;
    await finish(bench, agent, id);
  });
});

describe('a restart of the orchestrator', () => {
  it('on a full disk follows an apply that was under way', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    bench.isStoreBroken = true;
    await bench.restart();
    bench.isStoreBroken = false;
    await finish(bench, agent, id);
    expect(await stateOf(bench, id)).toBe('succeeded');
  });

  it.each([
    ['half an hour back', -30 * MINUTE],
    ['a year ahead and back again', 365 * 24 * 60 * MINUTE],
  ])('with the clock %s still believes the newest apply', async (_, jump) => {
    const bench = await openBench();
    const right = bench.clock.now();
    if (jump > 0) bench.clock.setWall(right + jump);
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const former = await bench.apply(agent, ['site']);
    await bench.drift(agent);
    bench.clock.setWall(jump > 0 ? right : right + jump);
    await bench.restart();
    agent.connect();
    await bench.settle();
    await bench.upload('site', { '/a': 'newer' });

    const newer = await bench.apply(agent, ['site'], { allowRemovals: 1 });

    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync', operation_id: newer.operation_id });
    const { operations } = await bench.engine.operations.list(
      { rights: ALL_RIGHTS, limit: 9, offset: 0, status: null },
      agent.nodeId,
    );
    expect(operations.map((one) => one.operation_id)).toEqual([newer.operation_id, former.operation_id]);
    const records = await bench.engine.drift.listOfAgent(agent.nodeId, { rights: ALL_RIGHTS, limit: 9, status: null });
    expect(records.map((one) => one.operation_id)).toEqual([newer.operation_id, former.operation_id]);
  });

  it('finds an apply that was sent and never arrived, and sends it again', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site']);
    await bench.restart();
    expect(await stateOf(bench, id)).toBe('recovering');
    expect((await bench.engine.operations.get(id)).status).toBe('running');
    await bench.restart();
    await finish(bench, agent, id);
  });

  it('finds an apply that waits for its agent', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    await bench.restart();
    expect(await stateOf(bench, id)).toBe('queued');
    await finish(bench, agent, id);
  });

  it('finds an apply that was running, refuses another, and collects what the agent did meanwhile', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.restart();
    agent.work();
    agent.connect();
    await expect(bench.start(agent, ['site'])).rejects.toMatchObject({
      code: 'operation_in_progress',
      data: { operation_id: id },
    });
    await finish(bench, agent, id);
  });

  it('finds an apply that has ended meanwhile', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.restart();
    while (agent.work());
    await finish(bench, agent, id);
  });

  it('does not forget that an agent had an apply which it has lost since', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.restart();
    await bench.restart();
    agent.journal.clear();
    await comeBack(bench, agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'interrupted',
      error: { message: 'the agent has lost its journal of it' },
      summary: { total: 3, changed: 1 },
    });
    expect((await bench.engine.state.get(agent.nodeId)).applied.map(({ identity }) => identity)).toEqual(['/a']);
    expect(agent.machine.size).toBe(1);
  });

  it('gives up on an agent that does not come back, and believes it when it does', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.restart();
    bench.clock.advance(15 * MINUTE - 1);
    await bench.engine.tick();
    expect((await bench.engine.operations.get(id)).status).toBe('running');
    bench.clock.advance(1);
    await bench.engine.tick();
    expect((await bench.engine.operations.get(id)).status).toBe('interrupted');
    expect(bench.eventTypes('state.').at(-1)).toBe('state.apply_interrupted');

    agent.work();
    agent.connect();
    await bench.settle();
    // It still tells about the old one, so nothing new is begun.
    await expect(bench.start(agent, ['site'])).rejects.toMatchObject({
      code: 'operation_in_progress',
      data: { operation_id: id },
    });
    await bench.disconnect(agent);
    await finish(bench, agent, id);
    expect(bench.eventTypes('state.').slice(-2)).toEqual(['state.apply_interrupted', 'state.apply_succeeded']);
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });

  it('goes on with rising numbers', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const first = await bench.apply(agent, ['site']);
    await bench.restart();
    agent.connect();
    await bench.settle();
    const second = await bench.apply(agent, ['site']);
    expect(second.status).toBe('succeeded');
    const generations = await Promise.all(
      [first, second].map(async ({ operation_id }) => (await findOperation(bench.db, operation_id))?.generation),
    );
    expect(generations[0]).toBe(1);
    // The restart skips numbers that were reserved and not used.
    expect(generations[1]).toBeGreaterThan(1);
  });

  it('does not send again what held secrets', async () => {
    const bench = await openBench({ secrets: oneSecret('hunter22') });
    const agent = await bench.agent('1');
    await bench.upload('site', { '/etc/token': 'token=$' + '{{ secrets.TOKEN }}!' });
    const id = await bench.start(agent, ['site']);
    const contents = await bench.db.selectFrom('run_contents').selectAll().execute();
    const row = JSON.stringify([await findOperation(bench.db, id), contents]);
    expect(row).not.toContain('hunter22');
    expect(row).toContain('token=‹secret TOKEN #1a2b›!');
    await bench.restart();
    await comeBack(bench, agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'failed', error: { code: 'not_delivered' } });
    expect(agent.machine.size).toBe(0);

    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
    expect([...agent.machine.values()].join()).toContain('hunter22');
    const applied = await bench.db.selectFrom('applied_resources').selectAll().execute();
    expect(JSON.stringify(applied)).not.toContain('hunter22');
    expect(JSON.parse(applied[0]?.taint_json ?? '')).toEqual({
      '/content': [{ start: 6, end: 26, secret: 'TOKEN', tag: '1a2b' }],
    });
  });
});

describe('an agent', () => {
  it('whose process dies in the middle reports what it did', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    agent.work();
    agent.crash();
    bench.engine.traffic.disconnected(agent.nodeId);
    await comeBack(bench, agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'interrupted',
      summary: { total: 3, changed: 2 },
    });
    expect((await bench.engine.state.get(agent.nodeId)).applied).toHaveLength(2);
    expect(agent.journal.size).toBe(0);
  });

  it('and tells what it did before its inventory is free for the next apply', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    agent.crash();
    bench.engine.traffic.disconnected(agent.nodeId);
    agent.connect();
    const end = { end: 'interrupted', results: 1, observed: null, error: null } as const;
    agent.outbox.unshift({ type: 'run_finished', run_id: id, ...end });
    await bench.settle();
    expect(agent.journal.size).toBe(0);
    agent.diligent = true;
    expect(await bench.apply(agent, ['site'])).toMatchObject({ status: 'succeeded' });
  });

  it('that is gone before its report is stored must forget it when it is back', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 3);
    agent.work();
    const delivered = bench.deliver(agent);
    await bench.disconnect(agent);
    agent.connect();
    await delivered;
    await bench.settle();
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    expect(agent.journal.size).toBe(0);
  });

  it('is sent nothing on a new connection before it has reported its inventory', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const starting = bench.start(agent, ['site']);
    await bench.disconnect(agent);
    agent.connect();
    const id = await starting;
    expect(agent.inbox).toEqual([]);
    await bench.settle();
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    expect(agent.received.filter(({ type }) => type === 'run')).toHaveLength(1);
  });

  it('that is rejected takes its apply with it at once', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 1);
    await bench.reject(agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'interrupted' });
  });

  it('that is rejected before an apply was sent leaves it as not delivered', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    await bench.reject(agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'failed', error: { code: 'not_delivered' } });
  });

  it('that was removed and comes back under the same key inherits nothing', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 2);
    await bench.reject(agent);
    await deleteAgent(bench.db, agent.nodeId);
    bench.clock.advance(1000);
    await bench.agent('1', { connected: false });
    bench.fleet.agents.set(agent.nodeId, agent);
    await comeBack(bench, agent);
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    expect(await bench.engine.state.get(agent.nodeId)).toMatchObject({ operation_id: null, applied: [] });
    expect(
      (await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 9, offset: 0, status: null }, agent.nodeId))
        .total,
    ).toBe(0);
  });

  it('must forget a run that the store does not know', async () => {
    const bench = await openBench();
    const { agent, id } = await underWay(bench, 3);
    agent.diligent = true;
    await bench.settle();
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
    const unknown = bench.newId();
    agent.journal.set(unknown, { ...emptyRun, items: [] });
    await bench.disconnect(agent);
    await comeBack(bench, agent);
    expect(agent.journal.size).toBe(0);
  });
});

const emptyRun = {
  content: { resources: [], removals: [] },
  state: 'finished',
  cancelled: false,
  end: 'succeeded',
  error: null,
} as const;
