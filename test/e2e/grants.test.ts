/** Operators with grants, and everything they try on machines that are not theirs, with real processes. */
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proveRotation } from '../../src/identity/key-rotation.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { type Call, newPerson, World } from '../api/world.js';
import { until } from '../support/orch.js';

const world = new World();
/** Deployer of dev machines, who may set the tag env there. */
let dora = '';
let dev = '';
let prod = '';

const moduleText = (name: string, content: string) =>
  `name: ${name}\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: "${world.sandbox.path(`${name}.txt`)}", content: "${content}\\n"}}\n`;

const codeOf = async (id: string, call: Call): Promise<string> => {
  const { status, json } = await world.call(id, { token: dora, ...call });
  return status < 300 ? String(status) : `${status} ${json?.code}`;
};

const node = (nodeId: string) => ({ params: { node_id: nodeId } });

/** What an operation answers to dora. */
const textFor = async (id: string, call: Call = {}): Promise<string> =>
  (await world.call(id, { token: dora, ...call })).text;

/** The number of machines that `getFleet` counts. */
const counted = async (call: Call = {}): Promise<number> => {
  const { standings } = JSON.parse(await textFor('getFleet', call));
  return Object.values<number>(standings).reduce((sum, count) => sum + count, 0);
};

/** Opens the event stream as dora. Resolves when it has begun. */
const openEvents = () =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${dora}` };
    const options = { headers, agent: false, rejectUnauthorized: false };
    request(`${world.base}/api/v1/events`, options, resolve).on('error', reject).end();
  });

const publish = (name: string, content: string, call: Call = {}) =>
  codeOf('uploadModule', { body: { name, content: moduleText(name, content) }, ...call });

const tag = (nodeId: string, key: string, value: string, token?: string) =>
  codeOf('setTag', { params: { node_id: nodeId, key }, body: { value }, ...(token !== undefined && { token }) });

const DEV = [
  {
    rights: ['deployer', 'exec', 'terminal', 'tag', 'modules', 'assign', 'accept-drift', 'tag:env'],
    selector: 'env=dev',
  },
];

beforeAll(async () => {
  await world.start();
  await world.startAgents();
  ({ connected: dev, away: prod } = world.agents);
  const admin = world.tokenOf('admin');
  expect(await tag(dev, 'env', 'dev', admin)).toBe('204');
  expect(await tag(prod, 'env', 'prod', admin)).toBe('204');
  await world.gives('uploadModule', { body: { name: 'base', content: moduleText('base', 'one') } }, 201);
  await world.gives('createAssignment', { body: { name: 'all', modules: ['base'], selector: '*' } }, 201);
  dora = await world.addLimited('dora', DEV);
});

afterAll(() => world.sandbox.dispose());

describe('an operator with grants', () => {
  it('sees the machines of the grants, and no trace of others', async () => {
    for (const id of [
      'listAgents',
      'listTags',
      'listOperations',
      'listDrift',
      'listLatestMetrics',
      'listDriftExcuses',
    ]) {
      const text = await textFor(id);
      expect(text).not.toContain(prod);
      expect(text).not.toContain('"away"');
    }
    expect(JSON.parse(await textFor('listAgents')).map((agent: { node_id: string }) => agent.node_id)).toEqual([dev]);
    expect(JSON.parse(await textFor('listTags')).tags).toEqual({ env: ['dev'] });
    expect(await counted()).toBe(1);
    expect(await counted({ token: world.tokenOf('viewer') })).toBe(2);
    const { agents } = JSON.parse(await textFor('getAssignment', { params: { name: 'all' } }));
    expect(agents.map((agent: { node_id: string }) => agent.node_id)).toEqual([dev]);
    expect(await textFor('getModuleReach', { params: { name: 'base' } })).not.toContain(prod);
    const { events } = JSON.parse(await textFor('listAuditEvents', { query: { limit: '500' } }));
    expect(JSON.stringify(events)).not.toContain(prod);
  });

  it('is answered alike for a machine that there is not and for one of others', async () => {
    const reads = ['getAgent', 'getAgentAttributes', 'getAgentFacts', 'getMetrics', 'getState', 'listAgentDrift'];
    const acts = ['planAgent', 'applyAgent', 'checkDrift', 'verifyAgent', 'openTerminal', 'removeAgent', 'keepMachine'];
    const stranger = 'f'.repeat(32);
    for (const id of [...reads, ...acts]) {
      const hidden = await world.call(id, { token: dora, ...node(prod) });
      const unknown = await world.call(id, { token: dora, ...node(stranger) });
      if (hidden.json?.code === 'not_granted') {
        expect(unknown.json?.code).toBe('not_granted');
        continue;
      }
      expect([id, hidden.status, hidden.json?.code]).toEqual([id, 404, 'agent_not_found']);
      const without = (text: string, nodeId: string) =>
        text.replaceAll(nodeId, 'NODE').replace(/"request_id":"\w+"/, '');
      expect(without(hidden.text, prod)).toBe(without(unknown.text, stranger));
    }
    expect(await codeOf('listAgents', { query: { cursor: prod } })).toBe(
      await codeOf('listAgents', { query: { cursor: stranger } }),
    );
  });

  it('plans and applies on the own machine', async () => {
    expect(await codeOf('planAgent', { ...node(dev), body: { modules: [] } })).toBe('200');
    expect(await codeOf('applyAgent', { ...node(dev), body: { modules: [] } })).toBe('200');
    expect(await codeOf('applyRollout', { body: { selector: '*', modules: [] } })).toBe('200');
    expect(await codeOf('applyAssignment', { params: { name: 'all' }, body: {} })).toBe('200');
    const { rollouts, total } = JSON.parse(await textFor('listRollouts'));
    expect([total, rollouts.every((one: { counts: { agents: number } }) => one.counts.agents === 1)]).toEqual([
      2,
      true,
    ]);
    expect(await codeOf('applyRollout', { body: { agents: [dev, prod], modules: [] } })).toBe('404 agent_not_found');
    const { events } = JSON.parse(await textFor('listAuditEvents', { query: { agent: dev } }));
    expect(events.length).toBeGreaterThan(0);
  });

  it('does not see a rollout on machines of others as well', async () => {
    const { rollout_id } = await world.gives(
      'applyRollout',
      { body: { selector: '*', modules: [], wait: false, waves: [1], soak_secs: 600 } },
      202,
    );
    const params = { rollout_id };
    const open = async (call: Call = {}) => {
      const { rollouts } = JSON.parse(await textFor('getFleet', call));
      return rollouts.running + rollouts.paused + rollouts.halted;
    };
    expect(await open({ token: world.tokenOf('viewer') })).toBe(1);
    expect(await open()).toBe(0);
    for (const id of ['getRollout', 'pauseRollout', 'cancelRollout', 'resumeRollout', 'retryRollout']) {
      expect([id, await codeOf(id, { params, ...(id === 'pauseRollout' && { body: {} }) })]).toEqual([
        id,
        '404 rollout_not_found',
      ]);
    }
    await world.gives('cancelRollout', { params }, 202);
    await until(async () => {
      const { finished_at } = await world.gives('getRollout', { params }, 200);
      return finished_at !== null;
    }, 'the rollout has ended');
    expect(JSON.parse(await textFor('listRollouts')).total).toBe(2);
  });
});

describe('rule 2: tags', () => {
  it('cannot bring a machine of others in, nor an own one where the right to the key does not reach', async () => {
    expect(await tag(prod, 'env', 'dev')).toBe('404 agent_not_found');
    expect(await tag(dev, 'env', 'prod')).toBe('403 not_granted');
    expect(await codeOf('removeTag', { params: { node_id: dev, key: 'env' } })).toBe('403 not_granted');
    expect(await codeOf('replaceTags', { ...node(dev), body: { tags: {} } })).toBe('403 not_granted');
    expect(await tag(dev, 'role', 'web')).toBe('204');
    expect(await codeOf('removeTag', { params: { node_id: dev, key: 'role' } })).toBe('204');
  });

  it('protects keys that a secret or a window selects by', async () => {
    const restriction = { tags: 'vault=yes' };
    await world.gives('createSecret', { body: { name: 'pin', value: '1', restriction } }, 201);
    expect(await tag(dev, 'vault', 'yes')).toBe('403 not_granted');
  });
});

describe('rule 3: content for a scope', () => {
  it('refuses a revision, a removal or a change that could reach machines of others', async () => {
    expect(await publish('base', 'evil')).toBe('403 not_granted');
    expect(await codeOf('removeModule', { params: { name: 'base' } })).toBe('403 not_granted');
    const all = { params: { name: 'all' } };
    expect(await codeOf('updateAssignment', { ...all, body: { description: 'mine' } })).toBe('403 not_granted');
    expect(await codeOf('removeAssignment', all)).toBe('403 not_granted');
    expect(await codeOf('resumeAssignment', all)).toBe('403 not_granted');
  });

  it('refuses to take an assignment away from machines of others, and to bring one to them', async () => {
    const all = { params: { name: 'all' }, body: { selector: 'env=dev' } };
    expect(await codeOf('updateAssignment', all)).toBe('403 not_granted');
    await world.gives('createAssignment', { body: { name: 'devs', modules: ['base'], selector: 'env=dev' } }, 201);
    const devs = { params: { name: 'devs' } };
    expect(await codeOf('updateAssignment', { ...devs, body: { selector: '*' } })).toBe('403 not_granted');
    expect(await codeOf('updateAssignment', { ...devs, body: { description: 'of dev' } })).toBe('200');
    await world.gives('removeAssignment', devs, 204);
  });

  it('refuses a revision for a scope that is empty today, also by an apply that would publish it', async () => {
    const body = { name: 'later', modules: ['later'], selector: 'env=stage' };
    await world.gives('uploadModule', { body: { name: 'later', content: moduleText('later', 'one') } }, 201);
    await world.gives('createAssignment', { body }, 201);
    expect(await publish('later', 'evil')).toBe('403 not_granted');
    const { json: current } = await world.call('getModule', { params: { name: 'later' } });
    const content = moduleText('later', 'evil');
    const sources = [{ name: 'later', content, replaces: current.sha256 }];
    const result = await world.call('applyAgent', { token: dora, ...node(dev), body: { modules: [], sources } });
    expect([result.status, result.json?.sources?.[0]?.status]).toEqual([200, 'on_trial']);
    const after = await world.gives('getModule', { params: { name: 'later' } }, 200);
    expect(after.sha256).toBe(current.sha256);
    expect(await codeOf('applyAgent', { ...node(dev), body: { modules: [], allow_removals: 9 } })).toBe('200');
  });

  it('refuses a revision for which an open rollout waits on machines of others', async () => {
    await world.gives('uploadModule', { body: { name: 'tool', content: moduleText('tool', 'one') } }, 201);
    const body = { agents: [prod], modules: ['tool'], when_online_secs: 600, wait: false };
    const { rollout_id } = await world.gives('applyRollout', { body }, 202);
    expect(await publish('tool', 'evil')).toBe('403 not_granted');
    expect(JSON.parse(await textFor('getModuleReach', { params: { name: 'tool' } })).may_store).toBe(false);
    const { sha256: replaces } = await world.gives('getModule', { params: { name: 'tool' } }, 200);
    const sources = [{ name: 'tool', content: moduleText('tool', 'evil'), replaces }];
    const applied = await world.call('applyAgent', { token: dora, ...node(dev), body: { modules: [], sources } });
    expect(applied.json?.sources?.[0]?.status).toBe('on_trial');
    expect(await codeOf('applyAgent', { ...node(dev), body: { modules: [], allow_removals: 9 } })).toBe('200');
    await world.gives('cancelRollout', { params: { rollout_id } }, 202);
    expect(JSON.parse(await textFor('getModuleReach', { params: { name: 'tool' } })).may_store).toBeUndefined();
    expect(await publish('tool', 'two')).toBe('201');
  });

  it('keeps an own assignment inside the grants, whatever its selector says and machines become', async () => {
    expect(await publish('mine', 'one')).toBe('201');
    const body = { name: 'mine', modules: ['mine'], selector: '*' };
    expect(await codeOf('createAssignment', { body })).toBe('201');
    const shown = await world.gives('getAssignment', { params: { name: 'mine' } }, 200);
    expect([shown.scope, shown.agents.map((agent: { node_id: string }) => agent.node_id)]).toEqual([
      ['env=dev'],
      [dev],
    ]);
    expect(await codeOf('updateAssignment', { params: { name: 'mine' }, body: { selector: 'env' } })).toBe('200');
    expect(await publish('mine', 'two')).toBe('201');
    expect(await codeOf('removeAssignment', { params: { name: 'mine' } })).toBe('204');
  });
});

describe('a machine whose record was removed', () => {
  it('keeps the past of that record from operators with grants', async () => {
    const rest = await world.addLimited('rest', [{ rights: ['viewer'], selector: 'env!=prod' }]);
    const first = await world.startAgent('returning');
    const params = { node_id: first.nodeId };
    await world.gives('setAgentStatus', { params, body: { status: 'approved', name: 'returning' } }, 200);
    expect(await tag(first.nodeId, 'env', 'prod', world.tokenOf('admin'))).toBe('204');
    await world.gives('setAgentStatus', { params, body: { status: 'rejected' } }, 200);
    await world.gives('removeAgent', { params }, 204);
    await first.agent.stop();
    const again = await world.startAgent('returning');
    expect(again.nodeId).toBe(first.nodeId);
    await world.gives('getAgent', { token: rest, params }, 200);
    const { events } = await world.gives('listAuditEvents', { token: rest, query: { limit: '200' } }, 200);
    const types = events.flatMap(({ event_type: type, target }: { event_type: string; target: { id: string } }) =>
      target.id === first.nodeId ? [type] : [],
    );
    expect(types).toContain('agent.pending');
    for (const type of ['agent.approved', 'agent.tags_changed', 'agent.removed']) expect(types).not.toContain(type);
    await again.agent.stop();
  });
});

describe('an assignment whose maker left', () => {
  it('matches as before, and is listed for review', async () => {
    const rene = newPerson();
    const body = { name: 'renes', modules: ['base'], selector: '*' };
    await world.gives('addOperator', { body: { public_key: rene.publicKey, username: 'rene', grants: DEV } }, 201);
    await world.gives('createAssignment', { token: await world.login(rene), body }, 201);
    // A new key is the same person.
    const renewed = newPerson();
    const proof = proveRotation(parsePublicKey(rene.publicKey), renewed.key);
    const rotation = { token: await world.login(rene), body: { public_key: renewed.publicKey, proof } };
    await world.gives('rotateOperatorKey', rotation, 200);
    const token = { token: await world.login(renewed) };
    const { operator } = await world.gives('getSession', token, 200);
    const params = { operator_id: operator.operator_id };
    const looked = async () => {
      const listed = await world.gives('listAssignments', {}, 200);
      const marked = listed.filter(({ review }: { review?: string }) => review !== undefined);
      const { review, agents } = await world.gives('getAssignment', { params: { name: 'renes' } }, 200);
      return [marked.map(({ name }: { name: string }) => name), review, agents.length];
    };
    expect(await looked()).toEqual([[], undefined, 1]);
    const grants = [{ rights: ['deployer', 'assign'], selector: 'env=dev, role=web' }];
    await world.gives('setOperatorGrants', { params, body: { grants } }, 200);
    expect(await looked()).toEqual([['renes'], 'maker_lost_rights', 1]);
    await world.gives('removeOperator', { params }, 204);
    expect(await looked()).toEqual([['renes'], 'maker_left', 1]);
    await world.gives('removeAssignment', { params: { name: 'renes' } }, 204);
  });
});

describe('rule 1: plans', () => {
  it('without the right to apply take only what is assigned', async () => {
    const paul = await world.addLimited('paul', [{ rights: ['planner'], selector: 'env=dev' }]);
    const plan = (body: object) => codeOf('planAgent', { ...node(dev), token: paul, body });
    expect(await plan({ modules: [] })).toBe('200');
    expect(await plan({ modules: ['base'] })).toBe('200');
    expect(await plan({ modules: ['mine'] })).toBe('403 not_granted');
    const sources = [{ name: 'x', content: moduleText('x', 'one') }];
    expect(await plan({ modules: [], sources })).toBe('403 not_granted');
    const { operations } = await world.gives('listAgentOperations', node(dev), 200);
    expect(await plan({ modules: [], to: operations[0].operation_id })).toBe('403 not_granted');
    expect(await codeOf('planRollout', { token: paul, body: { selector: '*', sources } })).toBe('403 not_granted');
    expect(await codeOf('planRollout', { token: paul, body: { selector: '*', modules: [] } })).toBe('200');
    expect(await codeOf('applyAgent', { ...node(dev), token: paul, body: { modules: [] } })).toBe('403 not_granted');
  });
});

describe('rule 4: nobody gives more than they hold', () => {
  it('leaves operators, tokens, channels and windows to admins', async () => {
    const { publicKey } = newPerson();
    expect(await codeOf('addOperator', { body: { public_key: publicKey, username: 'eve' } })).toBe(
      '403 admin_required',
    );
    for (const id of ['setOperatorGrants', 'createChannel', 'createMaintenanceWindow']) {
      expect(await codeOf(id, {})).toBe('403 admin_required');
    }
    for (const id of ['createEnrolmentToken', 'listEnrolmentTokens', 'revokeEnrolmentToken', 'discover']) {
      expect([id, await codeOf(id, {})]).toEqual([id, '403 not_granted']);
    }
  });

  it('keeps the grants when a key is rotated', async () => {
    const operators = await world.gives('listOperators', {}, 200);
    const before = operators.find(({ username }: { username: string }) => username === 'dora');
    expect(before.grants).toEqual(DEV);
  });
});

describe('rule 7: a token has no more rights than its maker', () => {
  const ENROLS = [{ rights: ['operator', 'enroll', 'tag:env'], selector: 'env=dev' }];
  const body = { tags: { env: 'dev' } };
  let emma = '';
  let emmasId = '';
  let own = '';

  beforeAll(async () => {
    emma = await world.addLimited('emma', ENROLS);
    const operators = await world.gives('listOperators', {}, 200);
    emmasId = operators.find(({ username }: { username: string }) => username === 'emma').operator_id;
  });

  const make = (more: object, headers: Record<string, string> = {}) =>
    codeOf('createEnrolmentToken', { token: emma, body: { ...body, ...more }, headers });
  const listed = async (token: string) =>
    (await world.gives('listEnrolmentTokens', { token }, 200)).map(({ id }: { id: string }) => id);

  it('when it is made', async () => {
    ({ id: own } = await world.gives('createEnrolmentToken', { token: emma, body }, 201));
    expect(await make({ tags: { env: 'prod' } })).toBe('403 not_granted');
    expect(await make({ tags: {} })).toBe('403 not_granted');
    expect(await make({ tags: { env: 'dev', vault: 'yes' } })).toBe('403 not_granted');
    expect(await make({ auto_approve: true })).toBe('201');
    const shown = await world.gives('getOperatorRights', { params: { operator_id: emmasId } }, 200);
    expect(shown.rights).toContain('enroll');
  });

  it('nor does it show those of others', async () => {
    const { id } = await world.gives('createEnrolmentToken', { body }, 201);
    expect(await listed(emma)).toHaveLength(2);
    expect(await listed(world.tokenOf('admin'))).toHaveLength(3);
    const revoke = (one: string) => world.call('revokeEnrolmentToken', { token: emma, params: { id: one } });
    const unknown = `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`;
    const without = (text: string, one: string) => text.replaceAll(one, 'TOKEN').replace(/"request_id":"\w+"/, '');
    const answer = await revoke(id);
    expect(answer.status).toBe(404);
    expect(without(answer.text, id)).toBe(without((await revoke(unknown)).text, unknown));
    expect((await revoke(own)).status).toBe(204);
    expect(await listed(emma)).toHaveLength(1);
  });

  it('when the request is repeated after the right has gone, which ends the tokens for good', async () => {
    const headers = { 'idempotency-key': 'token' };
    expect(await make({}, headers)).toBe('201');
    expect(await make({}, headers)).toBe('409 idempotency_conflict');
    const params = { operator_id: emmasId };
    const grants = [{ rights: ['operator', 'tag:env'], selector: 'env=dev' }];
    await world.gives('setOperatorGrants', { params, body: { grants } }, 200);
    expect(await make({}, headers)).toBe('403 not_granted');
    await world.gives('setOperatorGrants', { params, body: { grants: ENROLS } }, 200);
    expect(await listed(emma)).toEqual([]);
  });
});

describe('rule 6: what is open, and what is repeated', () => {
  it('ends a stream when the right to it ends, and no answer is given again to somebody with other rights', async () => {
    const operators = await world.gives('listOperators', {}, 200);
    const { operator_id } = operators.find(({ username }: { username: string }) => username === 'dora');
    const params = { operator_id };
    const headers = { 'idempotency-key': 'again' };
    const call = { body: { selector: '*', modules: [], wait: false }, headers };
    expect(await codeOf('applyRollout', call)).toBe('202');
    const events = await openEvents();
    await world.gives(
      'setOperatorGrants',
      { params, body: { grants: [{ rights: ['read'], selector: 'env=dev' }] } },
      200,
    );
    expect(await textOf(events)).toContain('what you may do has changed');
    expect(await codeOf('applyRollout', call)).toBe('403 not_granted');
    await world.gives('setOperatorGrants', { params, body: { grants: DEV } }, 200);
    expect(await codeOf('applyRollout', call)).toBe('409 idempotency_conflict');
  });
});

describe('a machine that is renamed', () => {
  const rename = (nodeId: string, name: string, token?: string) =>
    codeOf('renameAgent', { ...node(nodeId), body: { name }, ...(token !== undefined && { token }) });

  it('stays inside the grants with its history, and its earlier name brings no other machine in', async () => {
    const admin = world.tokenOf('admin');
    const nora = await world.addLimited('nora', [{ rights: ['planner'], selector: `node_id=${dev}` }]);
    await world.gives(
      'createAssignment',
      { token: dora, body: { name: 'hers', modules: ['base'], selector: '*' } },
      201,
    );
    const { json: window } = await world.call('createMaintenanceWindow', {
      body: { reason: 'disks', starts_at: 4e9, ends_at: 4e9 + 60, kind: 'pause', selector: 'tag.env=dev' },
    });
    const history = async (token: string) => {
      const { operations, total } = await world.gives('listAgentOperations', { ...node(dev), token }, 200);
      return { total, ids: operations.map((one: { operation_id: string }) => one.operation_id) };
    };
    const audit = async (token: string) => {
      const query = { agent: dev, limit: '500' };
      const { events } = await world.gives('listAuditEvents', { query, token }, 200);
      return events.map((one: { id: string }) => one.id);
    };
    const before = [await history(dora), await history(nora), await audit(dora), await audit(nora)];
    expect(await rename(dev, 'mine-now')).toBe('403 not_granted');
    expect(await rename(prod, 'mine-now')).toBe('403 not_granted');
    expect([await rename(dev, 'front-01', admin), await rename(prod, 'web-01', admin)]).toEqual(['200', '200']);
    for (const token of [dora, nora]) {
      const agents = await world.gives('listAgents', { token }, 200);
      expect(agents).toMatchObject([{ node_id: dev, name: 'front-01' }]);
      expect(await world.gives('listAgents', { query: { name: 'web-01' }, token }, 200)).toEqual([]);
      expect(await codeOf('getAgent', { ...node(prod), token })).toBe('404 agent_not_found');
      expect(await codeOf('listAuditEvents', { query: { agent: prod }, token })).toBe(
        await codeOf('listAuditEvents', { query: { agent: 'f'.repeat(32) }, token }),
      );
      const { events } = await world.gives('listAuditEvents', { query: { agent: 'web-01', limit: '500' }, token }, 200);
      expect(JSON.stringify(events)).not.toContain(prod);
    }
    expect([await history(dora), await history(nora)]).toEqual(before.slice(0, 2));
    // The new events come first: the change of the name is one.
    expect((await audit(dora)).slice(-before[2].length)).toEqual(before[2]);
    expect((await audit(nora)).slice(-before[3].length)).toEqual(before[3]);
    const { agents, scope } = await world.gives('getAssignment', { params: { name: 'hers' } }, 200);
    expect([scope, agents.map((one: { node_id: string }) => one.node_id)]).toEqual([['env=dev'], [dev]]);
    const found = await world.gives('getMaintenanceWindow', { params: { id: window.id } }, 200);
    expect(found.selector).toBe('tag.env=dev');
    await world.gives('removeMaintenanceWindow', { params: { id: window.id } }, 204);
    expect(await codeOf('planAgent', { ...node(dev), body: { modules: [] } })).toBe('200');
    expect(await codeOf('removeAssignment', { params: { name: 'hers' } })).toBe('204');
    expect([await rename(prod, 'away', admin), await rename(dev, 'web-01', admin)]).toEqual(['200', '200']);
  });
});

describe('rule 5: the past of a machine that moved', () => {
  it('is not shown before the grants reached the machine', async () => {
    const admin = world.tokenOf('admin');
    const pia = await world.addLimited('pia', [{ rights: ['planner', 'watch'], selector: 'env=lab' }]);
    expect(await codeOf('listAgentOperations', { ...node(dev), token: pia })).toBe('404 agent_not_found');
    const known = await world.gives('listAgentOperations', node(dev), 200);
    expect(await tag(dev, 'env', 'lab', admin)).toBe('204');
    const page = JSON.parse(await textFor('listAgentOperations', { ...node(dev), token: pia }));
    expect(page).toMatchObject({ operations: [], total: 0 });
    const params = { operation_id: known.operations[0].operation_id };
    expect(await codeOf('getOperation', { params, token: pia })).toBe('404 operation_not_found');
    expect(JSON.parse(await textFor('listRollouts', { token: pia })).total).toBe(0);
    const { events } = JSON.parse(await textFor('listAuditEvents', { token: pia }));
    expect(events.map((event: { event_type: string }) => event.event_type)).not.toContain('state.apply_started');
    // Nor to those whom it has left, not even what they did there themselves.
    expect(await textFor('listAuditEvents', { query: { limit: '500' } })).not.toContain(dev);
    expect(await textFor('listNotifications')).not.toContain('web-01');
    expect(await codeOf('getOperation', { params })).toBe('404 operation_not_found');
    expect(await codeOf('getAgent', node(dev))).toBe('404 agent_not_found');
  });
});
