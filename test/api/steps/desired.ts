/** Modules, assignments, secrets: what agents are to have. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { until } from '../../support/orch.js';
import type { World } from '../world.js';

export interface ModuleText {
  readonly name: string;
  readonly supports?: string;
  /** Below `resources:`, a line each. */
  readonly resources?: readonly string[];
}

export async function upload(world: World, { name, supports = 'platform: linux', resources = [] }: ModuleText) {
  const list = resources.length === 0 ? ' []' : ['', ...resources.map((line) => `  ${line}`)].join('\n');
  const content = `name: ${name}\nsupports: [{${supports}}]\nresources:${list}\n`;
  await world.gives('uploadModule', { body: { name, content } }, 201);
}

/** A module with a file that is not stored. */
export const LACKING = [{ name: 'sent', content: 'name: sent\nresources: []\n', files: { 'x.bin': 'ab'.repeat(32) } }];

export async function modules(world: World): Promise<void> {
  await upload(world, { name: 'spare', resources: ['- resource: {directory-unix: {path: /srv}}'] });
  await upload(world, { name: 'spare' });
  const spare = { params: { name: 'spare' } };
  await world.refuses('uploadModule', { body: { name: 'bad', content: 'name: [' } }, 'invalid_module');
  const other = { name: 'spare', content: 'name: spare # other\nsupports: [{platform: linux}]\nresources: []\n' };
  await world.refuses('uploadModule', { body: { ...other, replaces: 'none' } }, 'precondition_failed');
  await world.gives('listModules', {}, 200);
  await world.gives('getModule', { ...spare, query: { revision: '1' } }, 200);
  await world.refuses('getModule', { ...spare, query: { revision: '0' } }, 'invalid_query');
  await world.gives('listModuleRevisions', spare, 200);
  await world.gives('getModuleReach', spare, 200);
  const selector = 'tag.site=nowhere';
  await world.gives('createAssignment', { body: { name: 'spares', modules: ['spare'], selector } }, 201);
  await world.refuses('removeModule', spare, 'module_in_use');
  await world.gives('removeAssignment', { params: { name: 'spares' } }, 204);
  await world.gives('removeModule', spare, 204);
  for (const id of ['getModule', 'listModuleRevisions', 'removeModule']) {
    await world.refuses(id, spare, 'module_not_found');
  }
}

export async function files(world: World): Promise<void> {
  const bytes = Buffer.from('hello');
  const params = { sha256: createHash('sha256').update(bytes).digest('hex') };
  const part = { size: bytes.length, offset: 0, data: bytes.toString('base64') };
  const body = {
    name: 'hello',
    content:
      'name: hello\nsupports: [{platform: linux}]\nresources: [{file-unix: {path: /srv/x, source: hello.bin}}]\n',
    files: { 'hello.bin': params.sha256 },
  };
  await world.refuses('uploadModule', { body }, 'file_not_found');
  await world.refuses('getFile', { params }, 'file_not_found');
  await world.refuses('uploadFile', { params: { sha256: 'none' }, body: part }, 'invalid_path');
  await world.refuses('uploadFile', { params, body: { ...part, data: 'aGVs' } }, 'invalid_body');
  await world.refuses('uploadFile', { params: { sha256: 'ab'.repeat(32) }, body: part }, 'file_damaged');
  await world.gives('uploadFile', { params, body: part }, 200);
  await world.gives('getFile', { params, query: { offset: '1' } }, 200);
  await world.gives('uploadModule', { body }, 201);
  await world.gives('removeModule', { params: { name: 'hello' } }, 204);
}

