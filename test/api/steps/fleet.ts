/** Agents, tags, enrolment tokens and measurements. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { until } from '../../support/orch.js';
import type { World } from '../world.js';

const ABSENT = { params: { node_id: 'f'.repeat(32) } };

export async function agents(world: World): Promise<void> {
  const { connected, away, pending, rejected } = world.agents;
  const set = (node_id: string, body: object, code: string) =>
    world.refuses('setAgentStatus', { params: { node_id }, body }, code);
  await set(pending, { status: 'approved' }, 'name_required');
  await set(pending, { status: 'approved', name: 'a b' }, 'invalid_name');
  await set(pending, { status: 'approved', name: 'web-01' }, 'name_taken');
  await set(connected, { status: 'approved', name: 'web-02' }, 'name_immutable');
  await set(ABSENT.params.node_id, { status: 'rejected' }, 'agent_not_found');
  await world.gives('getFleet', {}, 200);
  await world.gives('getAgent', { params: { node_id: connected } }, 200);
  await world.refuses('getAgent', ABSENT, 'agent_not_found');
  await world.gives('getAgentAttributes', { params: { node_id: connected } }, 200);
  await world.refuses('getAgentAttributes', ABSENT, 'agent_not_found');
  await world.gives('getAgentFacts', { params: { node_id: connected } }, 200);
  await world.refuses('getAgentFacts', ABSENT, 'agent_not_found');
  await world.gives('refreshAgentFacts', { params: { node_id: connected } }, 200);
  await world.refuses('refreshAgentFacts', { params: { node_id: away } }, 'agent_not_connected');
  await world.refuses('refreshAgentFacts', ABSENT, 'agent_not_found');
  await world.refuses('removeAgent', ABSENT, 'agent_not_found');
  await world.refuses('removeAgent', { params: { node_id: away } }, 'agent_not_rejected');
  await world.gives('removeAgent', { params: { node_id: rejected } }, 204);
}

/** Follows the Link headers from page to page; gives the node IDs in the order of the pages. */
export async function agentPages(world: World): Promise<readonly string[]> {
  await world.refuses('listAgents', { query: { filter: 'tag.=' } }, 'invalid_selector');
  await world.refuses('listAgents', { query: { cursor: 'nonsense' } }, 'invalid_cursor');
  const { json: named } = await world.call('listAgents', { query: { name: 'away' } });
  expect(named.map((agent: { node_id: string }) => agent.node_id)).toEqual([world.agents.away]);
  expect((await world.call('listAgents', { query: { name: 'awa' } })).json).toEqual([]);
  const found: string[] = [];
  let query: Readonly<Record<string, string>> = { limit: '2' };
  for (let page = 0; page < 10; page += 1) {
    const { json, headers } = await world.call('listAgents', { query });
    found.push(...json.map((agent: { node_id: string }) => agent.node_id));
    const next = /<([^>]+)>; rel="next"/.exec(String(headers.link))?.[1];
    if (next === undefined) break;
    query = Object.fromEntries(new URL(next, world.base).searchParams);
  }
  return found;
}

export async function tags(world: World): Promise<void> {
  const node = { node_id: world.agents.connected };
  const key = { ...node, key: 'site' };
  await world.gives('replaceTags', { params: node, body: { tags: { site: 'lab' } } }, 204);
  await world.gives('setTag', { params: key, body: { value: 'office' } }, 204);
  await world.gives('listTags', {}, 200);
  await world.gives('removeTag', { params: key }, 204);
  await world.refuses('removeTag', { params: key }, 'tag_not_found');
  await world.refuses('removeTag', { params: { ...ABSENT.params, key: 'site' } }, 'agent_not_found');
  await world.refuses('setTag', { params: { ...node, key: 'a b' }, body: { value: '' } }, 'invalid_tag');
  await world.refuses('setTag', { params: { ...ABSENT.params, key: 'a' }, body: { value: 'b' } }, 'agent_not_found');
  await world.refuses('replaceTags', { params: node, body: { tags: { 'a b': '' } } }, 'invalid_tag');
  await world.refuses('replaceTags', { ...ABSENT, body: { tags: {} } }, 'agent_not_found');
}

