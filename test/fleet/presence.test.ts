import { describe, expect, it } from 'vitest';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { Fleet, HELLO, type TestAgent, until } from '../support/fleet.js';
import { newIdentity } from '../support/identity.js';

/** Settles once the orchestrator has heard of the agent again. */
const heard = (fleet: Fleet, agent: TestAgent): Promise<boolean> =>
  new Promise((resolve) => fleet.registry.get(agent.nodeId)?.watch(resolve));

describe('an approved agent', () => {
  it('has its coming and going audited', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.gone(agent);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ connected: false });
    fleet.clock.advance(5_000);
    await fleet.join(agent.identity, { agent_version: '0.2.0' });
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ connected: true, connected_at: 1_760_000_005 });
    const party = { id: agent.nodeId, name: 'web', type: 'agent' };
    expect(await fleet.events('agent.connected', 'agent.disconnected')).toMatchObject([
      { type: 'agent.connected', actor: party, target: party },
      { type: 'agent.disconnected', actor: party, target: party, summary: 'Agent web disconnected' },
      {
        type: 'agent.connected',
        summary: 'Agent web connected from 127.0.0.1',
        metadata: { address: '127.0.0.1', agent_version: '0.2.0', protocol_version: PROTOCOL_VERSION },
      },
    ]);
    expect(fleet.traffic.log).toEqual([`disconnected ${agent.nodeId}`]);
  });

  it('that comes and goes over and over, each time with another attribute, fills no log', async () => {
    const fleet = await Fleet.start();
    let agent = await fleet.approved('web');
    const types = ['agent.connected', 'agent.disconnected', 'agent.attributes_changed'];
    for (let at = 0; at < 50; at += 1) {
      await fleet.gone(agent);
      agent = await fleet.join(agent.identity, { attributes: { kernel: `${at}`, [`a${at % 3}`]: 'x' } });
    }
    const during = await fleet.events(...types);
    expect(during.length).toBeLessThanOrEqual(2 * 6);
    expect((await fleet.agents.get(agent.nodeId)).attributes).toMatchObject({ kernel: '49' });
    fleet.clock.advance(30_000);
    await fleet.presence.flush();
    await fleet.presence.flush();
    expect((await fleet.events(...types)).slice(during.length)).toMatchObject([
      { type: 'agent.connected', target: { name: 'web' }, metadata: { count: 95 } },
      { type: 'agent.attributes_changed', metadata: { count: 44, changed: ['a0', 'a1', 'a2', 'kernel'] } },
    ]);
    await fleet.gone(agent);
    expect(await fleet.events(...types)).toHaveLength(during.length + 2);
    await fleet.gateway.stop();
    expect((await fleet.events(...types)).at(-1)).toMatchObject({ type: 'agent.disconnected' });
  });

  it('that says goodbye is gone at once', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.socket.close(1000);
    expect((await agent.closed).code).toBe(1000);
    await until(() => !fleet.registry.has(agent.nodeId));
    expect(await fleet.story()).toContain('agent.disconnected');
  });

  it('leaves as often as it came when it is gone before it was let in', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.gone(agent);
    const before = await fleet.events('agent.connected', 'agent.disconnected');

    const release = fleet.writers.presence.holdNext();
    const early = await fleet.dial(agent.identity);
    early.hello();
    await until(() => fleet.registry.get(agent.nodeId) !== undefined);
    early.socket.terminate();
    await until(() => fleet.registry.get(agent.nodeId) === undefined);
    release();
    expect(await fleet.events('agent.connected', 'agent.disconnected')).toEqual(before);

    const releaseLater = fleet.writers.presence.delayNext();
    const late = await fleet.dial(agent.identity);
    late.hello();
    const commits = fleet.writers.presence.commits;
    await until(() => fleet.writers.presence.commits === commits + 1);
    late.socket.terminate();
    await until(() => fleet.registry.get(agent.nodeId) === undefined);
    releaseLater();
    const story = (await fleet.events('agent.connected', 'agent.disconnected')).map(({ type }) => type);
    expect(story.slice(before.length)).toEqual(['agent.connected', 'agent.disconnected']);
    expect(fleet.traffic.log).toEqual([`disconnected ${agent.nodeId}`]);
  });
});

