import { describe, expect, it } from 'vitest';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import type { ApiServer } from '../../daemon/http/api-server.js';
import type { Agent } from '../../src/contract/agents.js';
import { Fleet, OPERATOR, serveFleet } from '../support/fleet.js';
import { type Sent, send } from '../support/http.js';

interface Entry {
  readonly name: string | null;
  readonly status?: Agent['status'];
  readonly attributes?: Readonly<Record<string, string>>;
  readonly tags?: Readonly<Record<string, string>>;
}

const idOf = (index: number): string => index.toString(16).padStart(32, '0');

/** Records as the store has them, with node IDs that count from 1. */
async function fill(fleet: Fleet, entries: readonly Entry[]): Promise<void> {
  for (const [index, { name, status, attributes, tags }] of entries.entries()) {
    const node_id = idOf(index + 1);
    await insertAgent(fleet.db, {
      node_id,
      public_key: index.toString(16).padStart(64, '0'),
      name,
      status: status ?? (name === null ? 'pending' : 'approved'),
      created_at: 1,
      updated_at: 2_000,
      connected_at: 0,
      last_seen_at: 0,
      initial_hostname: 'box',
      initial_ip: '192.0.2.1',
      agent_version: '0.1.0',
      protocol_version: 1,
      attributes: attributes ?? {},
      state_operation_id: null,
    });
    if (tags) await fleet.tags.replace(OPERATOR, node_id, tags);
  }
}

async function served(entries: readonly Entry[] = []): Promise<{ fleet: Fleet; api: ApiServer }> {
  const fleet = await Fleet.start();
  await fill(fleet, entries);
  return { fleet, api: await serveFleet(fleet) };
}

const labels = ({ json }: Sent): readonly string[] =>
  json.map(({ name, node_id }: Agent) => name ?? Number.parseInt(node_id, 16));

const problem = ({ status, json }: Sent): readonly [number, string] => [status, json?.code];

/** The URL of the next page, null when there is none. */
const nextOf = ({ headers }: Sent): string | null => /^<([^>]+)>; rel="next"$/.exec(String(headers.link))?.[1] ?? null;

