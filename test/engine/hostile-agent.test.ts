import { describe, expect, it } from 'vitest';
import type { EngineMessage } from '../../daemon/fleet/connection-registry.js';
import type { RunItem } from '../../src/wire/messages.js';
import { type Bench, openBench, resultOf, type ScriptedAgent } from '../support/engine.js';

const FILES = { '/a': 'x', '/b': 'x' };

/** An apply that the agent has begun, of which nothing is reported yet. */
async function begun(bench: Bench): Promise<{ agent: ScriptedAgent; id: string }> {
  const agent = await bench.agent('1');
  agent.diligent = false;
  await bench.upload('site', FILES);
  const id = await bench.start(agent, ['site']);
  await bench.settle();
  return { agent, id };
}

function item(index: number, change: Partial<RunItem['result']> = {}): RunItem {
  const identity = index === 0 ? '/a' : '/b';
  const address = { module: 'site', kind: 'file-unix', identity, id: null, name: null };
  return {
    index,
    result: { ...resultOf(address, { status: 'changed', action: 'create' }), ...change },
    existed: false,
  };
}

/** The engine's answer to a message; the connection is closed when it is not null. */
async function answer(bench: Bench, agent: ScriptedAgent, message: EngineMessage): Promise<string | null> {
  const before = bench.violations.length;
  agent.outbox.push(message);
  while (await bench.deliver(agent));
  return bench.violations[before]?.message ?? null;
}

