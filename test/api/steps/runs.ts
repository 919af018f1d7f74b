/** Plans, applies, drift checks and operations of the agent that is connected. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../../support/orch.js';
import type { Call, World } from '../world.js';
import { LACKING, upload } from './desired.js';

const LINES = { accept: 'application/x-ndjson' };
const ABSENT_OPERATION = '01JQ2Z6T0V5X8Y4M3N7P9R1S2T';
const ABSENT = { params: { node_id: 'f'.repeat(32) } };

const script = (id: string, apply: string) => [`- id: ${id}`, `  resource: {script: {program: sh, apply: '${apply}'}}`];

/** Modules that cannot be resolved for the agent, by the code that tells why. */
async function uploadWrong(world: World): Promise<Readonly<Record<string, readonly string[]>>> {
  const variant = (when: string, path: string) =>
    `    - {when: {${when}}, resource: {directory-unix: {path: ${path}}}}`;
  const directory = (path: string, mode: string) => [`- resource: {directory-unix: {path: ${path}, mode: "${mode}"}}`];
  await upload(world, { name: 'foreign', supports: 'platform: windows' });
  await upload(world, { name: 'one', resources: directory('/srv/x', '0755') });
  await upload(world, { name: 'other', resources: directory('/srv/x', '0700') });
  await upload(world, { name: 'lacking', resources: ['- variants:', variant('platform: macos', '/srv/a')] });
  await upload(world, { name: 'secretive', resources: script('say', `echo \${{ secrets.NONE }}`) });
  await upload(world, { name: 'expressive', resources: script('say', `echo \${{ tags.none }}`) });
  const inputs = (name: string, input: string) =>
    world.gives(
      'uploadModule',
      { body: { name, content: `name: ${name}\nsupports: [{platform: linux}]\ninputs: {size: ${input}}\n` } },
      201,
    );
  await inputs('hungry', '{type: integer}');
  await inputs('mistaken', '{type: integer, default: 1}');
  const entry = (size: number) => `{when: {}, set: {mistaken: {size: ${size}}}}`;
  const content = `values: [${entry(1)}, ${entry(2)}]\n`;
  await world.gives('uploadValueSet', { body: { name: 'wrong', content } }, 201);
  return {
    module_not_found: ['none'],
    module_not_supported: ['foreign'],
    module_conflict: ['one', 'other'],
    variant_missing: ['lacking'],
    secret_unavailable: ['secretive'],
    expression_error: ['expressive'],
    input_missing: ['hungry'],
    input_invalid: ['mistaken'],
  };
}

export async function refusedRuns(world: World): Promise<void> {
  const { connected, away, pending } = world.agents;
  const wrong = await uploadWrong(world);
  for (const id of ['planAgent', 'applyAgent']) {
    for (const [code, modules] of Object.entries(wrong)) {
      await world.refuses(id, { params: { node_id: connected }, body: { modules } }, code);
    }
  }
  for (const id of ['planAgent', 'applyAgent']) {
    const params = { node_id: connected };
    await world.refuses(id, { params, body: { modules: [], to: ABSENT_OPERATION } }, 'operation_not_found');
    await world.refuses(id, { params, body: { modules: ['one'], to: ABSENT_OPERATION } }, 'bad_request');
    const values = { set: ['hungry:size=1'] };
    await world.refuses(id, { params, body: { modules: [], to: ABSENT_OPERATION, values } }, 'bad_request');
    await world.refuses(id, { params, body: { modules: ['one'], values } }, 'invalid_values');
  }
  await world.refuses('checkDrift', { params: { node_id: connected } }, 'no_snapshot');
  await world.refuses('verifyAgent', { params: { node_id: connected } }, 'no_snapshot');
  for (const id of ['planAgent', 'applyAgent', 'checkDrift', 'verifyAgent']) {
    const body = id === 'checkDrift' || id === 'verifyAgent' ? {} : { body: { modules: [] } };
    await world.refuses(id, { ...ABSENT, ...body }, 'agent_not_found');
    await world.refuses(id, { params: { node_id: pending }, ...body }, 'agent_not_approved');
    if (id !== 'verifyAgent') await world.refuses(id, { params: { node_id: away }, ...body }, 'agent_not_connected');
  }
}

