import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { AgentConnection } from '../../daemon/fleet/agent-connection.js';
import { nodeIdOf } from '../../src/identity/key-object.js';
import { Fleet, HELLO, type TestAgent, until } from '../support/fleet.js';
import { newIdentity } from '../support/identity.js';

const HOUR = 60 * 60 * 1000;

const pendingIds = async (fleet: Fleet): Promise<readonly string[]> =>
  (await fleet.agents.list({ rights: ALL_RIGHTS, status: 'pending' })).map((agent) => agent.node_id).sort();

const idsOf = (...agents: readonly TestAgent[]): readonly string[] => agents.map(({ nodeId }) => nodeId).sort();

/** Enrols and goes away again; the next one does so later. */
async function passBy(fleet: Fleet): Promise<TestAgent> {
  const agent = await fleet.join();
  await fleet.gone(agent);
  fleet.clock.advance(1_000);
  return agent;
}

describe('an unknown agent', () => {
  it('gets a pending record and an event', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join(undefined, { hostname: 'wärter', agent_version: '0.1.0' });
    expect(await fleet.agents.get(agent.nodeId)).toEqual({
      node_id: agent.nodeId,
      name: null,
      status: 'pending',
      connected: true,
      connected_at: 1_760_000_000,
      updated_at: 1_760_000_000,
      initial_hostname: 'wärter',
      initial_ip: '127.0.0.1',
      agent_version: '0.1.0',
      public_key: agent.identity.publicKey,
      attributes: { platform: 'linux', arch: 'x86_64' },
      tags: {},
      standing: null,
      standing_since: null,
      standing_reason: null,
      trial: null,
      automation_stopped: null,
    });
    const party = { id: agent.nodeId, name: agent.nodeId, type: 'agent' };
    expect(await fleet.events()).toMatchObject([
      {
        type: 'agent.pending',
        actor: party,
        target: party,
        summary: 'An unknown agent on wärter (127.0.0.1) waits for approval',
        metadata: { public_key: agent.identity.publicKey, hostname: 'wärter', address: '127.0.0.1' },
      },
    ]);
  });

  it('that comes back keeps its record, shows what is new, and is no news', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    await fleet.gone(agent);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ connected: false, connected_at: 1_760_000_000 });
    fleet.clock.advance(60_000);
    const again = await fleet.join(agent.identity, {
      hostname: 'other',
      agent_version: '0.2.0',
      attributes: { arch: 'arm64' },
    });
    expect(again.received).toMatchObject([{ status: 'pending' }]);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({
      connected: true,
      connected_at: 1_760_000_060,
      initial_hostname: 'box',
      agent_version: '0.2.0',
      attributes: { arch: 'arm64' },
    });
    expect(await fleet.story()).toEqual(['agent.pending']);
  });

  it('is not let in when the store cannot write, and comes in later', async () => {
    const fleet = await Fleet.start();
    await fleet.db.schema.alterTable('audit_events').renameTo('hidden').execute();
    const agent = await fleet.join();
    expect(await agent.closed).toMatchObject({ code: 1001 });
    expect(fleet.errors[0]).toMatch(/a message of an agent could not be handled: .*audit_events/);
    expect(fleet.registry.get(agent.nodeId)).toBeUndefined();
    await fleet.db.schema
      .alterTable('hidden' as 'audit_events')
      .renameTo('audit_events')
      .execute();
    expect((await fleet.join(agent.identity)).received).toMatchObject([{ status: 'pending' }]);
    expect(await fleet.story()).toEqual(['agent.pending']);
  });
});