describe('a lost journal', () => {
  it('is audited with its reason', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.gone(agent);
    await fleet.join(agent.identity, { journal_loss: 'the journal /j is damaged at byte 4' });
    expect(await fleet.events('agent.journal_lost')).toMatchObject([
      {
        target: { id: agent.nodeId, name: 'web' },
        summary: 'Agent web has lost its journal of applies, or part of it: the journal /j is damaged at byte 4',
        metadata: { reason: 'the journal /j is damaged at byte 4' },
      },
    ]);
  });
});

describe('attributes', () => {
  it('that are other at the next connection are audited once', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.gone(agent);
    const attributes = { platform: 'linux', arch: 'arm64', kernel: '6.1' };
    await fleet.gone(await fleet.join(agent.identity, { attributes }));
    await fleet.join(agent.identity, { attributes: { kernel: '6.1', arch: 'arm64', platform: 'linux' } });
    expect(await fleet.events('agent.attributes_changed')).toMatchObject([
      {
        actor: { id: agent.nodeId, type: 'agent' },
        target: { id: agent.nodeId, name: 'web' },
        summary: 'Agent web reports other arch, kernel',
        metadata: { changed: ['arch', 'kernel'] },
      },
    ]);
    expect((await fleet.agents.get(agent.nodeId)).attributes).toEqual(attributes);
  });

  it('that change on a connection are kept and audited once', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    for (const arch of ['arm64', 'arm64', 'riscv']) {
      agent.send({ type: 'attributes', attributes: { arch } });
      await until(async () => (await fleet.agents.get(agent.nodeId)).attributes.arch === arch);
      const heard = new Promise((resolve) => agent.socket.once('pong', resolve));
      agent.socket.ping();
      await heard;
      fleet.clock.advance(10_000);
    }
    await until(async () => (await fleet.agents.get(agent.nodeId)).attributes.arch === 'riscv');
    const events = await fleet.events('agent.attributes_changed');
    expect(events.map(({ metadata }) => metadata)).toEqual([{ changed: ['arch', 'platform'] }, { changed: ['arch'] }]);
    expect(fleet.traffic.messages).toEqual([]);
  });

  it('that come too often are a violation, so that no agent floods the log', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    for (const arch of ['arm64', 'riscv']) agent.send({ type: 'attributes', attributes: { arch } });
    await until(async () => (await fleet.events('agent.protocol_violation')).length === 1);
    expect((await fleet.agents.get(agent.nodeId)).connected).toBe(false);
  });

  it('of many names make no long sentence', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const attributes = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`a${index}`, 'x']));
    agent.send({ type: 'attributes', attributes });
    await until(async () => (await fleet.events('agent.attributes_changed')).length === 1);
    const [event] = await fleet.events('agent.attributes_changed');
    expect(event?.summary).toBe('Agent web reports other a0, a1, a10, a11, a12 and 57 more');
    expect(event?.metadata.changed).toHaveLength(62);
  });
});