describe('GET /agents', () => {
  const entries: readonly Entry[] = [
    { name: null },
    { name: 'web', attributes: { arch: 'x86_64', platform: 'linux' }, tags: { role: 'web', site: 'north' } },
    { name: 'db', attributes: { arch: 'arm64', platform: 'linux' }, tags: { role: 'db' } },
    { name: 'old', status: 'rejected', attributes: { arch: 'arm64' }, tags: { role: 'db' } },
    { name: null, status: 'rejected' },
    { name: 'app', attributes: { arch: 'arm64', platform: 'linux' }, tags: { site: 'north' } },
  ];

  it('answers by name, and those without one last', async () => {
    const { api } = await served(entries);
    const answer = await send(api, 'GET', '/api/v1/agents', { token: 'viewer' });
    expect(answer.status).toBe(200);
    expect(labels(answer)).toEqual(['app', 'db', 'old', 'web', 1, 5]);
    expect(answer.headers.link).toBeUndefined();
    expect(answer.json[3]).toEqual({
      node_id: idOf(2),
      name: 'web',
      status: 'approved',
      connected: false,
      connected_at: 0,
      updated_at: 1_760_000_000,
      initial_hostname: 'box',
      initial_ip: '192.0.2.1',
      agent_version: '0.1.0',
      public_key: '1'.padStart(64, '0'),
      attributes: { arch: 'x86_64', platform: 'linux' },
      tags: { role: 'web', site: 'north' },
      standing: null,
      standing_since: null,
      standing_reason: null,
      trial: null,
      automation_stopped: null,
    });
  });

  it('gives a thousand agents at most, and says where the next ones are', async () => {
    const { api } = await served(
      Array.from({ length: 1_001 }, (_, at) => ({ name: `n${String(at).padStart(4, '0')}` })),
    );
    for (const query of ['', '?limit=0', '?limit=5000']) {
      const first = await send(api, 'GET', `/api/v1/agents${query}`);
      expect(first.json).toHaveLength(1_000);
      const [, next = ''] = /^<(.*)>; rel="next"$/.exec(first.headers.link?.toString() ?? '') ?? [];
      const second = await send(api, 'GET', next);
      expect(labels(second)).toEqual(['n1000']);
      expect(second.headers.link).toBeUndefined();
    }
  });

  it.each<[string, readonly (string | number)[]]>([
    ['status=approved', ['app', 'db', 'web']],
    ['status=pending', [1]],
    ['status=rejected', ['old', 5]],
    ['filter=role%3Ddb', ['db', 'old']],
    ['filter=role%3Ddb&status=approved', ['db']],
    ['filter=arch%3Darm64,site', ['app']],
    ['filter=arch%20in%20(arm64,x86_64)%20role', ['db', 'old', 'web']],
    ['filter=!platform', ['old', 1, 5]],
    ['filter=*', ['app', 'db', 'web']],
    ['filter=*&status=pending', []],
    ['filter=nothing', []],
    ['filter=constructor', []],
  ])('?%s', async (query, expected) => {
    const { api } = await served(entries);
    expect(labels(await send(api, 'GET', `/api/v1/agents?${query}`))).toEqual(expected);
  });

  it.each(['filter=', 'filter=role%3D%3D%3D', 'filter=*,role', 'filter=a%20in%20('])(
    '?%s is refused with the place of the mistake',
    async (query) => {
      const { api } = await served();
      const answer = await send(api, 'GET', `/api/v1/agents?${query}`);
      expect(problem(answer)).toEqual([400, 'invalid_selector']);
      expect(answer.json.position ?? answer.json.data?.position).toEqual(expect.any(Number));
    },
  );

  it.each<[string, string]>([
    ['status=gone', 'invalid_query'],
    ['limit=-1', 'invalid_query'],
    ['limit=many', 'invalid_query'],
    ['limit=1.5', 'invalid_query'],
    ['page=2', 'invalid_query'],
    [`cursor=${'f'.repeat(32)}`, 'invalid_cursor'],
    ['cursor=web', 'invalid_cursor'],
  ])('?%s is refused', async (query, code) => {
    const { api } = await served(entries);
    expect(problem(await send(api, 'GET', `/api/v1/agents?${query}`))).toEqual([400, code]);
  });

  const walk = async (api: ApiServer, first: string): Promise<readonly (readonly (string | number)[])[]> => {
    const pages: (readonly (string | number)[])[] = [];
    for (let path: string | null = first; path !== null && pages.length < 20; ) {
      const answer: Sent = await send(api, 'GET', path);
      expect(answer.status).toBe(200);
      pages.push(labels(answer));
      path = nextOf(answer);
    }
    return pages;
  };

  it('with limit, names the next page until there is none', async () => {
    const { api } = await served(entries);
    expect(await walk(api, '/api/v1/agents?limit=2')).toEqual([
      ['app', 'db'],
      ['old', 'web'],
      [1, 5],
    ]);
    expect(await walk(api, '/api/v1/agents?limit=4')).toEqual([
      ['app', 'db', 'old', 'web'],
      [1, 5],
    ]);
    expect(await walk(api, '/api/v1/agents?limit=6')).toEqual([['app', 'db', 'old', 'web', 1, 5]]);
    expect(await walk(api, '/api/v1/agents?limit=999999999999999999999')).toEqual([['app', 'db', 'old', 'web', 1, 5]]);
  });

  it('pages through what a filter and a status leave', async () => {
    const { api } = await served(entries);
    expect(await walk(api, '/api/v1/agents?limit=1&status=approved&filter=arch%3Darm64')).toEqual([['app'], ['db']]);
    expect(await walk(api, '/api/v1/agents?limit=1&status=rejected')).toEqual([['old'], [5]]);
    expect(await walk(api, '/api/v1/agents?limit=2&filter=arch%20in%20(arm64)')).toEqual([['app', 'db'], ['old']]);
  });

  it('with a cursor and no limit, also by its former name, answers all that come after', async () => {
    const { api } = await served(entries);
    expect(labels(await send(api, 'GET', `/api/v1/agents?cursor=${idOf(4)}`))).toEqual(['web', 1, 5]);
    expect(labels(await send(api, 'GET', `/api/v1/agents?after=${idOf(4)}`))).toEqual(['web', 1, 5]);
  });

  it('has no more than 1000 on a page, and its own tags on each', async () => {
    const many = Array.from({ length: 1_001 }, (_, index) => ({ name: `n${String(index).padStart(4, '0')}` }));
    const { api, fleet } = await served(many);
    await fleet.tags.set(OPERATOR, idOf(1_001), { key: 'role', value: 'last' });
    const first = await send(api, 'GET', '/api/v1/agents?limit=5000');
    expect(first.json).toHaveLength(1_000);
    const next = nextOf(first);
    expect(next).toBe(`/api/v1/agents?limit=1000&cursor=${idOf(1_000)}`);
    const second = await send(api, 'GET', String(next));
    expect(second.json).toMatchObject([{ name: 'n1000', tags: { role: 'last' } }]);
    expect(nextOf(second)).toBeNull();
  });

  it('tells who is connected', async () => {
    const { api, fleet } = await served();
    const [approved, pending] = [await fleet.approved('web'), await fleet.join()];
    await fleet.dial();
    const connected = (await send(api, 'GET', '/api/v1/agents')).json.filter((agent: Agent) => agent.connected);
    expect(connected.map((agent: Agent) => agent.node_id)).toEqual([approved.nodeId, pending.nodeId]);
  });
});