describe('the queue of those that wait', () => {
  it('takes so many of one address, and says so to the next', async () => {
    const fleet = await Fleet.start({ limits: { pendingPerAddress: 2 } });
    const first = await fleet.join();
    const second = await passBy(fleet);
    const third = await fleet.join();
    const reason = 'too many agents of this address wait for approval';
    expect(await third.closed).toEqual({ code: 4429, reason });
    expect(await pendingIds(fleet)).toEqual(idsOf(first, second));
    expect(await fleet.events('agent.refused')).toMatchObject([{ target: { id: third.nodeId }, metadata: { reason } }]);

    expect((await fleet.join(second.identity)).received).toMatchObject([{ status: 'pending' }]);
    await fleet.approve(first.nodeId, 'web');
    expect((await fleet.join(third.identity)).received).toMatchObject([{ status: 'pending' }]);
  });

  it('counts the refusals of one address as one event a minute', async () => {
    const fleet = await Fleet.start({ limits: { pendingPerAddress: 1 } });
    await fleet.join();
    for (let count = 0; count < 4; count += 1) expect((await (await fleet.join()).closed).code).toBe(4429);
    expect(await fleet.events('agent.refused')).toHaveLength(1);
    fleet.clock.advance(59_999);
    await fleet.join();
    expect(await fleet.events('agent.refused')).toHaveLength(1);
    fleet.clock.advance(1);
    await fleet.join();
    expect(await fleet.events('agent.refused')).toHaveLength(2);
  });

  it('of one address holds its limit when many come at once', async () => {
    const fleet = await Fleet.start({ limits: { pendingPerAddress: 3 } });
    const agents = await Promise.all(Array.from({ length: 10 }, () => fleet.dial()));
    for (const agent of agents) agent.hello();
    await Promise.all(agents.map((agent) => Promise.race([agent.message(0), agent.closed])));
    expect(agents.filter((agent) => agent.received.length > 0)).toHaveLength(3);
    expect(await pendingIds(fleet)).toHaveLength(3);
    expect(await fleet.events('agent.pending')).toHaveLength(3);
  });

  it('that is full forgets who has been away the longest, and never who is connected', async () => {
    const fleet = await Fleet.start({ limits: { pendingCapacity: 3, pendingPerAddress: 100 } });
    const oldest = await fleet.join();
    fleet.clock.advance(1_000);
    const gone = await passBy(fleet);
    const goneLater = await passBy(fleet);

    const fourth = await fleet.join();
    expect(await pendingIds(fleet)).toEqual(idsOf(oldest, goneLater, fourth));
    fleet.clock.advance(1_000);
    const fifth = await fleet.join();
    expect(await pendingIds(fleet)).toEqual(idsOf(oldest, fourth, fifth));
    fleet.clock.advance(1_000);
    const sixth = await fleet.join();
    expect(await sixth.closed).toEqual({ code: 4429, reason: 'too many agents wait for approval' });
    expect(await pendingIds(fleet)).toEqual(idsOf(oldest, fourth, fifth));
    expect(oldest.socket.readyState).toBe(oldest.socket.OPEN);

    const removed = await fleet.events('agent.removed');
    expect(removed.map(({ target }) => target.id)).toEqual([gone.nodeId, goneLater.nodeId]);
    expect(removed[0]).toMatchObject({ actor: { type: 'system' }, metadata: { reason: expect.any(String) } });
  });

  it('counts all of an IPv6 network as one address', async () => {
    const fleet = await Fleet.start({ limits: { pendingPerAddress: 2 } });
    for (let host = 1; host <= 2; host += 1) {
      const agent = await passBy(fleet);
      const change = { initial_ip: `2001:db8:0:7::${host}` };
      await fleet.db.updateTable('agents').set(change).where('node_id', '=', agent.nodeId).execute();
    }
    const from = async (remoteAddress: string) => {
      const { publicKey } = newIdentity();
      const connection = { nodeId: nodeIdOf(publicKey), publicKey, remoteAddress, state: 'fresh' };
      return fleet.enrolment.admit(connection as unknown as AgentConnection, HELLO);
    };
    expect(await from('2001:db8:0:7:ffff::1')).toMatchObject({ kind: 'refused' });
    expect(await from('2001:db8:0:8::1')).toMatchObject({ kind: 'admitted' });
  });

  it('becomes one event and one notification for all that come after the first twenty of half a minute', async () => {
    const fleet = await Fleet.start({ limits: { pendingCapacity: 15, pendingPerAddress: 1_000 } });
    const come = async (count: number) => {
      for (let at = 0; at < count; at += 1) await fleet.gone(await fleet.join());
    };
    await come(60);
    await fleet.enrolment.flush();
    expect(await fleet.events('agent.pending')).toHaveLength(20);
    expect(await fleet.events('agent.removed')).toHaveLength(20);
    fleet.clock.advance(30_000);
    await fleet.enrolment.flush();
    await fleet.enrolment.flush();
    const pending = await fleet.events('agent.pending');
    expect(pending).toHaveLength(21);
    expect(pending.at(-1)).toMatchObject({
      summary: expect.stringMatching(/^40 more unknown agents/),
      metadata: { count: 40 },
    });
    expect((await fleet.events('agent.removed')).at(-1)).toMatchObject({ metadata: { count: 25 } });
    await come(30);
    expect(await fleet.events('agent.pending')).toHaveLength(21);
    fleet.clock.advance(30_000);
    await fleet.enrolment.flush();
    fleet.clock.advance(30_000);
    await fleet.enrolment.flush();
    await come(1);
    expect((await fleet.events('agent.pending')).map(({ metadata }) => metadata.count ?? 1).slice(20)).toEqual([
      40, 30, 1,
    ]);
  });

  it('shrinks to a capacity that was lowered, and never counts who is approved', async () => {
    const fleet = await Fleet.start();
    const approved = await fleet.approved('web');
    for (let count = 0; count < 5; count += 1) await passBy(fleet);
    fleet.limits.pendingCapacity = 2;
    const agent = await fleet.join();
    const left = await pendingIds(fleet);
    expect(left).toHaveLength(2);
    expect(left).toContain(agent.nodeId);
    expect((await fleet.agents.get(approved.nodeId)).connected).toBe(true);
  });

  it('does not push out an agent whose hello is still looked at', async () => {
    const fleet = await Fleet.start({ limits: { pendingCapacity: 1, pendingPerAddress: 100 } });
    const release = fleet.writers.enrolment.delayNext();
    const first = await fleet.dial();
    first.hello();
    await until(() => fleet.writers.enrolment.commits === 1);
    const second = await fleet.join();
    release();
    expect((await second.closed).code).toBe(4429);
    await first.message(0);
    expect(first.received).toMatchObject([{ status: 'pending' }]);
    expect(await pendingIds(fleet)).toEqual(idsOf(first));
  });
});

