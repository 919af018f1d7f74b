import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { Fleet, OPERATOR } from '../support/fleet.js';

describe('a removal', () => {
  it('is for rejected agents only', async () => {
    const fleet = await Fleet.start();
    const [pending, approved] = [await fleet.join(), await fleet.approved('web')];
    for (const { nodeId } of [pending, approved]) {
      await expect(fleet.agents.remove(OPERATOR, nodeId)).rejects.toMatchObject({ code: 'agent_not_rejected' });
      expect(fleet.registry.has(nodeId)).toBe(true);
    }
    await expect(fleet.agents.remove(OPERATOR, 'f'.repeat(32))).rejects.toMatchObject({ code: 'agent_not_found' });
  });

  it('takes the record away, is audited, and tells the engine', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await fleet.reject(agent.nodeId);
    await fleet.agents.remove(OPERATOR, agent.nodeId);
    await expect(fleet.agents.get(agent.nodeId)).rejects.toMatchObject({ code: 'agent_not_found' });
    expect(await fleet.events('agent.removed')).toMatchObject([
      {
        actor: { name: 'ada' },
        target: { id: agent.nodeId, name: 'web' },
        summary: 'ada removed agent web',
        metadata: { public_key: agent.identity.publicKey, request_id: OPERATOR.requestId },
      },
    ]);
    expect(fleet.traffic.log.filter((line) => line === `revoked ${agent.nodeId}`)).toHaveLength(2);
    await expect(fleet.agents.remove(OPERATOR, agent.nodeId)).rejects.toMatchObject({ code: 'agent_not_found' });
  });

  it('closes a connection that the agent has all the same', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.join();
    const { nodeId } = agent;
    await fleet.db.updateTable('agents').set({ status: 'rejected' }).where('node_id', '=', nodeId).execute();
    await fleet.agents.remove(OPERATOR, nodeId);
    expect((await agent.closed).code).toBe(4403);
    expect(fleet.registry.has(nodeId)).toBe(false);
  });

  it('leaves nothing of the agent to the next one with the same key', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    const { nodeId } = agent;
    await fleet.tags.replace(OPERATOR, nodeId, { role: 'db', site: 'north' });
    await fleet.db.updateTable('agents').set({ state_operation_id: '01J8ZQ4Y7M0000000000000000' }).execute();
    await fleet.db
      .insertInto('applied_resources')
      .values({
        node_id: nodeId,
        family: 'file',
        identity_key: '/etc/motd',
        module: 'motd',
        kind: 'file-unix',
        identity: '/etc/motd',
        id: null,
        name: null,
        body_json: '{}',
        taint_json: null,
        origin: 'created',
        operation_id: '01J8ZQ4Y7M0000000000000000',
        applied_at: 1,
        position: 0,
        ad_hoc: 0,
      })
      .execute();
    await fleet.reject(nodeId);
    await fleet.agents.remove(OPERATOR, nodeId);
    expect(await fleet.tags.list(ALL_RIGHTS)).toEqual({});

    fleet.clock.advance(3_000);
    const again = await fleet.join(agent.identity, { hostname: 'reinstalled', attributes: { platform: 'linux' } });
    expect(again.received).toEqual([
      { type: 'status', status: 'pending', protocol_version: PROTOCOL_VERSION, name: null },
    ]);
    expect(await fleet.agents.get(nodeId)).toMatchObject({
      name: null,
      status: 'pending',
      initial_hostname: 'reinstalled',
      connected_at: 1_760_000_003,
      attributes: { platform: 'linux' },
      tags: {},
    });
    const row = await fleet.db.selectFrom('agents').selectAll().executeTakeFirstOrThrow();
    expect(row).toMatchObject({ state_operation_id: null, created_at: 1_760_000_003_000 });
    expect(await fleet.db.selectFrom('applied_resources').selectAll().execute()).toEqual([]);
    expect(await fleet.events('agent.pending')).toHaveLength(2);
    await expect(fleet.approve(nodeId)).rejects.toMatchObject({ code: 'name_required' });
    expect(await fleet.approve(nodeId, 'web')).toMatchObject({ name: 'web', tags: {} });
  });

  it('lets the name be given again', async () => {
    const fleet = await Fleet.start();
    const old = await fleet.approved('web');
    await fleet.reject(old.nodeId);
    const next = await fleet.join();
    await expect(fleet.approve(next.nodeId, 'web')).rejects.toMatchObject({ code: 'name_taken' });
    await fleet.agents.remove(OPERATOR, old.nodeId);
    expect(await fleet.approve(next.nodeId, 'web')).toMatchObject({ name: 'web' });
  });
});
