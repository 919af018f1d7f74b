/** A fleet whose operators have no grants reads no word of them, in answers of the API and in what the commands print. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { World } from '../api/world.js';
import { runOrch } from '../support/cli.js';

/** Words that only grants brought. "may_store" is a member of answers to operators with grants. */
const OF_GRANTS = /\b(grants?|granted|planners?|deployers?|ephemeral|may_store)\b/i;

describe('a running fleet without grants', () => {
  const world = new World();

  beforeAll(async () => {
    await world.start();
    await world.startAgents();
    const content = 'name: base\nsupports: [{platform: linux}]\nresources: []\n';
    await world.gives('uploadModule', { body: { name: 'base', content } }, 201);
    await world.gives('createAssignment', { body: { name: 'all', modules: ['base'], selector: '*' } }, 201);
    await world.gives('applyAgent', { params: { node_id: world.agents.connected }, body: { modules: [] } }, 200);
    await world.gives('createEnrolmentToken', { body: {} }, 201);
  });
  afterAll(() => world.sandbox.dispose());

  const params = () => ({ node_id: world.agents.connected, name: 'all' });

  const finite = Object.values<RouteSpec>(CONTRACT).filter(
    ({ path, mediaType, events }) => events === undefined && mediaType === undefined && !path.includes('openapi'),
  );

  it.each(['admin', 'operator', 'viewer'] as const)('answers the reads of the %s without them', async (as) => {
    for (const { id } of finite.filter(({ method }) => method === 'GET')) {
      const { text } = await world.call(id, { as, params: params() });
      expect([id, OF_GRANTS.exec(text)?.[0]]).toEqual([id, undefined]);
    }
  });

  it.each([
    ['agents', 'list', '-o', 'wide'],
    ['agents', 'show', 'web-01'],
    ['assignments', 'show', 'all'],
    ['enroll', 'list', '-o', 'wide'],
    ['enroll', 'list', '--help'],
    ['enroll', 'revoke', '--help'],
    ['operator', 'list', '-o', 'wide'],
    ['operator', 'show', 'operator'],
    ['operator', 'whoami'],
    ['secrets', 'list'],
    ['status'],
    ['ops'],
    ['audit', '-o', 'wide'],
  ])('prints none of them: orch %s %s', async (...words) => {
    const env = { ORCH_URL: world.base, ORCH_TLS_FINGERPRINT: world.ready.tls_fingerprint, ORCH_NO_STATE: '1' };
    for (const json of words.includes('--help') || words.includes('-o') ? [[]] : [[], ['-o', 'json']]) {
      const ran = await runOrch([...words, ...json], { env: { ...env, ORCH_TOKEN: world.tokenOf('admin') } });
      expect(ran).toMatchObject({ status: 0, stderr: '' });
      expect(OF_GRANTS.exec(ran.stdout)?.[0]).toBeUndefined();
    }
  });

  // The last, because the operator may remove what is there.
  it.each(['operator', 'viewer'] as const)('refuses the %s without them', async (as) => {
    let refused = 0;
    for (const { id } of finite.filter(({ method, id: one }) => method !== 'GET' && one !== 'endSession')) {
      const { status, text } = await world.call(id, { as, params: params(), body: {} });
      if (status === 403) refused++;
      expect([id, OF_GRANTS.exec(text)?.[0]]).toEqual([id, undefined]);
    }
    expect(refused).toBeGreaterThan(5);
  });
});

describe('the recorded output of the commands', () => {
  const folder = new URL('../cli/goldens/', import.meta.url);
  /** What names the commands of `orch operator` or the roles that there are, to whom asks for them. */
  const NAMES_THEM = ['help-group.txt', 'operator-add-bad-role.txt', 'usage-group-alone.txt'];

  it('has none of these words', () => {
    const found = readdirSync(folder).filter((name) => OF_GRANTS.test(readFileSync(new URL(name, folder), 'utf8')));
    expect(found).toEqual(NAMES_THEM);
  });
});
