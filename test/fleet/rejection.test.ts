import { describe, expect, it } from 'vitest';
import { Fleet, OPERATOR, type TestAgent, until } from '../support/fleet.js';

const rejected = { code: 4403, reason: 'this agent was rejected by an operator' };
const ack = { type: 'run_ack', run_id: '01J8ZQ4Y7M0000000000000000' } as const;

describe('a rejection', () => {
  it('of a pending agent closes its connection', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    expect(await fleet.reject(agent.nodeId)).toMatchObject({ status: 'rejected', name: null, connected: false });
    expect(await agent.closed).toEqual(rejected);
    expect(fleet.traffic.log).toEqual([`revoked ${agent.nodeId}`]);
    expect(await fleet.story()).toEqual(['agent.pending', 'agent.rejected']);
  });

  it('of an approved agent ends its connection in the same tick, and tells the engine', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const revoked = fleet.gateway.revoked(agent.nodeId);
    expect(fleet.registry.has(agent.nodeId)).toBe(false);
    expect(fleet.registry.send(agent.nodeId, [ack])).toBe(false);
    await revoked;
    expect(fleet.traffic.log).toEqual([`disconnected ${agent.nodeId}`, `revoked ${agent.nodeId}`]);
    expect(await agent.closed).toEqual(rejected);
  });

  it('is audited with what was before, and the going too', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.reject(agent.nodeId);
    const events = await fleet.events('agent.rejected', 'agent.disconnected');
    expect(events).toMatchObject([
      {
        type: 'agent.rejected',
        summary: 'ada rejected agent web',
        metadata: { before: 'approved', request_id: OPERATOR.requestId },
      },
      { type: 'agent.disconnected', target: { name: 'web' } },
    ]);
  });

  it('drops messages of the agent that are not handled yet', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    let go: () => void = () => undefined;
    fleet.traffic.onReceive = () => new Promise<void>((resolve) => (go = resolve));
    for (let count = 0; count < 5; count += 1) agent.send({ type: 'run_accepted', run_id: ack.run_id });
    await until(() => fleet.traffic.messages.length === 1);
    await fleet.reject(agent.nodeId);
    go();
    await agent.closed;
    await fleet.quiet();
    expect(fleet.traffic.messages).toHaveLength(1);
  });

  it('does not wait for an agent that does not answer', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.die();
    expect(await fleet.reject(agent.nodeId)).toMatchObject({ connected: false });
    expect(await fleet.events('agent.disconnected')).toHaveLength(1);
    agent.socket.resume();
    expect(await agent.closed).toEqual(rejected);
  });

  it('cuts one that goes on talking', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.die();
    await fleet.reject(agent.nodeId);
    const talk = setInterval(() => agent.send({ type: 'run_accepted', run_id: ack.run_id }), 10);
    await until(() => agent.socket.readyState !== agent.socket.OPEN);
    clearInterval(talk);
    expect(fleet.traffic.messages).toEqual([]);
  });

  it('turns the agent away when it comes back, which is audited once a minute', async () => {
    const fleet = await Fleet.start();
    const [agent, other] = [await fleet.approved('web'), await fleet.approved('db')];
    await fleet.reject(agent.nodeId);
    await fleet.reject(other.nodeId);
    const comeBack = async (one: TestAgent) => {
      const again = await fleet.join(one.identity);
      expect(await again.closed).toEqual(rejected);
      expect(again.received).toEqual([]);
    };
    for (let count = 0; count < 3; count += 1) await comeBack(agent);
    await comeBack(other);
    expect((await fleet.events('agent.refused')).map(({ target }) => target.name)).toEqual(['web', 'db']);
    fleet.clock.advance(60_000);
    await comeBack(agent);
    const events = await fleet.events('agent.refused');
    expect(events).toHaveLength(3);
    expect(events.at(-1)).toMatchObject({ metadata: { reason: rejected.reason, address: '127.0.0.1' } });
    expect(fleet.traffic.messages).toEqual([]);
    expect(fleet.registry.has(agent.nodeId)).toBe(false);
    expect((await fleet.agents.get(agent.nodeId)).connected).toBe(false);
  });

  it('can be taken back', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.reject(agent.nodeId);
    expect(await fleet.approve(agent.nodeId)).toMatchObject({ status: 'approved', name: 'web' });
    expect((await fleet.join(agent.identity)).received).toMatchObject([{ status: 'approved', name: 'web' }]);
  });
});

