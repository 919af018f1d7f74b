/** Value sets, secrets, searches in recordings and the check of the audit log by an operator with grants. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPEN } from '../../src/language/parse-expression.js';
import { type Call, World } from '../api/world.js';
import { connectedAgent, sessionOn } from '../support/limited-sessions.js';

const world = new World();
let dora = '';
let dev = '';
let prod = '';

const RIGHTS = ['operator', 'values', 'secrets'];

const codeOf = async (id: string, call: Call): Promise<string> => {
  const { status, json } = await world.call(id, { token: dora, ...call });
  return status < 300 ? String(status) : `${status} ${json?.code}`;
};
const set = (...entries: readonly string[]) => `values:\n${entries.map((entry) => `  - ${entry}\n`).join('')}`;
const upload = (name: string, content: string) => codeOf('uploadValueSet', { body: { name, content } });
const REFUSED = '403 not_granted';
const DEV = '{when: {tag.env: dev}, shared: {repo: one}}';
const PROD = '{when: {tag.env: prod}, shared: {repo: one}}';

beforeAll(async () => {
  await world.start();
  dev = await connectedAgent(world, 'dev');
  prod = await connectedAgent(world, 'prod');
  dora = await world.addLimited('dora', [{ rights: RIGHTS, selector: 'env=dev' }]);
});
afterAll(() => world.sandbox.dispose());

describe('a value set', () => {
  it('is stored when each of its entries is for machines of the grants', async () => {
    expect(await upload('hers', set(DEV))).toBe('201');
    expect(await upload('hers', set('{when: {tag.env: dev, platform: linux}, shared: {repo: two}}'))).toBe('201');
    expect(await codeOf('removeValueSet', { params: { name: 'hers' } })).toBe('204');
  });

  it('is refused for an entry that could reach other machines, now or later, in an upload and a preview', async () => {
    const entries = [
      PROD,
      '{when: {}, shared: {repo: evil}}',
      '{when: {platform: linux}, shared: {repo: evil}}',
      '{when: {tag.role: web}, set: {nobody_has_it: {a: 1}}}',
    ];
    for (const entry of entries) {
      const content = set(DEV, entry);
      expect([entry, await upload('evil', content)]).toEqual([entry, REFUSED]);
      const call = { params: { name: 'evil' }, body: { content } };
      expect([entry, await codeOf('previewValueSet', call)]).toEqual([entry, REFUSED]);
    }
    expect(await upload('evil', `rank: [tag.env]\n${set(DEV)}`)).toBe(REFUSED);
  });

  it('of others keeps their entries, in their order, and is not removed', async () => {
    const later = '{when: {tag.env: prod}, shared: {other: one}}';
    await world.gives('uploadValueSet', { body: { name: 'ours', content: set(PROD, later, DEV) } }, 201);
    expect(await upload('ours', set(PROD, later, DEV.replace('one', 'two')))).toBe('201');
    expect(await upload('ours', set(DEV, PROD, later))).toBe('201');
    for (const entries of [[later, PROD], [PROD], [PROD, later.replace('one', 'two')], [PROD, later, PROD]]) {
      expect(await upload('ours', set(...entries, DEV))).toBe(REFUSED);
    }
    const ours = { params: { name: 'ours' } };
    expect(await codeOf('removeValueSet', ours)).toBe(REFUSED);
    expect(await codeOf('previewValueSet', { ...ours, body: { content: null } })).toBe(REFUSED);
    await world.gives('removeValueSet', ours, 204);
  });
});

describe('a secret', () => {
  const create = (name: string, restriction?: object) =>
    codeOf('createSecret', { body: { name, value: 'hunter2hunter2', ...(restriction && { restriction }) } });
  const change = (name: string, body: object) => codeOf('updateSecret', { params: { name }, body });

  it('is stored when it is restricted to machines of the grants', async () => {
    expect(await create('HERS', { tags: 'env=dev' })).toBe('201');
    expect(await change('HERS', { value: 'hunter3hunter3' })).toBe('200');
    expect(await change('HERS', { restriction: { tags: 'env=dev', node_ids: [prod] } })).toBe('200');
    expect(await codeOf('removeSecret', { params: { name: 'HERS' } })).toBe('204');
  });

  it('is refused where other machines could get it, now or later', async () => {
    expect(await create('EVIL')).toBe(REFUSED);
    for (const restriction of [
      { tags: 'env=prod' },
      { tags: 'env in (dev, prod)' },
      { tags: 'env!=prod' },
      { tags: 'env' },
      { node_ids: [dev] },
      { node_ids: [prod] },
    ]) {
      expect([restriction, await create('EVIL', restriction)]).toEqual([restriction, REFUSED]);
    }
    expect(await create('HERS', { tags: 'env=dev' })).toBe('201');
    for (const restriction of [null, { tags: 'env=prod' }, { node_ids: [dev] }]) {
      expect(await change('HERS', { restriction })).toBe(REFUSED);
    }
    await world.gives('removeSecret', { params: { name: 'HERS' } }, 204);
  });

  it('takes no tag from others by a restriction', async () => {
    expect(await create('EVIL', { tags: 'env=dev, role=web' })).toBe(REFUSED);
    const role = { params: { node_id: dev, key: 'role' }, body: { value: 'web' } };
    expect(await codeOf('setTag', role)).toBe('204');
  });

  it('of others is neither changed nor removed, and no guess of its value is confirmed', async () => {
    const body = { name: 'OURS', value: 'hunter2hunter2' };
    await world.gives('createSecret', { body }, 201);
    expect(await change('OURS', { value: 'hunter2hunter2' })).toBe(REFUSED);
    expect(await change('OURS', { value: 'something else' })).toBe(REFUSED);
    expect(await change('OURS', { restriction: { tags: 'env=dev' } })).toBe(REFUSED);
    expect(await codeOf('removeSecret', { params: { name: 'OURS' } })).toBe(REFUSED);
  });

  it('tells whom it was given to among the machines of the grants alone', async () => {
    const content =
      'name: says\nsupports: [{platform: linux}]\nresources:\n  - id: say\n    resource: {script: {program: sh, apply: "echo SECRET"}}\n'.replace(
        'SECRET',
        `${OPEN} secrets.OURS }}`,
      );
    await world.gives('uploadModule', { body: { name: 'says', content } }, 201);
    for (const node_id of [dev, prod]) {
      await world.gives('applyAgent', { params: { node_id }, body: { modules: ['says'] } }, 200);
    }
    const usage = async (more: Call) => {
      const { agents } = await world.gives('getSecretUsage', { params: { name: 'OURS' }, ...more }, 200);
      return agents.map(({ node_id }: { node_id: string }) => node_id).sort();
    };
    expect(await usage({})).toEqual([dev, prod].sort());
    expect(await usage({ token: dora })).toEqual([dev]);
  });
});

describe('a search in recordings', () => {
  it('finds nothing of hidden machines, nor of the time before a machine came', async () => {
    const sessions = {
      dev: await sessionOn(world, dev, ['echo', 'needle']),
      prod: await sessionOn(world, prod, ['echo', 'needle']),
    };
    const found = async (token?: string, query: object = {}) => {
      const call = { query: { pattern: 'needle', ...query }, ...(token !== undefined && { token }) };
      const { matches, searched } = await world.gives('searchTerminals', call, 200);
      return { sessions: matches.map(({ session_id }: { session_id: string }) => session_id).sort(), searched };
    };
    expect(await found()).toEqual({ sessions: [sessions.dev, sessions.prod].sort(), searched: 2 });
    expect(await found(dora)).toEqual({ sessions: [sessions.dev], searched: 1 });
    expect(await found(dora, { node: prod })).toEqual({ sessions: [], searched: 0 });
    const tag = (node_id: string, value: string) =>
      world.gives('setTag', { params: { node_id, key: 'env' }, body: { value } }, 204);
    await tag(prod, 'dev');
    expect((await found(dora)).sessions).toEqual([sessions.dev]);
    await tag(prod, 'prod');
    await tag(dev, 'prod');
    expect(await found(dora)).toEqual({ sessions: [], searched: 0 });
    await tag(dev, 'dev');
  });
});

describe('the check of the audit log', () => {
  it('tells the verdict about the whole log, and nothing of an event', async () => {
    const { intact, problem } = await world.gives('verifyAudit', { token: dora }, 200);
    expect([intact, problem]).toEqual([true, null]);
    const { text } = await world.call('verifyAudit', { token: dora });
    for (const hidden of [prod, 'prod', 'OURS']) expect(text).not.toContain(hidden);
  });
});