export async function values(world: World): Promise<void> {
  const content = 'name: tuned\nsupports: [{platform: linux}]\ninputs: {workers: {type: integer, default: 1}}\n';
  await world.gives('uploadModule', { body: { name: 'tuned', content } }, 201);
  const set = (workers: number, rank = '') => ({
    name: 'prod',
    content: `${rank}values: [{when: {}, set: {tuned: {workers: ${workers}}}}]\n`,
  });
  const prod = { params: { name: 'prod' } };
  for (const id of ['getValueSet', 'listValueSetRevisions', 'removeValueSet'])
    await world.refuses(id, prod, 'values_not_found');
  await world.refuses('previewValueSet', { ...prod, body: { content: null } }, 'values_not_found');
  const upload = (change: object, code: string) =>
    world.refuses('uploadValueSet', { body: { ...set(2), ...change } }, code);
  const preview = (name: string, text: string, code: string) =>
    world.refuses('previewValueSet', { params: { name }, body: { content: text } }, code);
  await upload({ name: 'a b' }, 'invalid_name');
  await preview('a b', set(2).content, 'invalid_name');
  await upload({ content: 'values: 3' }, 'invalid_values');
  await preview('prod', 'values: [{when: {}, set: {tuned: {wrkers: 2}}}]', 'invalid_values');
  await world.gives('previewValueSet', { ...prod, body: { content: set(2).content } }, 200);
  await world.gives('uploadValueSet', { body: set(2, 'rank: [tag.role]\n') }, 201);
  await upload({ replaces: 'none' }, 'precondition_failed');
  await upload({ ...set(2, 'rank: [tag.env]\n'), name: 'other' }, 'values_conflict');
  await preview('other', set(2, 'rank: [tag.env]\n').content, 'values_conflict');
  await world.gives('listValueSets', {}, 200);
  await world.gives('getValueSet', { ...prod, query: { revision: '1' } }, 200);
  await world.refuses('getValueSet', { ...prod, query: { revision: '2' } }, 'values_not_found');
  const params = { node_id: world.agents.connected };
  const { modules } = await world.gives('explainValues', { params, query: { module: 'tuned' } }, 200);
  expect(modules).toMatchObject([{ module: 'tuned', inputs: [{ name: 'workers', value: 2, is_default: false }] }]);
  await world.gives('explainValues', { params }, 200);
  await world.refuses('explainValues', { params, query: { module: 'none' } }, 'module_not_found');
  await world.refuses('explainValues', { params: { node_id: 'f'.repeat(32) } }, 'agent_not_found');
  await world.refuses('explainValues', { params: { node_id: world.agents.pending } }, 'agent_not_approved');
  const body = { name: 'tuned', modules: ['tuned'], selector: 'tag.site=nowhere', values: { tuned: { workers: 3 } } };
  const wrong = { tuned: { workers: 'x' } };
  await world.refuses('createAssignment', { body: { ...body, values: wrong } }, 'invalid_values');
  await world.gives('createAssignment', { body }, 201);
  const tuned = { params: { name: 'tuned' } };
  await world.refuses('updateAssignment', { ...tuned, body: { values: wrong } }, 'invalid_values');
  await world.gives('removeAssignment', tuned, 204);
  await world.gives('removeValueSet', prod, 204);
  const { revisions } = await world.gives('listValueSetRevisions', prod, 200);
  expect(revisions).toMatchObject([{ revision: 2, sha256: null }, { revision: 1 }]);
  await world.refuses('getValueSet', { ...prod, query: { revision: '2' } }, 'values_not_found');
  await world.gives('removeModule', tuned, 204);
}

export async function assignments(world: World): Promise<void> {
  await upload(world, { name: 'base' });
  const params = { name: 'all' };
  const body = { name: 'all', modules: ['base'], selector: 'platform=linux' };
  const create = (change: object, code: string) =>
    world.refuses('createAssignment', { body: { ...body, ...change } }, code);
  await create({ name: 'a b' }, 'invalid_name');
  await create({ selector: '=' }, 'invalid_selector');
  await create({ modules: ['none'] }, 'unknown_module');
  await world.gives('createAssignment', { body }, 201);
  await create({}, 'assignment_exists');
  await world.gives('listAssignments', {}, 200);
  await world.gives('getAssignment', { params }, 200);
  await world.gives('updateAssignment', { params, body: { description: 'every machine' } }, 200);
  await world.gives('resumeAssignment', { params }, 200);
  await world.refuses('updateAssignment', { params, body: { selector: '=' } }, 'invalid_selector');
  await world.refuses('updateAssignment', { params, body: { modules: ['none'] } }, 'unknown_module');
  const now = Math.floor(Date.now() / 1000);
  const permit = {
    reason: 'a night',
    starts_at: now + 3600,
    ends_at: now + 7200,
    kind: 'permit',
    assignments: ['all'],
  };
  const { id } = await world.gives('createMaintenanceWindow', { body: permit }, 201);
  await world.refuses('applyAssignment', { params, body: {} }, 'outside_window');
  const agent = { node_id: world.agents.connected };
  await world.refuses('applyAgent', { params: agent, body: { modules: [] } }, 'outside_window');
  await world.gives('removeMaintenanceWindow', { params: { id } }, 204);
  await rollouts(world);
  await world.gives('removeAssignment', { params }, 204);
  for (const id of [
    'getAssignment',
    'updateAssignment',
    'resumeAssignment',
    'removeAssignment',
    'planAssignment',
    'applyAssignment',
  ]) {
    await world.refuses(id, { params, ...(id.startsWith('update') ? { body: {} } : {}) }, 'assignment_not_found');
  }
}

/** Over one agent that is connected and one that is away. */
async function rollouts(world: World): Promise<void> {
  const params = { name: 'all' };
  for (const id of ['planAssignment', 'applyAssignment']) {
    await world.gives(id, { params }, 200);
    await world.gives(id, { params, headers: { accept: 'application/x-ndjson' } }, 200);
    await world.refuses(id, { params, body: { modules: ['none'] } }, 'module_not_found');
  }
  const sources = [{ name: 'sent', content: 'name: sent\nsupports: [{platform: linux}]\nresources: []\n' }];
  await world.gives('planAssignment', { params, body: { sources } }, 200);
  const broken = [{ name: 'sent', content: 'name: sent\nx: 1\n' }];
  for (const id of ['planAssignment', 'applyAssignment']) {
    await world.refuses(id, { params, body: { sources: broken } }, 'invalid_module');
    await world.refuses(id, { params, body: { values: { set: ['none:a=1'] } } }, 'invalid_values');
    await world.refuses(id, { params, body: { sources: LACKING } }, 'file_not_found');
  }
  await selections(world);
  const started = await world.gives('applyAssignment', { params, body: { modules: ['slow'], wait: false } }, 202);
  const rollout = { params: { rollout_id: started.rollout_id } };
  await world.gives('cancelRollout', rollout, 202);
  for (const id of ['getRollout', 'pauseRollout', 'resumeRollout', 'cancelRollout', 'retryRollout']) {
    await world.refuses(id, { params: { rollout_id: 'none' } }, 'rollout_not_found');
  }
  await until(async () => (await world.call('cancelRollout', rollout)).status === 409, 'the rollout is over');
  await controls(world);
}