describe('who waits for an hour', () => {
  it('without being seen is forgotten, and enrols anew when it comes back', async () => {
    const fleet = await Fleet.start();
    const [here, gone, approved] = [await fleet.join(), await fleet.join(), await fleet.approved('web')];
    await fleet.gone(gone);
    await fleet.gone(approved);
    fleet.clock.advance(HOUR);
    await fleet.enrolment.sweep();
    expect(await pendingIds(fleet)).toEqual(idsOf(here, gone));
    fleet.clock.advance(1);
    await fleet.enrolment.sweep();
    expect(await pendingIds(fleet)).toEqual(idsOf(here));
    expect(await fleet.agents.get(approved.nodeId)).toMatchObject({ status: 'approved' });
    expect(await fleet.events('agent.removed')).toMatchObject([
      {
        actor: { type: 'system' },
        target: { id: gone.nodeId },
        summary: expect.stringContaining('not seen for an hour'),
      },
    ]);
    await fleet.join(gone.identity);
    expect(await fleet.events('agent.pending')).toHaveLength(4);
  });

  it('counts from the end of its last connection', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    fleet.clock.advance(2 * HOUR);
    await fleet.gone(agent);
    fleet.clock.advance(HOUR);
    await fleet.enrolment.sweep();
    expect(await pendingIds(fleet)).toEqual(idsOf(agent));
  });

  it('is not lost when it comes back in the middle of the sweep', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    await fleet.gone(agent);
    fleet.clock.advance(HOUR + 1);
    const again = await fleet.dial(agent.identity);
    again.send(HELLO);
    await Promise.all([fleet.enrolment.sweep(), again.message(0)]);
    expect(again.received).toMatchObject([{ status: 'pending' }]);
    expect(await pendingIds(fleet)).toEqual(idsOf(agent));
  });
});

it('an agent with a new key is another agent, whatever it says', async () => {
  const fleet = await Fleet.start();
  const known = await fleet.approved('web');
  const other = await fleet.join(newIdentity(), { hostname: HELLO.hostname });
  expect(other.received).toMatchObject([{ status: 'pending', name: null }]);
  expect(other.nodeId).not.toBe(known.nodeId);
});
