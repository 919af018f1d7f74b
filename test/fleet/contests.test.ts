/** Machines that share the key of an agent: what they get, and what an operator decides. */
import { describe, expect, it } from 'vitest';
import { ConnectionRegistry } from '../../daemon/fleet/connection-registry.js';
import { listMachines } from '../../daemon/fleet/contest-store.js';
import { Contests } from '../../daemon/fleet/contests.js';
import { rejection } from '../support/database.js';
import { Fleet, OPERATOR, type TestAgent, until } from '../support/fleet.js';
import type { Identity } from '../support/identity.js';

const WEB = { hostname: 'web1', address: '127.0.0.1' };
const CLONE = { hostname: 'web1-clone', address: '127.0.0.1' };
const DAY = 24 * 3_600_000;

const join = (fleet: Fleet, { hostname }: { hostname: string }, identity?: Identity): Promise<TestAgent> =>
  fleet.join(identity, { hostname, attributes: { platform: 'linux', hostname } });

/** An approved agent, and a copy of it that was refused once. */
async function contested() {
  const fleet = await Fleet.start();
  const original = await join(fleet, WEB);
  const { identity, nodeId } = original;
  await fleet.approve(nodeId, 'web1');
  await original.message(1);
  const clone = await join(fleet, CLONE, identity);
  expect((await clone.closed).code).toBe(4409);
  await fleet.quiet();
  return { fleet, original, identity, nodeId };
}

const contestOf = async (fleet: Fleet, nodeId: string) => (await fleet.agents.get(nodeId)).contest ?? null;

