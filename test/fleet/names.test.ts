/** Names of agents: new ones, and those that look like the name of another agent. */
import { describe, expect, it } from 'vitest';
import { Rights } from '../../daemon/core/rights.js';
import { rejection } from '../support/database.js';
import { Fleet, OPERATOR } from '../support/fleet.js';

describe('a renamed agent', () => {
  it('learns its name at once, keeps everything that belongs to its key, and frees its earlier name', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web-01');
    const { nodeId } = agent;
    await fleet.tags.replace(OPERATOR, nodeId, { role: 'web' });
    expect(await fleet.agents.rename(OPERATOR, nodeId, 'frontend-01')).toMatchObject({
      node_id: nodeId,
      name: 'frontend-01',
      connected: true,
      tags: { role: 'web' },
    });
    expect(await agent.message(2)).toMatchObject({ type: 'status', status: 'approved', name: 'frontend-01' });
    await fleet.gone(agent);
    expect((await fleet.events('agent.renamed', 'agent.disconnected')).map(({ summary }) => summary)).toEqual([
      'ada renamed agent web-01 to frontend-01',
      'Agent frontend-01 disconnected',
    ]);
    const again = await fleet.join(agent.identity);
    expect(again.received).toMatchObject([{ status: 'approved', name: 'frontend-01' }]);
    const other = await fleet.approved('web-01');
    expect(await rejection(fleet.agents.rename(OPERATOR, other.nodeId, 'frontend-01'))).toMatchObject({
      code: 'name_taken',
      message: 'another agent is already named "frontend-01"',
    });
  });

  it('may take a name that looks like its own, and none that looks like that of another', async () => {
    const fleet = await Fleet.start();
    const { nodeId } = await fleet.approved('web-01');
    const pending = await fleet.join();
    for (const name of ['WEB-01', 'w\u0435b-01', 'web-\uff10\uff11', 'web-O1']) {
      expect(await rejection(fleet.approve(pending.nodeId, name))).toMatchObject({
        code: 'name_taken',
        message: `${JSON.stringify(name)} looks like "web-01", which is the name of another agent`,
      });
    }
    await fleet.approve(pending.nodeId, 'db-01');
    expect(await rejection(fleet.agents.rename(OPERATOR, pending.nodeId, 'Web-01'))).toMatchObject({
      code: 'name_taken',
    });
    expect(await fleet.agents.rename(OPERATOR, nodeId, 'WEB-01')).toMatchObject({ name: 'WEB-01' });
    expect(await fleet.agents.rename(OPERATOR, nodeId, 'WEB-01')).toMatchObject({ name: 'WEB-01' });
    expect(await fleet.events('agent.renamed')).toHaveLength(1);
  });

  it('is approved, and has a name that can be typed', async () => {
    const fleet = await Fleet.start();
    const { nodeId } = await fleet.approved('web-01');
    const pending = await fleet.join();
    expect(await rejection(fleet.agents.rename(OPERATOR, pending.nodeId, 'db-01'))).toMatchObject({
      code: 'agent_not_approved',
    });
    expect(await rejection(fleet.agents.rename(OPERATOR, nodeId, 'two words'))).toMatchObject({ code: 'invalid_name' });
    expect(await rejection(fleet.agents.rename(OPERATOR, 'f'.repeat(32), 'x'))).toMatchObject({
      code: 'agent_not_found',
    });
  });
});

describe('a name that another agent had', () => {
  const told = async (fleet: Fleet) =>
    (await fleet.events('agent.name_reused')).map(({ summary, metadata }) => [summary, metadata.earlier_node_id]);

  it('is given again by an approval and a rename, and both say whose it was and until when', async () => {
    const fleet = await Fleet.start();
    const first = await fleet.approved('web-01');
    const second = await fleet.join();
    const third = await fleet.join();
    fleet.clock.advance(1000);
    expect(await fleet.agents.rename(OPERATOR, first.nodeId, 'web-02')).not.toHaveProperty('name_reused');
    expect(await fleet.approve(second.nodeId, 'web-01')).toMatchObject({
      name_reused: { node_id: first.nodeId, until: 1_760_000_001 },
    });
    expect(await fleet.agents.get(second.nodeId)).not.toHaveProperty('name_reused');
    fleet.clock.advance(1000);
    await fleet.reject(second.nodeId);
    await fleet.agents.remove(OPERATOR, second.nodeId);
    await fleet.approve(third.nodeId, 'db-01');
    // The last one that had it counts, and no earlier one is kept.
    expect(await fleet.agents.rename(OPERATOR, third.nodeId, 'web-01')).toMatchObject({
      name_reused: { node_id: second.nodeId, until: 1_760_000_002 },
    });
    const kept = await fleet.db.selectFrom('agent_names').select('node_id').where('name', '=', 'web-01').execute();
    expect(kept.map(({ node_id }) => node_id).sort()).toEqual([second.nodeId, third.nodeId].sort());
    expect(await told(fleet)).toEqual([
      [
        `Agent ${second.nodeId} got the name web-01, which was the name of agent ${first.nodeId} until 2025-10-09T08:53:21.000Z`,
        first.nodeId,
      ],
      [
        `Agent ${third.nodeId} got the name web-01, which was the name of agent ${second.nodeId} until 2025-10-09T08:53:22.000Z`,
        second.nodeId,
      ],
    ]);
  });

  it('is told of when a token gives it, and not when an agent gets its own name again', async () => {
    const fleet = await Fleet.start();
    await fleet.addAdmin(OPERATOR.actor.id);
    const first = await fleet.approved('web-01');
    await fleet.agents.rename(OPERATOR, first.nodeId, 'web-02');
    await fleet.agents.rename(OPERATOR, first.nodeId, 'web-01');
    await fleet.agents.rename(OPERATOR, first.nodeId, 'web-02');
    expect(await told(fleet)).toEqual([]);
    const { token } = await fleet.tokens.create(OPERATOR, { auto_approve: true });
    const next = await fleet.join(undefined, { hostname: 'web-01', enrolment_token: token });
    await next.message(1);
    expect((await told(fleet)).map(([, earlier]) => earlier)).toEqual([first.nodeId]);
  });

  it('does not tell an operator with grants which machine it was', async () => {
    const fleet = await Fleet.start();
    const first = await fleet.approved('web-01');
    await fleet.agents.rename(OPERATOR, first.nodeId, 'web-02');
    const second = await fleet.join();
    const context = { ...OPERATOR, rights: new Rights('operator', [{ rights: ['operator'], selector: '*' }]) };
    const change = { status: 'approved', name: 'web-01' } as const;
    expect(await fleet.agents.setStatus(context, second.nodeId, change)).toMatchObject({
      name_reused: { node_id: null, until: null },
    });
  });
});