/** An agent of a checkout cannot replace itself; it is stopped in between, so that its answer cannot come too early. */
export async function upgrades(world: World): Promise<void> {
  const { away, pending } = world.agents;
  const { nodeId, agent } = await world.startAgent('upgraded');
  const node = { params: { node_id: nodeId } };
  await world.refuses('upgradeAgent', ABSENT, 'agent_not_found');
  await world.refuses('upgradeAgent', { params: { node_id: pending } }, 'agent_not_approved');
  await world.refuses('upgradeAgent', { params: { node_id: away } }, 'agent_not_connected');
  await world.gives('setAgentStatus', { ...node, body: { status: 'approved', name: 'upgraded' } }, 200);
  const isConnected = async () => (await world.call('getAgent', node)).json.connected;
  await until(isConnected, 'the agent is connected');
  const { attributes } = (await world.call('getAgent', node)).json;
  const machine = { hostname: attributes.hostname, address: '127.0.0.1' };
  await world.gives('keepMachine', { ...node, body: machine }, 200);
  await world.refuses('renameAgent', { params: { node_id: pending }, body: { name: 'renamed' } }, 'agent_not_approved');
  await world.refuses('renameAgent', { ...ABSENT, body: { name: 'renamed' } }, 'agent_not_found');
  await world.refuses('renameAgent', { ...node, body: { name: '-' } }, 'invalid_name');
  await world.refuses('renameAgent', { ...node, body: { name: 'WEB-01' } }, 'name_taken');
  await world.gives('renameAgent', { ...node, body: { name: 'renamed' } }, 200);
  await world.refuses('keepMachine', { ...node, body: { ...machine, hostname: 'other' } }, 'agent_not_connected');
  await world.refuses('keepMachine', { ...ABSENT, body: machine }, 'agent_not_found');
  await world.refuses('upgradeAgent', { ...node, body: { version: '9.9.9' } }, 'package_not_found');
  await world.refuses('getAgentUpgrade', ABSENT, 'agent_not_found');
  await world.refuses('getAgentUpgrade', node, 'upgrade_not_found');
  const packages = world.sandbox.path('serve', 'packages');
  mkdirSync(packages, { recursive: true });
  writeFileSync(join(packages, `orch-1.2.3-linux-${process.arch}.tar.gz`), gzipSync('a release'));
  agent.process.kill('SIGSTOP');
  const order = { ...node, body: { version: '1.2.3' } };
  expect(await world.gives('upgradeAgent', order, 202)).toMatchObject({ version: '1.2.3', state: 'requested' });
  await world.refuses('upgradeAgent', order, 'upgrade_in_progress');
  agent.process.kill('SIGCONT');
  await until(async () => (await world.call('getAgentUpgrade', node)).json.state === 'failed', 'the agent refuses');
  expect(await world.gives('getAgentUpgrade', node, 200)).toMatchObject({
    error: { code: 'upgrade_unsupported', message: expect.stringContaining('was not installed from a package') },
  });
  await agent.stop();
  await world.gives('setAgentStatus', { ...node, body: { status: 'rejected' } }, 200);
  await world.gives('removeAgent', node, 204);
}

export async function enrolmentTokens(world: World): Promise<void> {
  await world.refuses('createEnrolmentToken', { body: { tags: { 'a b': '' } } }, 'invalid_tag');
  const { id } = await world.gives('createEnrolmentToken', { body: { tags: { site: 'lab' } } }, 201);
  await world.gives('createEnrolmentToken', {}, 201);
  await world.gives('listEnrolmentTokens', {}, 200);
  await world.gives('revokeEnrolmentToken', { params: { id } }, 204);
  await world.refuses('revokeEnrolmentToken', { params: { id } }, 'enrolment_token_not_found');
}

export async function metrics(world: World): Promise<void> {
  const node = { params: { node_id: world.agents.connected } };
  await until(async () => (await world.call('getLatestMetrics', node)).status === 200, 'the agent was measured');
  const away = { params: { node_id: world.agents.away } };
  for (const id of ['getMetrics', 'getLatestMetrics']) {
    await world.gives(id, node, 200);
    await world.gives(id, away, 204);
    await world.refuses(id, ABSENT, 'agent_not_found');
  }
  await world.gives('listLatestMetrics', {}, 200);
  await world.gives('getOwnMetrics', {}, 200);
}

export async function discovery(world: World): Promise<void> {
  const ask = (target: string) => ({ body: { target } });
  await world.gives('discover', ask('127.0.0.1:9'), 200);
  await world.refuses('discover', ask('127.0.0.1:9'), 'rate_limited');
  // A broadcast address is no single agent; asked until a packet may be sent again.
  const isFailed = async () =>
    (await world.call('discover', ask('255.255.255.255:9'))).json?.code === 'discovery_failed';
  await until(isFailed, 'a packet cannot be sent');
  await world.refuses('discover', ask('nonsense'), 'invalid_body');
}
