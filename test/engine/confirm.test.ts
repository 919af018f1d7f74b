/** Applies that the agent undoes unless they are confirmed, as the orchestrator sees them. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { findOperation } from '../../daemon/engine/operations/operation-store.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const FILES = { '/a': 'x', '/b': 'x' };

const moduleWith = (confirm: string): string =>
  `name: timed\nsupports: [{platform: linux}]\nconfirm: ${confirm}\nresources:\n  - resource: {file-unix: {path: /t, content: t}}\n`;

const headOf = (agent: ScriptedAgent) => agent.received.findLast((message) => message.type === 'run');

/** An apply of two files that is carried out and waits for its confirmation, on a new connection. */
async function applied(bench: Bench, agent: ScriptedAgent): Promise<string> {
  agent.diligent = false;
  await bench.upload('site', FILES);
  const id = await bench.start(agent, ['site'], { confirmSecs: 60 });
  await bench.settle();
  agent.work();
  agent.work();
  agent.outbox.push({ type: 'run_awaiting', run_id: id, left_secs: 60 });
  await bench.settle();
  await bench.disconnect(agent);
  agent.connect();
  await bench.settle();
  return id;
}

/** The agent ends the run as it says. */
async function ends(
  bench: Bench,
  agent: ScriptedAgent,
  id: string,
  end: Partial<AgentMessageOf<'run_finished'>>,
): Promise<void> {
  agent.outbox.push({
    type: 'run_finished',
    run_id: id,
    end: 'succeeded',
    results: 2,
    observed: null,
    error: null,
    ...end,
  });
  await bench.settle();
}

const confirmations = (agent: ScriptedAgent) => agent.received.filter(({ type }) => type === 'run_confirmed').length;

const UNDONE: Partial<AgentMessageOf<'run_finished'>> = {
  end: 'rolled_back',
  error: { code: 'rolled_back', message: 'the agent has undone the apply, because it did not come back' },
  restored: { restored: 2, not_restored: 0, resources: [] },
};