describe('an agent whose key two machines have', () => {
  it('is marked, and gets nothing until an operator decides', async () => {
    const { fleet, original, nodeId } = await contested();
    expect(await contestOf(fleet, nodeId)).toMatchObject({
      machines: [
        { ...CLONE, connected: false },
        { ...WEB, connected: true },
      ],
    });
    expect(fleet.registry.isConnected(nodeId)).toBe(false);
    expect(fleet.registry.holdOf(nodeId)).toBe(
      'several machines have its key: 127.0.0.1 as web1-clone, 127.0.0.1 as web1',
    );
    expect(await fleet.events('agent.duplicate_identity')).toMatchObject([
      {
        summary:
          'A second agent with the key of web1 came from 127.0.0.1 as web1-clone, beside 127.0.0.1 as web1. ' +
          'Nothing is sent to web1 until an operator decides which machine it is',
      },
    ]);
    await fleet.agents.keep(OPERATOR, nodeId, WEB);
    expect(await contestOf(fleet, nodeId)).toBeNull();
    expect(fleet.registry.isConnected(nodeId)).toBe(true);
    expect(original.socket.readyState).toBe(original.socket.OPEN);
  });

  it('is not taken over by the copy while the original is away', async () => {
    const { fleet, original, identity, nodeId } = await contested();
    await fleet.gone(original);
    const clone = await join(fleet, CLONE, identity);
    expect(clone.received).toMatchObject([
      { status: 'pending', name: null, reason: expect.stringContaining('several machines have its key') },
    ]);
    await fleet.quiet();
    const shown = await fleet.agents.get(nodeId);
    expect(shown).toMatchObject({ connected: true, attributes: { hostname: 'web1' } });
    expect(shown.contest?.machines).toMatchObject([
      { ...CLONE, connected: true },
      { ...WEB, connected: false },
    ]);
    expect(fleet.traffic.messages).toEqual([]);
    // The copy was turned into the machine that shall be the agent: an operator can decide so.
    const refused = await rejection(fleet.agents.keep(OPERATOR, nodeId, WEB));
    expect(refused).toMatchObject({
      code: 'agent_not_connected',
      message: '127.0.0.1 as web1 is not connected as web1: 127.0.0.1 as web1-clone is',
    });
    await fleet.agents.keep(OPERATOR, nodeId, CLONE);
    expect(await clone.message(1)).toMatchObject({ status: 'approved', name: 'web1' });
    expect(await fleet.agents.get(nodeId)).toMatchObject({ attributes: { hostname: 'web1-clone' } });
    expect((await fleet.events('agent.kept')).map(({ summary }) => summary)).toEqual([
      'ada decided that 127.0.0.1 as web1-clone is agent web1; turned away: 127.0.0.1 as web1',
    ]);
  });

  it('turns the copy away for good once it is decided, also while the agent is away, until it is approved anew', async () => {
    const { fleet, original, identity, nodeId } = await contested();
    await fleet.agents.keep(OPERATOR, nodeId, WEB);
    await fleet.gone(original);
    const clone = await join(fleet, CLONE, identity);
    expect(await clone.closed).toEqual({
      code: 4409,
      reason: 'an operator has decided that another machine is this agent',
    });
    expect((await join(fleet, { hostname: 'web1' }, identity)).received).toMatchObject([{ status: 'approved' }]);
    await fleet.quiet();
    expect(await fleet.events('agent.duplicate_identity')).toHaveLength(1);
    fleet.clock.advance(DAY);
    await (await join(fleet, CLONE, identity)).closed;
    const [, reminder] = await fleet.events('agent.duplicate_identity');
    expect(reminder?.summary).toContain('It is turned away, as an operator has decided');
    expect(await contestOf(fleet, nodeId)).toBeNull();
    await fleet.reject(nodeId);
    await fleet.approve(nodeId);
    expect((await join(fleet, CLONE, identity)).received).toMatchObject([{ status: 'approved' }]);
  });

  it('is still held after a restart of the orchestrator', async () => {
    const { fleet, nodeId } = await contested();
    const registry = new ConnectionRegistry();
    const again = new Contests({ db: fleet.db, uow: fleet.writers.presence, clock: fleet.clock, registry });
    await again.load();
    expect(again.isContested(nodeId)).toBe(true);
    expect(registry.holdOf(nodeId)).toContain('127.0.0.1 as web1-clone');
  });

  it('raises one event for each copy, then one a day, and never a flood', async () => {
    const { fleet, identity } = await contested();
    const events = async () => (await fleet.events('agent.duplicate_identity')).length;
    /** Comes after a while, and is stored before the next one comes: an event is about all machines that are new by then. */
    const comes = async (machine: { readonly hostname: string }, after: number) => {
      fleet.clock.advance(after);
      await (await join(fleet, machine, identity)).closed;
      const [now, { hostname }] = [fleet.clock.now(), machine];
      await until(async () =>
        (await listMachines(fleet.db)).some((row) => row.hostname === hostname && row.last_at === now),
      );
    };
    for (let minute = 0; minute < 5; minute += 1) await comes(CLONE, 60_000);
    expect(await events()).toBe(1);
    for (let copy = 0; copy < 12; copy += 1) await comes({ hostname: `copy-${copy}` }, 1_000);
    expect(await events()).toBe(4);
    await comes(CLONE, DAY);
    expect(await events()).toBe(5);
  });
});

describe('an agent that is no copy', () => {
  it('may change its host name and address, and connect again after a cut', async () => {
    const { fleet, original, identity, nodeId } = await contested();
    await fleet.agents.keep(OPERATOR, nodeId, WEB);
    await fleet.gone(original);
    const renamed = await join(fleet, { hostname: 'laptop' }, identity);
    expect(renamed.received).toMatchObject([{ status: 'approved' }]);
    await fleet.quiet();
    expect(await fleet.agents.get(nodeId)).toMatchObject({ attributes: { hostname: 'laptop' } });
    expect(await contestOf(fleet, nodeId)).toBeNull();
  });

  it('is not held for one collision with itself, but for a second one half a minute later', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const knock = async (after: number) => {
      fleet.clock.advance(after);
      expect((await (await fleet.join(agent.identity)).closed).code).toBe(4409);
      await fleet.quiet();
      return contestOf(fleet, agent.nodeId);
    };
    expect(await knock(0)).toBeNull();
    expect(await knock(29_000)).toBeNull();
    // The series before was over.
    expect(await knock(601_000)).toBeNull();
    expect(await knock(31_000)).toMatchObject({ machines: [{ hostname: 'box', connected: true }] });
    await until(() => !fleet.registry.isConnected(agent.nodeId));
    expect(await fleet.events('agent.duplicate_identity')).toHaveLength(1);
  });
});
