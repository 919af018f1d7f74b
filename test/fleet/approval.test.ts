import { describe, expect, it } from 'vitest';
import { ApprovedKeys } from '../../daemon/fleet/approved-keys.js';
import { Fault } from '../../src/kernel/fault.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { Fleet, OPERATOR, until } from '../support/fleet.js';

const rejected = { code: 4403, reason: 'this agent was rejected by an operator' };
const ack = { type: 'run_ack', run_id: '01J8ZQ4Y7M0000000000000000' } as const;

describe('an approval', () => {
  it('of a connected agent takes effect at once', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    expect(fleet.registry.isConnected(agent.nodeId)).toBe(false);
    expect(fleet.registry.send(agent.nodeId, [ack])).toBe(false);
    fleet.clock.advance(9_000);
    const answer = await fleet.approve(agent.nodeId, 'web-01');
    expect(answer).toMatchObject({
      status: 'approved',
      name: 'web-01',
      connected: true,
      connected_at: 1_760_000_000,
      updated_at: 1_760_000_009,
    });
    expect(await agent.message(1)).toEqual({
      type: 'status',
      status: 'approved',
      protocol_version: PROTOCOL_VERSION,
      name: 'web-01',
    });
    expect(fleet.registry.send(agent.nodeId, [ack])).toBe(true);
    expect(await agent.message(2)).toEqual(ack);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ connected_at: 1_760_000_000 });
    expect(await fleet.events()).toMatchObject([
      { type: 'agent.pending' },
      {
        type: 'agent.approved',
        actor: { name: 'ada', type: 'operator' },
        target: { id: agent.nodeId, name: 'web-01', type: 'agent' },
        summary: 'ada approved agent web-01',
        metadata: { before: 'pending', public_key: agent.identity.publicKey, request_id: OPERATOR.requestId },
      },
      { type: 'agent.connected', target: { name: 'web-01' } },
    ]);
  });

  it('is what lets the listener trust its check of the key, which no other agent has yet', async () => {
    const fleet = await Fleet.start();
    const [known, waiting, refused] = [await fleet.approved('web'), await fleet.join(), await fleet.join()];
    await fleet.agents.setStatus(OPERATOR, refused.nodeId, { status: 'rejected' });
    const afterRestart = new ApprovedKeys(fleet.db);
    await afterRestart.load();
    for (const keys of [fleet.approvedKeys, afterRestart]) {
      const listed = [known, waiting, refused].map(({ identity }) => keys.has(identity.publicKey));
      expect(listed).toEqual([true, false, false]);
    }
    await fleet.gone(known);
    expect((await fleet.join(known.identity)).received).toMatchObject([{ status: 'approved', name: 'web' }]);
  });

  it('of an agent that is away takes effect when it comes back', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    await fleet.gone(agent);
    expect(await fleet.approve(agent.nodeId, 'web')).toMatchObject({ status: 'approved', connected: false });
    expect((await fleet.join(agent.identity)).received).toEqual([
      { type: 'status', status: 'approved', protocol_version: PROTOCOL_VERSION, name: 'web' },
    ]);
    expect(await fleet.story()).toEqual(['agent.pending', 'agent.approved', 'agent.connected']);
  });

  it('is found by an agent that is just being let in, however the two meet', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    await fleet.gone(agent);

    // The agent's arrival has read "pending" and committed, but has not gone on when the approval is through.
    const release = fleet.writers.presence.delayNext();
    const before = fleet.writers.presence.commits;
    const again = await fleet.dial(agent.identity);
    again.hello();
    await until(() => fleet.writers.presence.commits === before + 1);
    await fleet.approve(agent.nodeId, 'web');
    expect(await again.message(0)).toMatchObject({ status: 'approved', name: 'web' });
    release();
    await fleet.quiet();
    expect(again.received).toHaveLength(1);
    expect(fleet.registry.isConnected(agent.nodeId)).toBe(true);
    expect(await fleet.events('agent.connected')).toHaveLength(1);
  });

  it('is found in the same commit too', async () => {
    const fleet = await Fleet.start();
    for (let round = 0; round < 10; round += 1) {
      const agent = await fleet.join();
      await fleet.gone(agent);
      const releases = [fleet.writers.presence.holdNext(), fleet.writers.service.holdNext()];
      const again = await fleet.dial(agent.identity);
      again.hello();
      await until(() => fleet.registry.get(agent.nodeId) !== undefined);
      const approval = fleet.approve(agent.nodeId, `web-${round}`);
      await fleet.quiet();
      for (const release of round % 2 ? releases : releases.reverse()) release();
      await approval;
      await until(() => fleet.registry.isConnected(agent.nodeId));
      await until(() => again.received.some((message) => message.type === 'status' && message.status === 'approved'));
      await fleet.quiet();
      expect(again.received.at(-1)).toMatchObject({ status: 'approved' });
      expect(await fleet.events('agent.connected')).toHaveLength(round + 1);
    }
  });
});

