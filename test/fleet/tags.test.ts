import { describe, expect, it } from 'vitest';
import { Fleet, OPERATOR, serveFleet } from '../support/fleet.js';
import { send } from '../support/http.js';

/** An approved agent, and what changes its tags over HTTP. */
async function tagged(tags: Readonly<Record<string, string>> = {}) {
  const fleet = await Fleet.start();
  const { nodeId } = await fleet.approved('web');
  if (Object.keys(tags).length > 0) await fleet.tags.replace(OPERATOR, nodeId, tags);
  const api = await serveFleet(fleet);
  const path = `/api/v1/agents/${nodeId}/tags`;
  return {
    fleet,
    nodeId,
    api,
    replace: (body: unknown) => send(api, 'PUT', path, { body }),
    set: (key: string, value: unknown) => send(api, 'PUT', `${path}/${encodeURIComponent(key)}`, { body: { value } }),
    remove: (key: string) => send(api, 'DELETE', `${path}/${encodeURIComponent(key)}`),
    now: async () => (await fleet.agents.get(nodeId)).tags,
    changes: async () =>
      (await fleet.events('agent.tags_changed')).map(({ metadata: { before, after } }) => ({ before, after })),
  };
}

describe('tags', () => {
  it('have no key in other letters that looks like one in use, because selectors would miss the agent', async () => {
    const { set, now } = await tagged({ role: 'web' });
    const refused = await set('rоle', 'db');
    expect(refused).toMatchObject({ status: 400, json: { code: 'invalid_tag' } });
    expect(refused.json.detail).toContain('looks like "role", which is in use');
    expect(await set('роль', 'db')).toMatchObject({ status: 204 });
    expect(await now()).toEqual({ role: 'web', роль: 'db' });
  });

  it('are replaced, set and removed, each with what was there before in the audit log', async () => {
    const { nodeId, fleet, replace, set, remove, now, changes } = await tagged();
    fleet.clock.advance(4_000);
    expect(await replace({ tags: { role: 'web', site: 'north' } })).toMatchObject({ status: 204, text: '' });
    expect(await now()).toEqual({ role: 'web', site: 'north' });
    expect(await set('role', 'db')).toMatchObject({ status: 204, text: '' });
    expect(await set('empty', '')).toMatchObject({ status: 204 });
    expect(await remove('site')).toMatchObject({ status: 204, text: '' });
    expect(await now()).toEqual({ role: 'db', empty: '' });
    expect(await replace({ tags: {} })).toMatchObject({ status: 204 });
    expect(await now()).toEqual({});
    expect(await changes()).toEqual([
      { before: {}, after: { role: 'web', site: 'north' } },
      { before: { role: 'web', site: 'north' }, after: { role: 'db', site: 'north' } },
      { before: { role: 'db', site: 'north' }, after: { empty: '', role: 'db', site: 'north' } },
      { before: { empty: '', role: 'db', site: 'north' }, after: { empty: '', role: 'db' } },
      { before: { empty: '', role: 'db' }, after: {} },
    ]);
    const [first] = await fleet.events('agent.tags_changed');
    expect(first).toMatchObject({
      actor: { name: 'operator', type: 'operator' },
      target: { id: nodeId, name: 'web', type: 'agent' },
      summary: 'operator changed the tags role, site of agent web',
      metadata: { request_id: expect.stringMatching(/^\w{26}$/) },
    });
    expect(await fleet.agents.get(nodeId)).toMatchObject({ updated_at: 1_760_000_004 });
  });

  it('that are as they were make no event', async () => {
    const { replace, set, changes } = await tagged({ role: 'web', site: 'north' });
    expect((await replace({ tags: { site: 'north', role: 'web' } })).status).toBe(204);
    expect((await set('role', 'web')).status).toBe(204);
    expect(await changes()).toHaveLength(1);
  });

  it('may have the names of what every object has', async () => {
    const { replace, now, changes } = await tagged();
    expect((await replace({ tags: { constructor: 'x', toString: 'y' } })).status).toBe(204);
    expect(await now()).toEqual({ constructor: 'x', toString: 'y' });
    expect((await replace({ tags: { toString: 'y' } })).status).toBe(204);
    expect(await changes()).toHaveLength(2);
  });

  it('take the longest key and value, counted in characters', async () => {
    const { set, now } = await tagged();
    const [key, value] = [`a${'._-Z9'.repeat(12)}xyz`, '\u{1f525}'.repeat(256)];
    expect(key).toHaveLength(64);
    expect((await set(key, value)).status).toBe(204);
    expect(await now()).toEqual({ [key]: value });
  });

  it('are listed by key with every value in order', async () => {
    const { fleet, api, replace } = await tagged();
    await replace({ tags: { role: 'web', site: 'north' } });
    const other = await fleet.join();
    await fleet.tags.replace(OPERATOR, other.nodeId, { role: 'db', 'a.b': '' });
    const third = await fleet.join();
    await fleet.tags.replace(OPERATOR, third.nodeId, { role: 'db' });
    const { status, json } = await send(api, 'GET', '/api/v1/tags', { token: 'viewer' });
    expect(status).toBe(200);
    expect(json).toEqual({ tags: { 'a.b': [''], role: ['db', 'web'], site: ['north'] } });
    expect(Object.keys(json.tags)).toEqual(['a.b', 'role', 'site']);
  });

  it('are no more than 256, and more change nothing', async () => {
    const full = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`k${index}`, 'x']));
    const { replace, set, now, changes } = await tagged(full);
    expect((await set('one-more', 'x')).json).toMatchObject({ status: 400, code: 'invalid_tag' });
    expect((await replace({ tags: { ...full, more: 'x' } })).json).toMatchObject({ status: 400, code: 'invalid_tag' });
    expect((await set('k0', 'y')).status).toBe(204);
    expect(Object.keys(await now())).toHaveLength(256);
    expect(await changes()).toHaveLength(2);
  });
});

