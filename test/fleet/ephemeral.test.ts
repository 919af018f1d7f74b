/** Ephemeral agents: when they are removed, and everything that must not remove one. */
import { describe, expect, it } from 'vitest';
import { insertAgent, listAgentIds } from '../../daemon/fleet/agent-store.js';
import type { EphemeralAgents } from '../../daemon/fleet/ephemeral-agents.js';
import { Fleet, OPERATOR, type TestAgent } from '../support/fleet.js';
import { until } from '../support/until.js';

const MINUTE = 60_000;
const SECS = 600;

async function start(): Promise<Fleet> {
  const fleet = await Fleet.start();
  await fleet.addAdmin(OPERATOR.actor.id);
  return fleet;
}

/** Agents that a token has let in and approved. */
async function enrolled(fleet: Fleet, count = 1): Promise<{ readonly token: string; readonly agents: TestAgent[] }> {
  const wanted = { auto_approve: true, uses: count + 1, tags: { ci: 'yes' }, ephemeral_secs: SECS };
  const { token } = await fleet.tokens.create(OPERATOR, wanted);
  const agents: TestAgent[] = [];
  for (let index = 0; index < count; index += 1) {
    const agent = await fleet.join(undefined, { hostname: `run-${index + 1}`, enrolment_token: token });
    await agent.message(1);
    agents.push(agent);
  }
  return { token, agents };
}

/** Lets minutes pass, with a sweep in each. */
async function minutes(fleet: Fleet, count: number, sweeper: EphemeralAgents = fleet.ephemeral): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) {
    fleet.clock.advance(MINUTE);
    await sweeper.sweep();
  }
}

/** Ephemeral agents that are away, without connections of their own. */
async function addAway(fleet: Fleet, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const node_id = index.toString(16).padStart(32, '0');
    await insertAgent(fleet.db, {
      ...{ node_id, public_key: node_id.repeat(2), name: `job-${index}`, status: 'approved' },
      ...{ created_at: 1, updated_at: 1, connected_at: 1, last_seen_at: 2, initial_hostname: 'job', initial_ip: '::1' },
      ...{ agent_version: '1', protocol_version: 1, attributes: {}, ephemeral_secs: SECS },
    });
  }
}

const ids = async (fleet: Fleet) => (await listAgentIds(fleet.db)).length;

describe('an ephemeral agent', () => {
  it('is removed after its time without a connection, and may come back with the token', async () => {
    const fleet = await start();
    const { token, agents } = await enrolled(fleet);
    const [agent] = agents as [TestAgent];
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ ephemeral_secs: SECS });
    await minutes(fleet, 20);
    await fleet.gone(agent);
    // The first sweep finds it absent.
    await minutes(fleet, 10);
    expect(await ids(fleet)).toBe(1);
    await minutes(fleet, 1);
    expect(await ids(fleet)).toBe(0);
    expect(await fleet.events('agent.removed')).toMatchObject([
      {
        actor: { type: 'system' },
        target: { id: agent.nodeId, name: 'run-1' },
        metadata: { reason: 'it is ephemeral, and was not connected for 600 seconds', ephemeral_secs: SECS },
      },
    ]);
    expect(fleet.traffic.log).toContain(`revoked ${agent.nodeId}`);
    const again = await fleet.join(agent.identity, { hostname: 'run-1', enrolment_token: token });
    expect((await again.message(1)).type).toBe('status');
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ status: 'approved', tags: { ci: 'yes' } });
  });

  it('begins anew when it was back between two looks', async () => {
    const fleet = await start();
    const { agents } = await enrolled(fleet);
    const [agent] = agents as [TestAgent];
    await fleet.gone(agent);
    await minutes(fleet, 10);
    fleet.clock.advance(1000);
    await fleet.gone(await fleet.join(agent.identity));
    await minutes(fleet, 10);
    expect(await ids(fleet)).toBe(1);
    await minutes(fleet, 1);
    expect(await ids(fleet)).toBe(0);
  });

  it('stays while it is connected, when it comes back in the last moment, and when it was rejected', async () => {
    const fleet = await start();
    const { agents } = await enrolled(fleet, 3);
    const [stays, returns, rejected] = agents as [TestAgent, TestAgent, TestAgent];
    await fleet.gone(returns);
    await fleet.reject(rejected.nodeId);
    await rejected.closed;
    await minutes(fleet, 10);
    fleet.busy = async () => {
      const again = await fleet.dial(returns.identity);
      again.hello();
      // Its admission waits for the store, which the sweep holds.
      await until(() => fleet.registry.get(returns.nodeId) !== undefined, 'it is back');
      return new Set();
    };
    await minutes(fleet, 1);
    expect(await fleet.events('agent.removed')).toEqual([]);
    expect(fleet.registry.has(stays.nodeId)).toBe(true);
    expect(await ids(fleet)).toBe(3);
  });

  it('stays while an operation or a rollout is about it', async () => {
    const fleet = await start();
    const { agents } = await enrolled(fleet);
    const [agent] = agents as [TestAgent];
    await fleet.gone(agent);
    fleet.busy = async () => new Set([agent.nodeId]);
    await minutes(fleet, 30);
    expect(await ids(fleet)).toBe(1);
    expect(await fleet.events('agent.removals_held')).toEqual([]);
    fleet.busy = async () => new Set();
    await minutes(fleet, 1);
    expect(await ids(fleet)).toBe(0);
  });

  it('is shown as such, and other agents are not', async () => {
    const fleet = await start();
    await enrolled(fleet);
    const other = await fleet.approved('web');
    expect(await fleet.agents.get(other.nodeId)).not.toHaveProperty('ephemeral_secs');
    await fleet.gone(other);
    await minutes(fleet, 2000);
    expect(await fleet.agents.get(other.nodeId)).toMatchObject({ name: 'web' });
  });
});