describe('silence', () => {
  it('of 45 seconds ends a connection, and pings keep the others', async () => {
    const fleet = await Fleet.start();
    const [dead, alive, waiting] = [await fleet.approved('dead'), await fleet.approved('alive'), await fleet.join()];
    dead.die();
    let pings = 0;
    alive.socket.on('ping', () => {
      pings += 1;
    });
    const beat = async (ms: number) => {
      fleet.clock.advance(ms);
      const answers = [alive, waiting].map((agent) => heard(fleet, agent));
      fleet.registry.heartbeat();
      await Promise.all(answers);
    };
    await beat(15_000);
    await beat(15_000);
    await beat(15_000);
    expect(pings).toBe(3);
    expect(fleet.registry.has(dead.nodeId)).toBe(false);
    expect(fleet.registry.isConnected(alive.nodeId)).toBe(true);
    expect(fleet.registry.has(waiting.nodeId)).toBe(true);
    expect(await fleet.events('agent.disconnected')).toMatchObject([{ target: { name: 'dead' } }]);
    expect(fleet.traffic.log).toEqual([`disconnected ${dead.nodeId}`]);
  });

  it('of less does not, and no connection is pinged before it is time', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    let pings = 0;
    agent.socket.on('ping', () => {
      pings += 1;
    });
    fleet.clock.advance(14_999);
    fleet.registry.heartbeat();
    agent.send({ type: 'run_accepted', run_id: '01J8ZQ4Y7M0000000000000000' });
    await until(() => fleet.traffic.messages.length === 1);
    agent.die();
    fleet.clock.advance(44_999);
    fleet.registry.heartbeat();
    expect(fleet.registry.isConnected(agent.nodeId)).toBe(true);
    fleet.clock.advance(1);
    fleet.registry.heartbeat();
    expect(fleet.registry.has(agent.nodeId)).toBe(false);
    expect(pings).toBe(0);
  });

  it('is broken by a ping of the agent too', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.socket.on('ping', () => agent.socket.pause());
    fleet.clock.advance(44_000);
    const sign = heard(fleet, agent);
    agent.socket.ping();
    expect(await sign).toBe(true);
    agent.die();
    fleet.clock.advance(44_000);
    fleet.registry.heartbeat();
    expect(fleet.registry.isConnected(agent.nodeId)).toBe(true);
  });
});