describe('a tag that clauses can name', () => {
  it.each(['größe', 'a:b@c', 'a%b?c#d', '1'])('%j is set and taken away', async (key) => {
    const { set, now } = await tagged();
    expect((await set(key, 'x')).status).toBe(204);
    expect(await now()).toEqual({ [key]: 'x' });
  });
});

describe('a tag that is not valid', () => {
  it.each<[string, string]>([
    ['', 'x'],
    ['-a', 'x'],
    ['.a', 'x'],
    ['a b', 'x'],
    ['a=b', 'x'],
    ['a/b', 'x'],
    ['a}}', 'x'],
    ['a\u202e', 'x'],
    ['_a', 'x'],
    ['a\n', 'x'],
    ['__proto__', 'x'],
    ['a'.repeat(65), 'x'],
    ['a', 'x'.repeat(257)],
    ['a', 'x\ny'],
    ['a', '\u001b[31m'],
    ['a', '\u009b'],
    ['a', '\u007f'],
  ])('%j: %j is refused', async (key, value) => {
    const { replace, set, now, changes } = await tagged();
    const body = `{"tags": {${JSON.stringify(key)}: ${JSON.stringify(value)}}}`;
    const all = await replace(JSON.parse(body));
    expect(all.status).toBe(400);
    expect(['invalid_tag', 'invalid_body']).toContain(all.json.code);
    const answer = await set(key, value);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(['invalid_tag', 'invalid_path', 'not_found', 'method_not_allowed', 'invalid_body']).toContain(
      answer.json.code,
    );
    expect(await now()).toEqual({});
    expect(await changes()).toEqual([]);
  });

  it('is reported with all the others', async () => {
    const { replace, set, now } = await tagged({ role: 'web' });
    const answer = await replace({ tags: { 'a/b~c': 'x', good: 'x', bad: '\n', '-': '\u0000' } });
    expect(answer.json).toMatchObject({
      status: 400,
      code: 'invalid_tag',
      detail: expect.stringContaining('the key "a/b~c" cannot be a tag'),
      errors: [
        { path: '/tags/a~1b~0c', message: expect.stringContaining('key') },
        { path: '/tags/bad', message: expect.stringContaining('value') },
        { path: '/tags/-', message: expect.stringContaining('key') },
        { path: '/tags/-', message: expect.stringContaining('value') },
      ],
    });
    expect(answer.json.detail).toContain('3 more');
    expect((await set('-x', '\n')).json.errors).toMatchObject([{ path: '/key' }, { path: '/value' }]);
    expect(await now()).toEqual({ role: 'web' });
  });

  it.each<[string, unknown]>([
    ['no tags', {}],
    ['a list', { tags: ['a'] }],
    ['a number as value', { tags: { a: 1 } }],
    ['null as value', { tags: { a: null } }],
    ['a number behind an odd key', { tags: { 'a\nb': 1 } }],
    ['more than tags', { tags: {}, node_id: 'x' }],
    ['nothing', undefined],
  ])('%s is a bad request', async (_, body) => {
    const { replace, now } = await tagged({ role: 'web' });
    const answer = await replace(body);
    expect(answer.status).toBe(400);
    expect(['invalid_body', 'invalid_tag']).toContain(answer.json.code);
    expect(await now()).toEqual({ role: 'web' });
  });
});

describe('a tag that is not there', () => {
  it('cannot be removed', async () => {
    const { remove, changes } = await tagged({ role: 'web' });
    expect((await remove('site')).json).toMatchObject({ status: 404, code: 'tag_not_found' });
    expect((await remove('Role')).json).toMatchObject({ status: 404, code: 'tag_not_found' });
    expect((await remove('a b')).json).toMatchObject({ status: 404, code: 'tag_not_found' });
    expect(await changes()).toHaveLength(1);
  });
});

it('an agent that is not there has no tags', async () => {
  const { api, fleet } = await tagged();
  const path = `/api/v1/agents/${'f'.repeat(32)}/tags`;
  const tries = [
    await send(api, 'PUT', path, { body: { tags: { a: 'b' } } }),
    await send(api, 'PUT', `${path}/a`, { body: { value: 'b' } }),
    await send(api, 'DELETE', `${path}/a`),
  ];
  for (const { json } of tries) expect(json).toMatchObject({ status: 404, code: 'agent_not_found' });
  expect(await fleet.events('agent.tags_changed')).toEqual([]);
});