describe('time that does not count', () => {
  it('is that of the wall clock', async () => {
    const fleet = await start();
    const { agents } = await enrolled(fleet);
    await fleet.gone(agents[0] as TestAgent);
    await minutes(fleet, 1);
    fleet.clock.jump(365 * 24 * 60 * MINUTE);
    await minutes(fleet, 1);
    fleet.clock.jump(-3 * 365 * 24 * 60 * MINUTE);
    await minutes(fleet, 8);
    expect(await ids(fleet)).toBe(1);
    await minutes(fleet, 1);
    expect(await ids(fleet)).toBe(0);
  });

  it('is that before a restart, and a pause in which nothing looked', async () => {
    const fleet = await start();
    const { agents } = await enrolled(fleet);
    await fleet.gone(agents[0] as TestAgent);
    await minutes(fleet, 10);
    const next = fleet.newEphemeral();
    await minutes(fleet, 10, next);
    fleet.clock.advance(2 * MINUTE);
    await minutes(fleet, 10, next);
    expect(await ids(fleet)).toBe(1);
    await minutes(fleet, 1, next);
    expect(await ids(fleet)).toBe(0);
  });

  it('is that in which the store did not answer', async () => {
    const fleet = await start();
    const { agents } = await enrolled(fleet);
    await fleet.gone(agents[0] as TestAgent);
    await minutes(fleet, 10);
    fleet.busy = async () => {
      throw new Error('the store is away');
    };
    await expect(minutes(fleet, 1)).rejects.toThrow('away');
    fleet.busy = async () => new Set();
    await minutes(fleet, 10);
    expect(await ids(fleet)).toBe(1);
  });
});

describe('many absent agents', () => {
  it('are removed one part in an hour, with one event about those that wait', async () => {
    const fleet = await start();
    await addAway(fleet, 45);
    await minutes(fleet, 11);
    expect(await ids(fleet)).toBe(43);
    expect(await fleet.events('agent.removals_held')).toMatchObject([
      { actor: { type: 'system' }, metadata: { waiting: 43, limit: 2 } },
    ]);
    await minutes(fleet, 59);
    expect(await ids(fleet)).toBe(43);
    await minutes(fleet, 1);
    expect(await ids(fleet)).toBe(41);
    expect(await fleet.events('agent.removals_held')).toHaveLength(1);
  });

  it('are not removed faster after restarts, whatever the wall clock has become', async () => {
    const fleet = await start();
    await addAway(fleet, 5);
    await minutes(fleet, 11);
    expect(await ids(fleet)).toBe(4);
    await minutes(fleet, 11, fleet.newEphemeral());
    expect(await ids(fleet)).toBe(4);
    fleet.clock.jump(-24 * 60 * MINUTE);
    const last = fleet.newEphemeral();
    await minutes(fleet, 59, last);
    expect(await ids(fleet)).toBe(4);
    await minutes(fleet, 3, last);
    expect(await ids(fleet)).toBe(3);
  });
});
