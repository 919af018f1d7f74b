/** Names of agents: new ones, and those that look like the name of another agent. */
import { describe, expect, it } from 'vitest';
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