describe('a second connection with the same key', () => {
  const reason = 'another agent with the same key is connected';

  it('is refused while the first is alive, and raises an alarm', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const second = await fleet.join(agent.identity);
    expect(await second.closed).toEqual({ code: 4409, reason });
    expect(second.received).toEqual([]);
    expect(agent.socket.readyState).toBe(agent.socket.OPEN);
    expect(fleet.registry.isConnected(agent.nodeId)).toBe(true);
    await until(async () => (await fleet.events('agent.duplicate_identity')).length > 0);
    const rows = await fleet.db.selectFrom('audit_events').select(['event_type', 'severity']).execute();
    expect(rows).toContainEqual({ event_type: 'agent.duplicate_identity', severity: 'critical' });
    expect(await fleet.events('agent.duplicate_identity')).toMatchObject([
      {
        target: { id: agent.nodeId, name: 'web' },
        summary:
          'A second agent with the key of web came from 127.0.0.1 as box. ' +
          'It was refused; if it comes again, nothing is sent to web until an operator decides which machine it is',
        metadata: { address: '127.0.0.1', hostname: 'box' },
      },
    ]);
    expect(await fleet.story()).not.toContain('agent.disconnected');
  });

  it('raises an alarm for each key, once a day', async () => {
    const fleet = await Fleet.start();
    const [one, two] = [await fleet.approved('one'), await fleet.approved('two')];
    for (const { identity } of [one, one, two, two]) await (await fleet.join(identity)).closed;
    const alarms = async () => (await fleet.events('agent.duplicate_identity')).map(({ target }) => target.name);
    await until(async () => (await alarms()).length >= 2);
    expect(await alarms()).toEqual(['one', 'two']);
    for (const hours of [1, 22]) {
      fleet.clock.advance(hours * 3_600_000);
      await (await fleet.join(one.identity)).closed;
      expect(await alarms()).toHaveLength(2);
    }
    fleet.clock.advance(3_600_000);
    await (await fleet.join(one.identity)).closed;
    await until(async () => (await alarms()).length > 2);
    expect(await alarms()).toEqual(['one', 'two', 'one']);
  });

  it('takes the place of a first that is dead', async () => {
    const fleet = await Fleet.start({ timeouts: { answer: 200 } });
    const agent = await fleet.approved('web');
    agent.die();
    const second = await fleet.join(agent.identity);
    expect(second.received).toMatchObject([{ status: 'approved', name: 'web' }]);
    expect(await fleet.story()).toEqual([
      'agent.pending',
      'agent.approved',
      'agent.connected',
      'agent.disconnected',
      'agent.connected',
    ]);
    expect(fleet.traffic.log).toEqual([`disconnected ${agent.nodeId}`]);
    second.send({ type: 'run_accepted', run_id: '01J8ZQ4Y7M0000000000000000' });
    await until(() => fleet.traffic.messages.length === 1);
    expect(fleet.registry.send(agent.nodeId, [{ type: 'run_ack', run_id: '01J8ZQ4Y7M0000000000000000' }])).toBe(true);
    expect(await second.message(1)).toMatchObject({ type: 'run_ack' });
  });

  it('takes the place of a first that goes away while it is asked', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    agent.die();
    const second = await fleet.dial(agent.identity);
    second.hello();
    // Time for the older connection to be asked; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 50));
    agent.socket.terminate();
    expect(await second.message(0)).toMatchObject({ status: 'approved' });
  });

  it('that itself goes away meanwhile leaves the place empty', async () => {
    const fleet = await Fleet.start({ timeouts: { answer: 200 } });
    const agent = await fleet.approved('web');
    agent.die();
    const second = await fleet.dial(agent.identity);
    second.hello();
    // Time for the older connection to be asked; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 50));
    second.socket.terminate();
    await until(() => fleet.registry.get(agent.nodeId) === undefined);
    expect((await fleet.join(agent.identity)).received).toMatchObject([{ status: 'approved' }]);
  });

  it('in the same moment: one of them is let in, and it is the one that can be revoked', async () => {
    const fleet = await Fleet.start();
    const identity = newIdentity();
    const racers = await Promise.all(Array.from({ length: 6 }, () => fleet.dial(identity)));
    for (const racer of racers) racer.hello();
    await Promise.all(racers.map((racer) => Promise.race([racer.message(0), racer.closed])));
    const winners = racers.filter((racer) => racer.received.length > 0);
    expect(winners).toHaveLength(1);
    for (const racer of racers) if (racer !== winners[0]) expect((await racer.closed).code).toBe(4409);
    // A refusal may be stored before the record of the winner.
    expect([...(await fleet.story())].sort()).toEqual(['agent.duplicate_identity', 'agent.pending']);
    const [winner] = winners;
    if (!winner) throw new Error('no agent was let in');
    await fleet.reject(winner.nodeId);
    expect((await winner.closed).code).toBe(4403);
  });

  it('in the same moment, behind one that is dead: still only one of them is let in', async () => {
    const fleet = await Fleet.start({ timeouts: { answer: 200 } });
    const agent = await fleet.approved('web');
    agent.die();
    const racers = await Promise.all(Array.from({ length: 6 }, () => fleet.dial(agent.identity)));
    for (const racer of racers) racer.hello();
    await Promise.all(racers.map((racer) => Promise.race([racer.message(0), racer.closed])));
    const winners = racers.filter((racer) => racer.received.length > 0);
    expect(winners).toHaveLength(1);
    expect(winners[0]?.received).toMatchObject([{ status: 'approved' }]);
    await fleet.reject(agent.nodeId);
    for (const racer of racers) expect([4403, 4409]).toContain((await racer.closed).code);
    expect(await fleet.events('agent.connected')).toHaveLength(2);
    expect(await fleet.events('agent.disconnected')).toHaveLength(2);
  });

  it('of a rejected agent is turned away like the first', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.reject(agent.nodeId);
    const both = [await fleet.dial(agent.identity), await fleet.dial(agent.identity)];
    for (const one of both) one.send(HELLO);
    for (const one of both) expect([4403, 4409]).toContain((await one.closed).code);
    expect(fleet.registry.has(agent.nodeId)).toBe(false);
  });
});
