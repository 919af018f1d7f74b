import { describe, expect, it } from 'vitest';
import { reportedFacts } from '../../daemon/fleet/fact-store.js';
import type { OwnFacts } from '../../src/kernel/facts.js';
import { Fleet, OPERATOR, type TestAgent, until } from '../support/fleet.js';

const OWN = { app: { value: { port: 80 }, error: null } };

interface Report {
  readonly own?: OwnFacts;
  readonly problem?: string | null;
  readonly parts?: object;
  readonly volatile?: object;
  readonly request_id?: number;
}

/** Sends facts, and settles once they are stored. */
async function report(fleet: Fleet, agent: TestAgent, { own = {}, problem = null, ...more }: Report): Promise<void> {
  fleet.clock.advance(10_000);
  agent.send({ type: 'facts', parts: {}, volatile: {}, own, problem, ...more } as never);
  await fleet.quiet();
}

describe('facts that an agent reports', () => {
  it('are stored and shown, and modules see their values', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    expect(await fleet.facts.of(agent.nodeId)).toMatchObject({ facts: {}, reported_at: null });
    const parts = { interfaces: { eth0: { ipv4: ['192.0.2.1'], ipv6: [] } } };
    await report(fleet, agent, { own: OWN, parts, volatile: { boot_time: 5, free_mb: { '/': 7 } } });
    expect(await fleet.facts.of(agent.nodeId)).toMatchObject({
      attributes: parts,
      volatile: { boot_time: 5, free_mb: { '/': 7 } },
      facts: { app: { value: { port: 80 }, error: null, since: null } },
      problem: null,
      reported_at: 1_760_000_010,
    });
    expect(await reportedFacts(fleet.db, agent.nodeId)).toEqual({ parts, own: { app: { port: 80 } } });
    expect(await fleet.events('agent.attributes_changed')).toMatchObject([
      {
        summary: 'Agent web reports other facts.app, interfaces',
        metadata: { changed: ['facts.app', 'interfaces'] },
      },
    ]);
  });

  it('raise no event when only volatile ones differ', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await report(fleet, agent, { own: OWN, volatile: { free_mb: { '/': 7 } } });
    await report(fleet, agent, { own: OWN, volatile: { free_mb: { '/': 6 } } });
    expect(await fleet.events('agent.attributes_changed')).toHaveLength(1);
    expect((await fleet.facts.of(agent.nodeId)).volatile).toEqual({ free_mb: { '/': 6 } });
  });

  it('keep their last value when they fail, with the reason and since when, and go when they are gone', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await report(fleet, agent, { own: OWN });
    const failing = { app: { error: 'it took longer than 5 s' }, other: { error: 'it is a link' } };
    await report(fleet, agent, { own: failing });
    const since = 1_760_000_020;
    const stale = {
      app: { value: { port: 80 }, error: 'it took longer than 5 s', since },
      other: { error: 'it is a link', since },
    };
    expect((await fleet.facts.of(agent.nodeId)).facts).toEqual(stale);
    await report(fleet, agent, { own: failing });
    expect((await fleet.facts.of(agent.nodeId)).facts).toEqual(stale);
    expect(await fleet.events('agent.attributes_changed')).toHaveLength(1);
    // What the agent did not look at is stale as well.
    await report(fleet, agent, { problem: 'the directory can be written by others' });
    expect((await fleet.facts.of(agent.nodeId)).facts).toMatchObject({
      app: { value: { port: 80 }, error: 'the directory can be written by others' },
    });
    await report(fleet, agent, {});
    expect((await fleet.facts.of(agent.nodeId)).facts).toEqual({});
    expect((await fleet.events('agent.attributes_changed')).at(-1)?.metadata).toMatchObject({ changed: ['facts.app'] });
  });

  it('stay 64, whatever names an agent makes up', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    for (const letter of ['a', 'b', 'c']) {
      const names = Array.from({ length: 40 }, (_, n) => [`${letter}${n}`, { value: n, error: null }]);
      await report(fleet, agent, { own: Object.fromEntries(names), problem: 'there are more' });
    }
    expect(Object.keys((await fleet.facts.of(agent.nodeId)).facts)).toHaveLength(64);
  });

  it.each<[string, Report, RegExp]>([
    ['too deep', { own: { a: { value: [[[[[[[[[1]]]]]]]]], error: null } } }, /a fact a that is none: it is deeper/],
    ['a name that is none', { own: { 'a b': { value: 1, error: null } } }, /malformed facts message/],
    ['an attribute of another type', { parts: { interfaces: 'all' } }, /malformed facts message/],
    ['an unknown attribute', { parts: { cards: {} } }, /malformed facts message/],
    [
      'too large',
      {
        own: Object.fromEntries(
          Array.from({ length: 30 }, (_, n) => [`f${n}`, { value: 'x'.repeat(20_000), error: null }]),
        ),
      },
      /facts of more than 262144 characters/,
    ],
  ])('cost the connection when they are %s', async (_, given, reason) => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await report(fleet, agent, given);
    expect((await agent.closed).reason).toMatch(reason);
  });

  it('cost the connection when they come too often, and before the approval', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await report(fleet, agent, { own: OWN });
    agent.send({ type: 'facts', parts: {}, volatile: {}, own: {}, problem: null } as never);
    expect((await agent.closed).reason).toMatch(/its facts too often/);
    const pending = await fleet.join();
    pending.send({ type: 'facts', parts: {}, volatile: {}, own: {}, problem: null } as never);
    expect((await pending.closed).reason).toMatch(/facts before it was approved/);
  });

  it('are gone with their agent', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await report(fleet, agent, { own: OWN });
    await fleet.reject(agent.nodeId);
    await fleet.agents.remove(OPERATOR, agent.nodeId);
    expect(await fleet.db.selectFrom('agent_facts').selectAll().execute()).toEqual([]);
  });
});

describe('a request for facts', () => {
  it('is answered with what the agent reads then, for all who wait', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await report(fleet, agent, { own: OWN });
    const asked = [fleet.facts.refresh(agent.nodeId), fleet.facts.refresh(agent.nodeId)];
    await until(() => agent.received.some(({ type }) => type === 'facts_request'));
    const requests = agent.received.filter(({ type }) => type === 'facts_request');
    expect(requests).toHaveLength(1);
    const [{ request_id }] = requests as unknown as [{ request_id: number }];
    agent.send({
      type: 'facts',
      parts: {},
      volatile: {},
      own: { app: { value: 2, error: null } },
      problem: null,
      request_id,
    } as never);
    for (const answer of await Promise.all(asked)) expect(answer.facts.app).toMatchObject({ value: 2 });
  });

  it('is refused for an agent that is away, too old, unknown, or says nothing', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await expect(fleet.facts.refresh('f'.repeat(32))).rejects.toMatchObject({ code: 'agent_not_found' });
    await expect(fleet.facts.refresh(agent.nodeId)).rejects.toMatchObject({ code: 'agent_too_old' });
    await report(fleet, agent, {});
    await expect(fleet.facts.refresh(agent.nodeId)).rejects.toMatchObject({ code: 'agent_timeout' });
    await fleet.gone(agent);
    await expect(fleet.facts.refresh(agent.nodeId)).rejects.toMatchObject({ code: 'agent_not_connected' });
  });
});