describe('an apply that has to be confirmed', () => {
  it('asks the agent, with the shortest time of the request and of the modules', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.engine.modules.upload({ name: 'timed', content: moduleWith('2m') }, ALICE);
    for (const [secs, sent] of [
      [600, 120],
      [30, 30],
      [undefined, 120],
    ] as const) {
      await bench.apply(agent, ['site', 'timed'], secs === undefined ? {} : { confirmSecs: secs });
      expect(headOf(agent)).toMatchObject({ confirm_secs: sent });
    }
    await bench.apply(agent, ['site'], { allowRemovals: 9 });
    expect(headOf(agent)).not.toHaveProperty('confirm_secs');
    expect(headOf(agent)).not.toHaveProperty('keep_snapshot');
  });

  it.each(['9s', '61m', '2h', '3601s', '0m', '90', '1 m'])('refuses a module with confirm: %s', async (confirm) => {
    const bench = await openBench();
    const upload = bench.engine.modules.upload({ name: 'timed', content: moduleWith(JSON.stringify(confirm)) }, ALICE);
    await expect(upload).rejects.toThrow(/"confirm" .*from 10s to 1h/);
  });

  it('is refused for an agent that would ignore it, before anything is stored', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.features = null;
    await bench.disconnect(agent);
    agent.connect();
    await bench.settle();
    await bench.upload('site', FILES);
    const tooOld = { code: 'agent_too_old', hint: 'upgrade it first: orch agents upgrade web-1' };
    await expect(bench.start(agent, ['site'], { confirmSecs: 60 })).rejects.toMatchObject(tooOld);
    await expect(bench.start(agent, ['site'], { keepsSnapshot: true })).rejects.toMatchObject(tooOld);
    await expect(bench.start(agent, ['site'], { putsBack: '01J00000000000000000000001' })).rejects.toMatchObject(
      tooOld,
    );
    expect((await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 9, offset: 0, status: null })).total).toBe(
      0,
    );
  });

  it('is not sent to an agent that has come back as an older release', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    await bench.disconnect(agent);
    agent.features = null;
    agent.connect();
    const id = await bench.start(agent, ['site'], { confirmSecs: 60 });
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'failed', error: { code: 'not_delivered' } });
    expect(headOf(agent)).toBeUndefined();
  });

  it('is confirmed once that is stored, and succeeds', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const id = await applied(bench, agent);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'running', confirm_secs: 60 });
    agent.outbox.push({ type: 'run_confirm', run_id: id });
    await bench.settle();
    expect(confirmations(agent)).toBe(1);
    expect((await findOperation(bench.db, id))?.confirmed_at).toBe(bench.clock.now());
    await ends(bench, agent, id, {});
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'succeeded' });
  });

  it('ends as rolled back, and the believed state stays as it was', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': 'old' });
    await bench.apply(agent, ['site']);
    const before = await bench.engine.state.get(agent.nodeId);
    const id = await applied(bench, agent);
    await ends(bench, agent, id, UNDONE);
    const operation = await bench.engine.operations.detail(id);
    expect(operation).toMatchObject({ status: 'rolled_back', error: UNDONE.error, restored: UNDONE.restored });
    expect(bench.events.at(-1)).toMatchObject({
      type: 'state.apply_rolled_back',
      summary: 'the apply of module site on web-1 was undone by the agent: 2 changed of 2',
      metadata: { operation_id: id, error_code: 'rolled_back' },
    });
    const { applied: now, operation_id } = await bench.engine.state.get(agent.nodeId);
    expect([now, operation_id]).toEqual([before.applied, before.operation_id]);
    const found = await bench.engine.operations.list({
      rights: ALL_RIGHTS,
      limit: 9,
      offset: 0,
      status: 'rolled_back',
    });
    expect(found.operations.map(({ operation_id }) => operation_id)).toEqual([id]);
  });

  it('is not confirmed once it was cancelled', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const id = await applied(bench, agent);
    agent.mute = true;
    await bench.engine.applies.cancel(id, ALICE);
    agent.outbox.push({ type: 'run_confirm', run_id: id });
    await bench.settle();
    expect(confirmations(agent)).toBe(0);
    expect(agent.received.filter(({ type }) => type === 'run_cancel')).not.toHaveLength(0);
  });

  it('is confirmed and rolled back after a restart of the orchestrator, too', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const id = await applied(bench, agent);
    await bench.restart();
    agent.connect();
    await bench.settle();
    agent.outbox.push({ type: 'run_confirm', run_id: id });
    await bench.settle();
    expect(confirmations(agent)).toBe(1);
    await ends(bench, agent, id, UNDONE);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'rolled_back', confirm_secs: 60 });
  });

  it('that the orchestrator had given up changes the believed state only if it succeeds', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const id = await applied(bench, agent);
    await bench.restart();
    bench.clock.advance(16 * 60_000);
    await bench.engine.tick();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'interrupted' });
    expect((await bench.engine.state.get(agent.nodeId)).applied).toEqual([]);
    agent.connect();
    await bench.settle();
    await ends(bench, agent, id, UNDONE);
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'rolled_back' });
    expect((await bench.engine.state.get(agent.nodeId)).applied).toEqual([]);
  });

  it('tells its followers once that the machine has to come back', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await bench.upload('site', FILES);
    const id = await bench.start(agent, ['site'], { confirmSecs: 60 });
    await bench.settle();
    const left: number[] = [];
    const { signal } = new AbortController();
    const onAwaiting = async (secs: number) => void left.push(secs);
    const following = (async () => {
      for await (const _ of bench.engine.operations.follow(id, { signal, ignoresSilence: false, onAwaiting }));
    })();
    agent.work();
    agent.work();
    agent.outbox.push({ type: 'run_awaiting', run_id: id, left_secs: 60 });
    await bench.settle();
    await ends(bench, agent, id, UNDONE);
    await following;
    expect(left).toEqual([60]);
  });
});

describe('an apply that keeps what it replaces', () => {
  it('says so, and another asks for it back without a confirmation', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.engine.modules.upload({ name: 'timed', content: moduleWith('1m') }, ALICE);
    await bench.upload('site', FILES);
    const { operation_id: id } = await bench.apply(agent, ['site'], { keepsSnapshot: true });
    expect(headOf(agent)).toMatchObject({ keep_snapshot: true });
    await bench.apply(agent, ['site', 'timed'], { putsBack: id });
    expect(headOf(agent)).toMatchObject({ restore: id });
    expect(headOf(agent)).not.toHaveProperty('confirm_secs');
  });

  it('asks for it also when the orchestrator was restarted before the apply was sent', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', FILES);
    const { operation_id: id } = await bench.apply(agent, ['site'], { keepsSnapshot: true });
    agent.diligent = false;
    const again = await bench.start(agent, ['site'], { putsBack: id });
    expect(await findOperation(bench.db, again)).toMatchObject({ puts_back: id });
    agent.journal.clear();
    agent.received.length = 0;
    await bench.restart();
    agent.connect();
    await bench.settle();
    expect(headOf(agent)).toMatchObject({ run_id: again, restore: id });
  });
});