describe('a rejection that meets an arrival', () => {
  /** A known agent that is away. */
  async function away(fleet: Fleet): Promise<TestAgent> {
    const agent = await fleet.approved('web');
    await fleet.gone(agent);
    return agent;
  }

  async function expectOut(fleet: Fleet, agent: TestAgent): Promise<void> {
    expect(await agent.closed).toEqual(rejected);
    expect(agent.received).toEqual([]);
    expect(fleet.registry.has(agent.nodeId)).toBe(false);
    expect(fleet.registry.send(agent.nodeId, [ack])).toBe(false);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ status: 'rejected', connected: false });
    const [came, went] = [await fleet.events('agent.connected'), await fleet.events('agent.disconnected')];
    expect(went).toHaveLength(came.length);
  }

  it('after the admission was decided', async () => {
    const fleet = await Fleet.start();
    const known = await away(fleet);
    const release = fleet.writers.presence.holdNext();
    const before = fleet.writers.presence.calls;
    const agent = await fleet.dial(known.identity);
    agent.hello();
    await until(() => fleet.writers.presence.calls === before + 1);
    await fleet.reject(agent.nodeId);
    release();
    await expectOut(fleet, agent);
  });

  it('after its record was read as approved', async () => {
    const fleet = await Fleet.start();
    const known = await away(fleet);
    const release = fleet.writers.presence.delayNext();
    const before = fleet.writers.presence.commits;
    const agent = await fleet.dial(known.identity);
    agent.hello();
    await until(() => fleet.writers.presence.commits === before + 1);
    await fleet.reject(agent.nodeId);
    release();
    await expectOut(fleet, agent);
  });

  it('that is committed but not yet known to the connections when the record is read', async () => {
    const fleet = await Fleet.start();
    const known = await away(fleet);
    const release = fleet.writers.service.delayNext();
    const before = fleet.writers.service.commits;
    const rejection = fleet.reject(known.nodeId);
    await until(() => fleet.writers.service.commits === before + 1);
    const agent = await fleet.dial(known.identity);
    agent.hello();
    await agent.closed;
    release();
    await rejection;
    await expectOut(fleet, agent);
  });

  it('while an older connection with its key is asked whether it lives', async () => {
    const fleet = await Fleet.start({ timeouts: { answer: 300 } });
    const older = await fleet.approved('web');
    older.die();
    const agent = await fleet.dial(older.identity);
    agent.hello();
    // Time for the older connection to be asked; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 50));
    await fleet.reject(agent.nodeId);
    await expectOut(fleet, agent);
  });

  it('at any moment', async () => {
    const fleet = await Fleet.start();
    const known = await away(fleet);
    for (let round = 0; round < 40; round += 1) {
      const agent = await fleet.dial(known.identity);
      agent.hello();
      for (let turn = 0; turn < round % 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      await fleet.reject(known.nodeId);
      expect(fleet.registry.isConnected(known.nodeId)).toBe(false);
      expect(await agent.closed).toEqual(rejected);
      await fleet.quiet();
      expect(fleet.registry.get(known.nodeId)).toBeUndefined();
      await fleet.approve(known.nodeId);
    }
    const [came, went] = [await fleet.events('agent.connected'), await fleet.events('agent.disconnected')];
    expect(went).toHaveLength(came.length);
    expect(fleet.errors).toEqual([]);
  });
});