export async function runs(world: World): Promise<string> {
  const params = { node_id: world.agents.connected };
  const path = world.sandbox.path('site');
  await upload(world, {
    name: 'site',
    resources: [`- resource: {directory-unix: {path: ${path}}}`, ...script('hello', 'echo hello')],
  });
  const body = { modules: ['site'] };
  const plan = await world.gives('planAgent', { params, body }, 200);
  await world.gives('planAgent', { params, body, headers: LINES }, 200);
  const sources = [{ name: 'sent', content: 'name: sent\nsupports: [{platform: linux}]\nresources: []\n' }];
  await world.gives('planAgent', { params, body: { ...body, sources } }, 200);
  const broken = [{ name: 'sent', content: 'name: sent\nx: 1\n' }];
  await world.refuses('planAgent', { params, body: { ...body, sources: broken } }, 'invalid_module');
  await world.refuses('applyAgent', { params, body: { ...body, sources: broken } }, 'invalid_module');
  for (const id of ['planAgent', 'applyAgent']) {
    await world.refuses(id, { params, body: { ...body, sources: LACKING } }, 'file_not_found');
  }
  const applied = await world.gives('applyAgent', { params, body: { ...body, expect: plan.plan_hash } }, 200);
  await world.refuses(
    'applyAgent',
    { params, body: { modules: [], expect: plan.plan_hash, allow_removals: 9 } },
    'plan_stale',
  );
  await world.gives('applyAgent', { params, body, headers: LINES }, 200);
  const back = { modules: [], to: applied.operation_id };
  const planned = await world.gives('planAgent', { params, body: back }, 200);
  if (planned.restores !== applied.operation_id) throw new Error(`not back: ${JSON.stringify(planned)}`);
  await world.gives('applyAgent', { params, body: { ...back, expect: planned.plan_hash } }, 200);
  await world.gives('applyAgent', { params, body }, 200);
  await world.refuses('applyAgent', { params, body: { modules: [] } }, 'removal_guard');
  await world.gives('applyAgent', { params, body: { ...body, wait: false } }, 202);
  await until(async () => (await world.call('checkDrift', { params })).status === 200, 'the agent was checked');
  return applied.operation_id;
}

/** Drift that does not count: the directory of the module is changed by hand. */
export async function driftExcuses(world: World): Promise<void> {
  const params = { node_id: world.agents.connected };
  const path = world.sandbox.path('site');
  const resources = [{ module: 'site', kind: 'directory-unix', identity: path }];
  const ends_at = 3600 + Math.floor(Date.now() / 1000);
  const snooze = { resources, ends_at, reason: 'the API tests' };
  await world.refuses('snoozeDrift', { ...ABSENT, body: snooze }, 'agent_not_found');
  const strange = [{ ...resources[0], identity: '/strange' }];
  await world.refuses('snoozeDrift', { params, body: { ...snooze, resources: strange } }, 'resource_not_found');
  const { snooze_id } = await world.gives('snoozeDrift', { params, body: snooze }, 201);
  await world.gives('listDriftExcuses', { query: { node: params.node_id } }, 200);
  await world.refuses('listDriftExcuses', { query: { node: 'f'.repeat(32) } }, 'agent_not_found');
  await world.gives('endDriftSnooze', { params: { snooze_id } }, 204);
  await world.refuses('endDriftSnooze', { params: { snooze_id } }, 'snooze_not_found');
  rmSync(path, { recursive: true });
  const { drift_id } = await world.gives('checkDrift', { params }, 200);
  const accept = { drift_id, resources };
  await world.refuses('acceptDrift', { ...ABSENT, body: accept }, 'agent_not_found');
  await world.refuses('acceptDrift', { params, body: { ...accept, drift_id: ABSENT_OPERATION } }, 'drift_not_found');
  await world.refuses('acceptDrift', { params, body: { ...accept, resources: strange } }, 'drift_unacceptable');
  await world.gives('acceptDrift', { params, body: accept }, 200);
  const checked = await world.gives('checkDrift', { params }, 200);
  if (checked.accepted !== 1) throw new Error(`not accepted: ${JSON.stringify(checked)}`);
}

/** Another agent cannot go back to an operation that is not its own. */
export async function foreignOperation(world: World, to: string): Promise<void> {
  const { nodeId, agent } = await world.startAgent('stranger');
  const node = { params: { node_id: nodeId } };
  try {
    await world.gives('setAgentStatus', { ...node, body: { status: 'approved', name: 'stranger' } }, 200);
    await until(async () => (await world.call('getAgent', node)).json.connected, 'the other agent is connected');
    for (const id of ['planAgent', 'applyAgent']) {
      // The connection is there before the agent has said what it holds.
      const request = { ...node, body: { modules: [], to } };
      await until(
        async () => (await world.call(id, request)).json.code !== 'agent_not_connected',
        'the agent is ready',
      );
      await world.refuses(id, request, 'operation_unsuitable');
    }
    // Otherwise it may dial again before it is removed, and hear of it.
    await agent.stop();
    await world.gives('setAgentStatus', { ...node, body: { status: 'rejected' } }, 200);
    await world.gives('removeAgent', node, 204);
  } finally {
    await agent.stop();
  }
}