describe('a name', () => {
  const refused = async (fleet: Fleet, nodeId: string, name: string | null | undefined) => {
    const error: unknown = await fleet.agents.setStatus(OPERATOR, nodeId, { status: 'approved', name }).catch((e) => e);
    expect((await fleet.agents.get(nodeId)).status).toBe('pending');
    expect(error).toMatchObject({ hint: expect.any(String) });
    return (error as { code: string }).code;
  };

  it('is needed for the first approval', async () => {
    const fleet = await Fleet.start();
    const { nodeId } = await fleet.join();
    expect(await refused(fleet, nodeId, undefined)).toBe('name_required');
    expect(await refused(fleet, nodeId, null)).toBe('name_required');
    expect(await fleet.story()).toEqual(['agent.pending']);
  });

  it.each(['', '1web', '-web', 'we b', 'web.example', '../web', 'w\u0000b', 'w\u202eb', 'x'.repeat(65), 'web\n'])(
    '%j is none',
    async (name) => {
      const fleet = await Fleet.start();
      const { nodeId } = await fleet.join();
      expect(await refused(fleet, nodeId, name)).toBe('invalid_name');
    },
  );

  it.each(['w', 'web-01_b', 'größe', '東京1', 'x'.repeat(64)])('%j is one', async (name) => {
    const fleet = await Fleet.start();
    const { nodeId } = await fleet.join();
    expect(await fleet.approve(nodeId, name)).toMatchObject({ name });
  });

  it('belongs to one agent', async () => {
    const fleet = await Fleet.start();
    await fleet.approved('web');
    const { nodeId } = await fleet.join();
    expect(await refused(fleet, nodeId, 'web')).toBe('name_taken');
  });

  it('belongs to one agent even when two are approved at once', async () => {
    const fleet = await Fleet.start();
    const agents = [await fleet.join(), await fleet.join(), await fleet.join()];
    const results = await Promise.allSettled(agents.map(({ nodeId }) => fleet.approve(nodeId, 'web')));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'name_taken' });
    expect(await fleet.events('agent.approved')).toHaveLength(1);
  });

  it('stays for good', async () => {
    const fleet = await Fleet.start();
    const { nodeId } = await fleet.approved('web');
    await expect(fleet.approve(nodeId, 'other')).rejects.toMatchObject({ code: 'name_immutable' });
    await fleet.reject(nodeId);
    await expect(fleet.approve(nodeId, 'other')).rejects.toMatchObject({ code: 'name_immutable' });
    expect(await fleet.approve(nodeId, 'web')).toMatchObject({ status: 'approved', name: 'web' });
  });

  it('is not given by a rejection', async () => {
    const fleet = await Fleet.start();
    const { nodeId } = await fleet.join();
    const change = { status: 'rejected', name: 'web' } as const;
    expect(await fleet.agents.setStatus(OPERATOR, nodeId, change)).toMatchObject({ status: 'rejected', name: null });
    await expect(fleet.approve(nodeId)).rejects.toMatchObject({ code: 'name_required' });
  });
});

describe('a decision made twice', () => {
  it('is one event, and does not disturb the connection', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    fleet.clock.advance(5_000);
    expect(await fleet.approve(agent.nodeId, 'web')).toMatchObject({ updated_at: 1_760_000_000, connected: true });
    expect(await fleet.approve(agent.nodeId)).toMatchObject({ status: 'approved' });
    expect(agent.received).toHaveLength(2);
    await fleet.reject(agent.nodeId);
    await fleet.reject(agent.nodeId);
    expect(await fleet.events('agent.approved')).toHaveLength(1);
    expect(await fleet.events('agent.rejected')).toHaveLength(1);
    expect(await fleet.events('agent.connected')).toHaveLength(1);
  });

  it('ends what could not be ended at once', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const end = fleet.traffic.revoked.bind(fleet.traffic);
    fleet.traffic.revoked = async () => {
      fleet.traffic.revoked = end;
      throw new Fault('store_unavailable', 'the disk is full');
    };
    expect(await fleet.reject(agent.nodeId)).toMatchObject({ status: 'rejected' });
    expect(await agent.closed).toEqual(rejected);
    expect(fleet.traffic.log).toEqual([`disconnected ${agent.nodeId}`, `revoked ${agent.nodeId}`]);
    expect(await fleet.events('agent.rejected')).toHaveLength(1);
  });

  it('that cannot be audited is not made', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.db.schema.alterTable('audit_events').renameTo('hidden').execute();
    await expect(fleet.reject(agent.nodeId)).rejects.toThrow();
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({ status: 'approved', connected: true });
    expect(fleet.traffic.log).toEqual([]);
    await fleet.db.schema
      .alterTable('hidden' as 'audit_events')
      .renameTo('audit_events')
      .execute();
  });

  it('about an unknown agent is refused so', async () => {
    const fleet = await Fleet.start();
    await expect(fleet.approve('f'.repeat(32), 'web')).rejects.toMatchObject({ code: 'agent_not_found' });
    await expect(fleet.reject('f'.repeat(32))).rejects.toMatchObject({ code: 'agent_not_found' });
  });
});
