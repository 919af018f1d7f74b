import { describe, expect, it } from 'vitest';
import { updateAgent } from '../../daemon/fleet/agent-store.js';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const assign = (bench: Bench, name: string, modules: readonly string[], selector = 'platform=linux') =>
  bench.engine.assignments.create({ name, modules, selector, description: null }, ALICE);

const standingOf = async (bench: Bench, { nodeId }: ScriptedAgent) => {
  await bench.rest();
  return bench.engine.standings.of(nodeId);
};

async function assigned(): Promise<{ bench: Bench; agent: ScriptedAgent }> {
  const bench = await openBench();
  await bench.upload('web', { '/a': '1' });
  const agent = await bench.agent('a');
  await bench.tell('agent.approved', agent);
  await assign(bench, 'all', ['web']);
  return { bench, agent };
}

describe('the standing of an agent', () => {
  it('is unmanaged without modules, and never applied with them', async () => {
    const bench = await openBench();
    await bench.upload('web', { '/a': '1' });
    const agent = await bench.agent('a');
    await bench.tell('agent.approved', agent);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'unmanaged', standing_reason: null });
    await assign(bench, 'all', ['web']);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'never_applied' });
    expect(bench.engine.standings.counts()).toMatchObject({ never_applied: 1, unmanaged: 0 });
  });

  it('is in sync after an apply, behind after a new revision, and in sync again', async () => {
    const { bench, agent } = await assigned();
    await bench.apply(agent, []);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'in_sync' });
    bench.clock.advance(60_000);
    await bench.upload('web', { '/a': '2' });
    const behind = await standingOf(bench, agent);
    expect(behind).toMatchObject({ standing: 'behind', standing_reason: 'module web' });
    expect(behind.standing_since).toBe(bench.clock.now() / 1000);
    await bench.apply(agent, []);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'in_sync' });
  });

  it('stays in sync after an apply that removed something, and with a module that only the operator named', async () => {
    const { bench, agent } = await assigned();
    await bench.upload('web', { '/a': '1', '/b': '1' });
    await bench.upload('own', { '/own': '1' });
    await bench.apply(agent, ['own']);
    await bench.upload('web', { '/a': '1' });
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'behind' });
    await bench.apply(agent, ['own']);
    expect(agent.machine.has('/b')).toBe(false);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'in_sync' });
    await bench.upload('own', { '/own': '2' });
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'behind', standing_reason: 'module own' });
  });

  it('is behind when an apply changed only a part, and names what cannot be resolved', async () => {
    const { bench, agent } = await assigned();
    await bench.apply(agent, []);
    await bench.upload('web', { '/a': '2', '/b': '2' });
    agent.mishaps.set('/b', 'fail');
    await bench.apply(agent, []);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'behind', standing_reason: 'module web' });
    agent.mishaps.clear();
    await bench.upload('other', { '/a': '3' });
    await assign(bench, 'second', ['other']);
    const { standing, standing_reason } = await standingOf(bench, agent);
    expect(standing).toBe('behind');
    expect(standing_reason).toMatch(/\/a/);
  });

  it('is evaluated again by itself after a full disk', async () => {
    const { bench, agent } = await assigned();
    await bench.apply(agent, []);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'in_sync' });
    await bench.upload('web', { '/a': '2' });
    bench.isStoreBroken = true;
    await bench.engine.standings.idle();
    expect(bench.engine.standings.of(agent.nodeId)).toMatchObject({ standing: 'in_sync' });
    bench.isStoreBroken = false;
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'behind' });
  });

  it('is drifted after a check that found differences, until an apply', async () => {
    const { bench, agent } = await assigned();
    await bench.apply(agent, []);
    agent.machine.set('/a', 'by hand');
    await bench.drift(agent);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'drifted', standing_reason: 'module web' });
    await bench.apply(agent, []);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'in_sync' });
  });

  it('follows the tags, survives a restart with its time, and ends with the approval', async () => {
    const bench = await openBench();
    await bench.upload('web', { '/a': '1' });
    const agent = await bench.agent('a');
    await assign(bench, 'web', ['web'], 'role=web');
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'unmanaged' });
    await setTag(bench.db, agent.nodeId, 'role', 'web');
    await bench.tell('agent.tags_changed', agent);
    const { standing_since } = await standingOf(bench, agent);
    bench.clock.advance(3_600_000);
    await bench.restart();
    expect(await standingOf(bench, agent)).toMatchObject({ standing: 'never_applied', standing_since });
    await updateAgent(bench.db, agent.nodeId, { status: 'rejected' });
    await bench.tell('agent.rejected', agent);
    expect(await standingOf(bench, agent)).toMatchObject({ standing: null, standing_since: null });
  });
});