/** Health checks run again, with a secret and without it, and make way for an apply. */
export async function verified(world: World): Promise<void> {
  const params = { node_id: world.agents.connected };
  const mark = world.sandbox.path('verifying');
  const path = world.sandbox.path('checked');
  const token = { params: { name: 'CHECK' } };
  await world.gives('createSecret', { body: { name: 'CHECK', value: 'hunter2hunter2' } }, 201);
  const run = `touch ${mark}; test -e ${path}/slow && sleep 60; echo \${{ secrets.CHECK }}`;
  const content = [
    'name: checked',
    'supports: [{platform: linux}]',
    `resources: [{resource: {directory-unix: {path: ${path}}}}]`,
    'verify:',
    `- {name: slow, within: 2m, timeout: 2m, script: {program: sh, run: "${run}"}}`,
  ];
  await world.gives('uploadModule', { body: { name: 'checked', content: `${content.join('\n')}\n` } }, 201);
  const body = { modules: ['site', 'checked'], allow_removals: 9 };
  const applied = await world.gives('applyAgent', { params, body }, 200);
  expect(applied).toMatchObject({ status: 'succeeded', checks: [{ name: 'slow', status: 'healthy' }] });
  const { operation_id } = applied;
  expect(await world.gives('verifyAgent', { params }, 200)).toMatchObject({ operation_id, ok: true });
  writeFileSync(`${path}/slow`, '');
  rmSync(mark);
  const cancelled = world.refuses('verifyAgent', { params }, 'cancelled');
  await until(() => existsSync(mark), 'the check runs');
  const apply = await world.gives('applyAgent', { params, body: { ...body, wait: false } }, 202);
  await cancelled;
  await world.refuses('verifyAgent', { params }, 'operation_in_progress');
  await world.gives('cancelOperation', { params: { operation_id: apply.operation_id } }, 202);
  rmSync(`${path}/slow`);
  await until(async () => (await world.call('verifyAgent', { params })).status === 200, 'the apply has ended');
  await world.gives('removeSecret', token, 204);
  await world.refuses('verifyAgent', { params }, 'secret_unavailable');
}

/** An apply keeps everything else away, and ends a plan that is under way. */
export async function busyAgent(world: World): Promise<void> {
  const params = { node_id: world.agents.connected };
  const mark = world.sandbox.path('busy-agent');
  const check = `touch ${mark}; sleep 3; exit 1`;
  const slow = ['- id: look', `  resource: {script: {program: sh, check: ${check}, apply: sleep 2}}`];
  await upload(world, { name: 'busy', resources: slow });
  const body = { modules: ['site', 'busy'] };
  const cancelled = world.refuses('planAgent', { params, body }, 'cancelled');
  await until(() => existsSync(mark), 'the plan looks at the machine');
  const { operation_id } = await world.gives('applyAgent', { params, body: { ...body, wait: false } }, 202);
  await cancelled;
  await world.refuses('planAgent', { params, body }, 'operation_in_progress');
  await world.refuses('applyAgent', { params, body }, 'operation_in_progress');
  await world.refuses('checkDrift', { params }, 'operation_in_progress');
  const operation = { params: { operation_id } };
  await world.gives('cancelOperation', operation, 202);
  await world.gives('getOperation', { ...operation, headers: LINES }, 200);
  await world.refuses('cancelOperation', operation, 'operation_finished');
  await world.refuses('cancelOperation', { params: { operation_id: 'none' } }, 'operation_not_found');
}

export async function records(world: World, operationId: string): Promise<void> {
  const node = { params: { node_id: world.agents.connected } };
  const operation = { params: { operation_id: operationId } };
  const output: Call = { params: { ...node.params, ...operation.params } };
  for (const id of ['listAgentDrift', 'getLatestDrift', 'getState', 'getTrial', 'listAgentOperations']) {
    await world.gives(id, node, 200);
    await world.refuses(id, ABSENT, 'agent_not_found');
  }
  const { records } = await world.gives('listDrift', {}, 200);
  await world.gives('getDrift', { params: { drift_id: records[0].drift_id } }, 200);
  await world.refuses('getDrift', {}, 'drift_not_found');
  await world.gives('listOperations', {}, 200);
  for (const id of ['listOperations', 'listDrift']) {
    const tagged = await world.gives(id, { query: { filter: 'no_such_tag' } }, 200);
    if ((tagged.operations ?? tagged.records).length > 0) throw new Error(`${id} does not heed its selector`);
    await world.refuses(id, { query: { filter: 'a=(' } }, 'invalid_selector');
  }
  await world.gives('getOperation', operation, 200);
  await world.refuses('getOperation', {}, 'operation_not_found');
  const captured = await world.gives('getOperationOutput', output, 200);
  if (captured.output['site/hello']?.stdout !== 'hello\n')
    throw new Error(`not the output: ${JSON.stringify(captured)}`);
  await world.refuses(
    'getOperationOutput',
    { params: { ...node.params, operation_id: 'none' } },
    'operation_not_found',
  );
  await world.refuses('getOperationOutput', { params: { ...ABSENT.params, ...operation.params } }, 'agent_not_found');
}