/** Looks at a rollout, and pauses, resumes, cancels and retries it. */
async function controls(world: World): Promise<void> {
  const body = { agents: [world.agents.connected], modules: ['slow'], wait: false };
  const { rollout_id } = await world.gives('applyRollout', { body }, 202);
  const rollout = { params: { rollout_id } };
  await world.gives('pauseRollout', { ...rollout, body: { reason: 'lunch' } }, 200);
  await world.refuses('retryRollout', rollout, 'rollout_in_progress');
  await world.gives('listRollouts', { query: { state: 'paused', limit: '1' } }, 200);
  await world.gives('resumeRollout', rollout, 200);
  await world.gives('getRollout', { ...rollout, headers: { accept: 'application/x-ndjson' } }, 200);
  await world.gives('getRollout', rollout, 200);
  for (const id of ['pauseRollout', 'resumeRollout', 'cancelRollout', 'retryRollout']) {
    await world.refuses(id, rollout, 'rollout_finished');
  }
  const away = { agents: [world.agents.away], modules: ['slow'], max_failures: 1 };
  const { rollout_id: missed } = await world.gives('applyRollout', { body: away }, 200);
  await world.gives('retryRollout', { params: { rollout_id: missed } }, 200);
}

/** Rollouts over a selector and over named agents. */
async function selections(world: World): Promise<void> {
  const over = { selector: 'platform=linux' };
  const named = { agents: [world.agents.connected, world.agents.away] };
  for (const id of ['planRollout', 'applyRollout']) {
    await world.gives(id, { body: { ...over, modules: ['base'] } }, 200);
    await world.gives(id, { body: { ...named, progress: true }, headers: { accept: 'application/x-ndjson' } }, 200);
    await world.refuses(id, { body: {} }, 'invalid_body');
    await world.refuses(id, { body: { ...over, ...named } }, 'invalid_body');
    await world.refuses(id, { body: { selector: '=' } }, 'invalid_selector');
    await world.refuses(id, { body: { agents: ['f'.repeat(32)] } }, 'agent_not_found');
    await world.refuses(id, { body: { ...over, modules: ['none'] } }, 'module_not_found');
  }
  const broken = [{ name: 'sent', content: 'name: sent\nx: 1\n' }];
  for (const id of ['planRollout', 'applyRollout']) {
    await world.refuses(id, { body: { ...over, sources: broken } }, 'invalid_module');
    await world.refuses(id, { body: { ...over, values: { set: ['none:a=1'] } } }, 'invalid_values');
    await world.refuses(id, { body: { ...over, sources: LACKING } }, 'file_not_found');
  }
  await upload(world, {
    name: 'slow',
    resources: ['- id: nap', '  resource: {script: {program: sh, apply: sleep 2}}'],
  });
  const { rollout_id } = await world.gives('applyRollout', { body: { ...over, modules: ['slow'], wait: false } }, 202);
  const rollout = { params: { rollout_id } };
  await world.gives('cancelRollout', rollout, 202);
  await until(async () => (await world.call('cancelRollout', rollout)).status === 409, 'the rollout is over');
}

export async function secrets(world: World): Promise<void> {
  const create = (change: object, code: string) =>
    world.refuses('createSecret', { body: { name: 'TOKEN', value: 'a', ...change } }, code);
  const params = { name: 'TOKEN' };
  await create({ name: 'a b' }, 'invalid_name');
  await create({ restriction: { tags: '=' } }, 'invalid_selector');
  await create({ restriction: { node_ids: ['none'] } }, 'invalid_restriction');
  await world.gives('createSecret', { body: { name: 'TOKEN', value: 'a', restriction: { tags: 'tag.a=b' } } }, 201);
  await create({}, 'secret_exists');
  await world.gives('listSecrets', {}, 200);
  await world.gives('getSecret', { params }, 200);
  await world.gives('getSecretUsage', { params }, 200);
  await world.gives('updateSecret', { params, body: { value: 'b', restriction: null } }, 200);
  const update = (restriction: object, code: string) =>
    world.refuses('updateSecret', { params, body: { restriction } }, code);
  await update({ tags: '=' }, 'invalid_selector');
  await update({ node_ids: ['none'] }, 'invalid_restriction');
  await world.gives('removeSecret', { params }, 204);
  for (const id of ['getSecret', 'getSecretUsage', 'updateSecret', 'removeSecret']) {
    await world.refuses(id, { params, ...(id.startsWith('update') ? { body: {} } : {}) }, 'secret_not_found');
  }
}