describe('one agent', () => {
  it('is read, with its attributes', async () => {
    const { api } = await served([{ name: 'web', attributes: { arch: 'x86_64' } }]);
    expect((await send(api, 'GET', `/api/v1/agents/${idOf(1)}`)).json).toMatchObject({ name: 'web' });
    expect((await send(api, 'GET', `/api/v1/agents/${idOf(1)}/attributes`)).json).toEqual({ arch: 'x86_64' });
  });

  it('is addressed by its exact node ID only', async () => {
    const { api } = await served([{ name: 'web' }]);
    for (const id of ['web', idOf(1).slice(1), idOf(2), idOf(1).toUpperCase().replace('1', 'A')]) {
      expect(problem(await send(api, 'GET', `/api/v1/agents/${id}`))).toEqual([404, 'agent_not_found']);
    }
  });

  it('is approved, rejected and removed', async () => {
    const { api, fleet } = await served();
    const agent = await fleet.join();
    const path = `/api/v1/agents/${agent.nodeId}`;
    const post = (body: unknown) => send(api, 'POST', path, { body });

    expect(problem(await post({ status: 'approved' }))).toEqual([400, 'name_required']);
    expect(problem(await post({ status: 'approved', name: null }))).toEqual([400, 'name_required']);
    expect(problem(await post({ status: 'approved', name: '1' }))).toEqual([400, 'invalid_name']);
    expect(problem(await post({ status: 'pending', name: 'web' }))).toEqual([400, 'invalid_body']);
    expect(problem(await post({ name: 'web' }))).toEqual([400, 'invalid_body']);
    expect(problem(await send(api, 'DELETE', path))).toEqual([409, 'agent_not_rejected']);
    const approved = await post({ status: 'approved', name: 'web' });
    expect(approved.status).toBe(200);
    expect(approved.json).toMatchObject({ name: 'web', status: 'approved', connected: true });
    expect(problem(await post({ status: 'approved', name: 'other' }))).toEqual([409, 'name_immutable']);
    const other = await fleet.join();
    const taken = await send(api, 'POST', `/api/v1/agents/${other.nodeId}`, {
      body: { status: 'approved', name: 'web' },
    });
    expect(problem(taken)).toEqual([409, 'name_taken']);
    expect((await post({ status: 'rejected' })).json).toMatchObject({ status: 'rejected', connected: false });
    expect((await agent.closed).code).toBe(4403);
    expect(await send(api, 'DELETE', path)).toMatchObject({ status: 204, text: '' });
    expect(problem(await send(api, 'DELETE', path))).toEqual([404, 'agent_not_found']);
    expect(problem(await post({ status: 'rejected' }))).toEqual([404, 'agent_not_found']);
  });

  it('is not changed by a viewer', async () => {
    const { api, fleet } = await served([{ name: 'web' }]);
    const path = `/api/v1/agents/${idOf(1)}`;
    const tries = [
      await send(api, 'POST', path, { token: 'viewer', body: { status: 'rejected' } }),
      await send(api, 'DELETE', path, { token: 'viewer' }),
      await send(api, 'PUT', `${path}/tags`, { token: 'viewer', body: { tags: {} } }),
      await send(api, 'PUT', `${path}/tags/a`, { token: 'viewer', body: { value: '' } }),
      await send(api, 'DELETE', `${path}/tags/a`, { token: 'viewer' }),
    ];
    for (const answer of tries) expect(problem(answer)).toEqual([403, 'role_forbidden']);
    expect((await send(api, 'GET', path, { token: null })).status).toBe(401);
    expect(await fleet.story()).toEqual([]);
  });

  it('has who asked and the id of the request in its events', async () => {
    const { api, fleet } = await served();
    const agent = await fleet.join();
    const body = { status: 'approved', name: 'web' };
    const { headers } = await send(api, 'POST', `/api/v1/agents/${agent.nodeId}`, { token: 'admin', body });
    expect(await fleet.events('agent.approved')).toMatchObject([
      { actor: { name: 'admin', type: 'operator' }, metadata: { request_id: headers['x-request-id'] } },
    ]);
  });
});