describe('an agent that cannot be trusted', () => {
  it.each([
    [
      'an item that was not sent',
      [item(0, { identity: '/a' }), { ...item(1), index: 2 }],
      'item 2 of a run with 2 items',
    ],
    ['another resource', [item(0, { identity: '/etc/shadow' })], 'another resource for item 0'],
    ['another module', [item(0, { module: 'other' })], 'another resource for item 0'],
    ['another kind', [item(0, { kind: 'directory-unix' })], 'another resource for item 0'],
    ['an item twice at once', [item(0), item(0)], 'a second result of item 0'],
    [
      'more unchanged resources than were sent',
      [{ index: 1, count: 2, duration_ms: 0 }],
      'item 2 of a run with 2 resources',
    ],
    ['an item twice, once in short', [item(1), { index: 0, count: 2, duration_ms: 0 }], 'a second result of item 1'],
    ['a million unchanged resources', [{ index: 0, count: 1_000_000, duration_ms: 0 }], 'of a run with 2 resources'],
    ['more than there is room for', [item(0, { diff: 'x'.repeat(300_000) })], 'too long a result of item 0'],
  ])('cannot report %s', async (_, items, complaint) => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    const message = { type: 'run_results', run_id: id, from: 0, items } as const;
    expect(await answer(bench, agent, { ...message, items: [...items] })).toContain(complaint);
    expect((await bench.engine.operations.detail(id)).resources).toEqual([]);
    expect((await bench.engine.operations.get(id)).status).toBe('running');
  });

  it('cannot report an item again at a later position', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    expect(await answer(bench, agent, { type: 'run_results', run_id: id, from: 0, items: [item(0)] })).toBeNull();
    const again = await answer(bench, agent, { type: 'run_results', run_id: id, from: 1, items: [item(0)] });
    expect(again).toContain('a second result of item 0');
  });

  it('cannot speak of what another agent does', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    const other = await bench.agent('2');
    const messages: EngineMessage[] = [
      { type: 'run_accepted', run_id: id },
      { type: 'run_results', run_id: id, from: 0, items: [item(0)] },
      { type: 'run_finished', run_id: id, end: 'failed', results: 0, observed: null, error: null },
      { type: 'inventory', runs: [{ run_id: id, state: 'finished', results: 0 }] },
    ];
    for (const message of messages) {
      other.connect();
      if (message.type === 'inventory') other.outbox = [];
      await bench.settle();
      expect(await answer(bench, other, message)).toContain("which is another agent's");
    }
    agent.diligent = true;
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'succeeded', node_id: agent.nodeId });
    other.connect();
    await bench.settle();
    const message = {
      type: 'run_finished',
      run_id: id,
      end: 'failed',
      results: 2,
      observed: null,
      error: null,
    } as const;
    expect(await answer(bench, other, message)).toContain("which is another agent's");
    expect((await bench.engine.operations.get(id)).status).toBe('succeeded');
  });

  it("cannot answer another agent's plan", async () => {
    const bench = await openBench();
    const [agent, other] = [await bench.agent('1'), await bench.agent('2')];
    agent.diligent = false;
    await bench.upload('site', FILES);
    const plan = bench.plan(agent, ['site']);
    await bench.settle();
    const run = agent.received.find((message) => message.type === 'run');
    const message = { type: 'run_accepted', run_id: run?.run_id ?? '' } as const;
    expect(await answer(bench, other, message)).toContain("which is another agent's");
    agent.diligent = true;
    expect((await bench.while(plan)).status).toBe('succeeded');
  });

  it('cannot end a plan without its results, or with other ones', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const lies = (run_id: string): EngineMessage[] => [
      { type: 'run_finished', run_id, end: 'succeeded', results: 0, observed: null, error: null },
      { type: 'run_finished', run_id, end: 'succeeded', results: 2, observed: null, error: null },
      { type: 'run_results', run_id, from: 1, items: [item(1)] },
      { type: 'run_results', run_id, from: 0, items: [item(0, { identity: '/c' })] },
    ];
    for (const index of lies('').keys()) {
      if (!agent.connected) agent.connect();
      await bench.settle();
      const plan = bench.plan(agent, ['site']);
      plan.catch(() => undefined);
      await bench.settle();
      const run = agent.received.filter((message) => message.type === 'run').at(-1);
      const lie = lies(run?.run_id ?? '')[index];
      if (lie !== undefined) expect(await answer(bench, agent, lie)).not.toBeNull();
      await expect(bench.while(plan)).rejects.toMatchObject({ code: 'agent_not_connected' });
    }
  });

  it('cannot claim an apply that it was never sent', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['site']);
    agent.outbox = [];
    expect(await answer(bench, agent, { type: 'run_accepted', run_id: id })).toContain('never sent');
    expect((await bench.engine.operations.get(id)).status).toBe('queued');
  });

  it('that reports success without all results, or with failed ones, has failed', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    const end = { type: 'run_finished', run_id: id, end: 'succeeded', observed: null, error: null } as const;
    await answer(bench, agent, { type: 'run_results', run_id: id, from: 0, items: [item(0)] });
    await answer(bench, agent, { ...end, results: 1 });
    expect(await bench.engine.operations.get(id)).toMatchObject({
      status: 'failed',
      error: { code: 'protocol_violation', message: 'the agent reported success, but 1 of 2 results are missing' },
    });
    agent.journal.clear();
    const second = await bench.start(agent, ['site']);
    await bench.settle();
    const items = [item(0), item(1, { status: 'failed' })];
    await answer(bench, agent, { type: 'run_results', run_id: second, from: 0, items });
    await answer(bench, agent, { ...end, run_id: second, results: 2 });
    expect(await bench.engine.operations.get(second)).toMatchObject({ status: 'failed', summary: { failed: 1 } });
  });

  it('cannot tell its inventory twice', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    expect(await answer(bench, agent, { type: 'inventory', runs: [] })).toContain('a second time');
    expect((await bench.engine.operations.get(id)).status).toBe('running');
  });

  it('cannot take results back, but ends, since a damaged journal may have lost them', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    await answer(bench, agent, { type: 'run_results', run_id: id, from: 0, items: [item(0)] });
    const end = { type: 'run_finished', run_id: id, end: 'failed', results: 0, observed: null, error: null } as const;
    expect(await answer(bench, agent, end)).toBeNull();
    expect(await bench.engine.operations.detail(id)).toMatchObject({
      status: 'failed',
      resources: [{ status: 'changed' }],
    });
  });

  it('cannot change what is over, and must forget it', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    agent.diligent = true;
    await bench.settle();
    const before = await bench.engine.operations.detail(id);
    const end = { type: 'run_finished', run_id: id, end: 'failed', results: 9, observed: null, error: null } as const;
    expect(await answer(bench, agent, end)).toBeNull();
    expect(await answer(bench, agent, { type: 'run_results', run_id: id, from: 2, items: [item(0)] })).toBeNull();
    expect(await bench.engine.operations.detail(id)).toEqual(before);
    await bench.settle();
    expect(agent.received.filter(({ type }) => type === 'run_ack')).toHaveLength(2);
  });

  it('cannot name its resources as it likes', async () => {
    const bench = await openBench();
    const { agent, id } = await begun(bench);
    await answer(bench, agent, {
      type: 'run_results',
      run_id: id,
      from: 0,
      items: [item(0, { id: 'x', name: '\u001b[2J' })],
    });
    expect((await bench.engine.operations.detail(id)).resources).toMatchObject([{ id: null, name: null }]);
  });
});
