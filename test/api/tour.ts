/** Calls each operation once with success, on an orchestrator and an agent as an operator would have them. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { proveRotation } from '../../src/identity/key-rotation.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';
import type { Recorder } from './recorder.js';
import { newPerson, type World } from './world.js';

const FILE = Buffer.from('hello');
const now = () => Math.floor(Date.now() / 1000);

/** Goes through every operation; `recorder` calls it. */
export async function tour(world: World, recorder: Recorder): Promise<void> {
  const take = recorder.record.bind(recorder);
  await documents(take);
  await people(world, take);
  const { web, spare } = await fleet(world, take);
  await modules(world, take, web);
  await runs(world, take, web, spare);
  await drift(world, take, web);
  await rollouts(world, take, web, spare);
  await surroundings(world, take);
  await terminals(world, take, web);
  await audit(take);
  await farewell(take, web, spare);
}

type Take = Recorder['record'];

async function documents(take: Take): Promise<void> {
  for (const id of ['getStatus', 'getOpenApi', 'getApiPage', 'getModuleSchema']) await take(id, { as: null }, 200);
}

async function people(world: World, take: Take): Promise<void> {
  const { key, publicKey } = newPerson();
  const body = { public_key: publicKey, username: 'mara', role: 'operator' };
  const { operator_id } = await take('addOperator', { body }, 201);
  const { nonce } = await take('createChallenge', { as: null, body: { public_key: publicKey } }, 200);
  const signature = signNonce(key, Buffer.from(nonce, 'hex'));
  const { token } = await take('verifyChallenge', { as: null, body: { public_key: publicKey, signature } }, 200);
  await take('getSession', { token }, 200);
  await take('endSession', { token }, 204);
  await take('listOperators', { query: { include_removed: 'true' } }, 200);
  await take('getOperator', { params: { operator_id } }, 200);
  const next = newPerson();
  const proof = proveRotation(publicKeyOfKeyObject(key), next.key);
  const rotation = { token: await world.login({ key, publicKey }), body: { public_key: next.publicKey, proof } };
  const renewed = await take('rotateOperatorKey', rotation, 200);
  const params = { operator_id: renewed.operator_id };
  const grants = [{ rights: ['deployer', 'tag:env'], selector: 'env=dev' }];
  await take('setOperatorGrants', { params, body: { grants } }, 200);
  await take('getOperatorRights', { params }, 200);
  await take('removeOperator', { params }, 204);
}

async function fleet(world: World, take: Take): Promise<{ readonly web: string; readonly spare: string }> {
  await take('discover', { body: { target: '127.0.0.1:9' } }, 200);
  const token = await take('createEnrolmentToken', { body: { ttl_secs: 3600, uses: 5, tags: { role: 'web' } } }, 201);
  await take('listEnrolmentTokens', {}, 200);
  await take('revokeEnrolmentToken', { params: { id: token.id } }, 204);
  const config = world.sandbox.path('agent.yaml');
  const forwards =
    "forward: {targets: ['localhost:5432']}\nssh_proxy: {targets: ['localhost:22']}\ncopy: {read: [/var/log]}\n";
  writeFileSync(config, `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\n${forwards}`, { mode: 0o600 });
  const { nodeId: web } = await world.startAgent('web', { ORCH_AGENT_CONFIG: config });
  const { nodeId: spare, agent } = await world.startAgent('spare');
  const node = { params: { node_id: web } };
  await take('setAgentStatus', { ...node, body: { status: 'approved', name: 'web-1' } }, 200);
  await take('renameAgent', { ...node, body: { name: 'web-01' } }, 200);
  await world.gives('setAgentStatus', { params: { node_id: spare }, body: { status: 'approved', name: 'db-01' } }, 200);
  for (const node_id of [web, spare]) {
    await until(async () => (await world.call('getAgent', { params: { node_id } })).json.connected, 'it is connected');
  }
  const { attributes } = await world.gives('getAgent', node, 200);
  await take('keepMachine', { ...node, body: { hostname: attributes.hostname, address: '127.0.0.1' } }, 200);
  await take('getAgentAttributes', node, 200);
  await take('refreshAgentFacts', node, 200);
  await take('getAgentFacts', node, 200);
  const packages = world.sandbox.path('serve', 'packages');
  mkdirSync(packages, { recursive: true });
  writeFileSync(join(packages, `orch-1.2.3-linux-${process.arch}.tar.gz`), gzipSync('a release'));
  const upgraded = { params: { node_id: spare } };
  await take('upgradeAgent', { ...upgraded, body: { version: '1.2.3' } }, 202);
  await take('getAgentUpgrade', upgraded, 200);
  await agent.stop();
  await until(async () => !(await world.call('getAgent', upgraded)).json.connected, 'it is gone');
  await take('replaceTags', { ...node, body: { tags: { role: 'web', site: 'lab' } } }, 204);
  const key = { ...node.params, key: 'site' };
  await take('setTag', { params: key, body: { value: 'office' } }, 204);
  await take('listTags', {}, 200);
  await take('removeTag', { params: key }, 204);
  await until(async () => (await world.call('getLatestMetrics', node)).status === 200, 'it was measured');
  await take('getMetrics', { ...node, query: { limit: '5' } }, 200);
  await take('getLatestMetrics', node, 200);
  await take('listLatestMetrics', {}, 200);
  await take('getOwnMetrics', {}, 200);
  return { web, spare };
}

const motd = (path: string) => `name: motd
supports: [{platform: linux}]
inputs:
  greeting: {type: string, default: hello}
resources:
  - file-unix: {path: ${path}, content: "\${{ inputs.greeting }}\\n", mode: "0644"}
  - id: hello
    script: {program: sh, apply: echo hello}
`;

const VALUES = 'values:\n  - when: {tag.role: web}\n    set: {motd: {greeting: welcome}}\n';

async function modules(world: World, take: Take, web: string): Promise<void> {
  const file = { sha256: createHash('sha256').update(FILE).digest('hex') };
  await take('uploadFile', { params: file, body: { size: 5, offset: 0, data: FILE.toString('base64') } }, 200);
  const resource = '  - file-unix: {path: /srv/logo.txt, source: files/logo.txt}\n';
  const content = `name: logo\nsupports: [{platform: linux}]\nresources:\n${resource}`;
  const logo = { name: 'logo', content, files: { 'files/logo.txt': file.sha256 } };
  await world.gives('uploadModule', { body: logo }, 201);
  await take('getFile', { params: file }, 200);
  const name = { params: { name: 'motd' } };
  await take('uploadModule', { body: { name: 'motd', content: motd(world.sandbox.path('site')) } }, 201);
  await take('listModules', {}, 200);
  await take('getModule', name, 200);
  await take('listModuleRevisions', name, 200);
  const assignment = { params: { name: 'web' } };
  const body = { name: 'web', modules: ['motd'], selector: 'tag.role=web', description: 'web servers', mode: 'manual' };
  await take('createAssignment', { body }, 201);
  await take('listAssignments', {}, 200);
  await take('getAssignment', assignment, 200);
  await take('updateAssignment', { ...assignment, body: { description: 'all web servers' } }, 200);
  await take('resumeAssignment', assignment, 200);
  await take('getModuleReach', name, 200);
  const values = { params: { name: 'prod' } };
  await take('previewValueSet', { ...values, body: { content: VALUES } }, 200);
  await take('uploadValueSet', { body: { name: 'prod', content: VALUES } }, 201);
  await take('listValueSets', {}, 200);
  await take('getValueSet', values, 200);
  await take('listValueSetRevisions', values, 200);
  await take('explainValues', { params: { node_id: web }, query: { module: 'motd' } }, 200);
}

async function runs(world: World, take: Take, web: string, spare: string): Promise<void> {
  const node = { params: { node_id: web } };
  await take('planAssignment', { params: { name: 'web' }, body: { concurrency: 2 } }, 200);
  const { plan_hash } = await take('planAgent', { ...node, body: { modules: ['motd'] } }, 200);
  const applied = await take('applyAgent', { ...node, body: { modules: ['motd'], expect: plan_hash } }, 200);
  await take('applyAssignment', { params: { name: 'web' }, body: { concurrency: 2, max_failures: 1 } }, 200);
  const operation = { params: { operation_id: applied.operation_id } };
  await take('getState', node, 200);
  await take('getTrial', node, 200);
  await take('listAgentOperations', { ...node, query: { limit: '2' } }, 200);
  await take('listOperations', { query: { limit: '2', filter: 'tag.role=web' } }, 200);
  await take('getOperation', operation, 200);
  await take('getOperationOutput', { params: { ...node.params, ...operation.params } }, 200);
  await take('verifyAgent', node, 200);
  await take('planRollout', { body: { selector: 'tag.role=web' } }, 200);
  await take('applyRollout', { body: { selector: 'tag.role=web', canary: 1 } }, 200);
  const missed = await world.gives('applyRollout', { body: { agents: [spare], modules: ['motd'] } }, 200);
  await take('retryRollout', { params: { rollout_id: missed.rollout_id } }, 200);
}

async function drift(world: World, take: Take, web: string): Promise<void> {
  const node = { params: { node_id: web } };
  writeFileSync(world.sandbox.path('site'), 'changed by hand\n');
  const { drift_id } = await take('checkDrift', node, 200);
  await take('listAgentDrift', { ...node, query: { limit: '2', status: 'drifted' } }, 200);
  await take('getLatestDrift', node, 200);
  await take('listDrift', { query: { limit: '2' } }, 200);
  await take('getDrift', { params: { drift_id } }, 200);
  const resources = [{ module: 'motd', kind: 'file-unix', identity: world.sandbox.path('site') }];
  const snooze = { resources, ends_at: now() + 3600, reason: 'until the new site is online' };
  const { snooze_id } = await take('snoozeDrift', { ...node, body: snooze }, 201);
  await take('listDriftExcuses', { query: { node: web } }, 200);
  await take('endDriftSnooze', { params: { snooze_id } }, 204);
  await world.gives('checkDrift', node, 200);
  const { drift_id: latest } = await world.gives('getLatestDrift', node, 200);
  await take('acceptDrift', { ...node, body: { drift_id: latest, resources, reason: 'as wanted' } }, 200);
}

/** Cancels an operation and a rollout while a script sleeps. */
async function rollouts(world: World, take: Take, web: string, spare: string): Promise<void> {
  const slow =
    'name: slow\nsupports: [{platform: linux}]\nresources:\n  - id: s\n    script: {program: sh, apply: sleep 30}\n';
  await world.gives('uploadModule', { body: { name: 'slow', content: slow } }, 201);
  const node = { params: { node_id: web } };
  const running = await world.gives('applyAgent', { ...node, body: { modules: ['slow'], wait: false } }, 202);
  const operation = { params: { operation_id: running.operation_id } };
  await take('cancelOperation', operation, 202);
  const isOver = async () => (await world.call('getOperation', operation)).json.finished_at !== null;
  await until(isOver, 'the operation is over');
  const body = { agents: [web, spare], modules: ['slow'], concurrency: 1, wait: false };
  const { rollout_id } = await world.gives('applyRollout', { body }, 202);
  const rollout = { params: { rollout_id } };
  await take('pauseRollout', { ...rollout, body: { reason: 'lunch' } }, 200);
  await take('resumeRollout', rollout, 200);
  await take('listRollouts', { query: { limit: '2' } }, 200);
  await take('getRollout', rollout, 200);
  await take('cancelRollout', rollout, 202);
}

async function surroundings(world: World, take: Take): Promise<void> {
  const secret = { params: { name: 'DB_PASSWORD' } };
  const restriction = { tags: 'tag.role=web' };
  const body = { name: 'DB_PASSWORD', value: 'correct horse', description: 'the database of the shop', restriction };
  await take('createSecret', { body }, 201);
  await take('listSecrets', {}, 200);
  await take('getSecret', secret, 200);
  await take('getSecretUsage', secret, 200);
  await take('updateSecret', { ...secret, body: { value: 'battery staple' } }, 200);
  await take('removeSecret', secret, 204);
  const receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(200).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/orch`;
  const channel = { channel_type: 'webhook', name: 'ops', config: { url, secret: 'whsec_c2VjcmV0' } };
  const { id } = await take('createChannel', { body: channel }, 201);
  const params = { id };
  await take('listChannels', {}, 200);
  await take('getChannel', { params }, 200);
  await take('updateChannel', { params, body: { events: ['drift.*'], min_severity: 'info' } }, 200);
  await take('testChannel', { params }, 200);
  await take('listDeliveries', { params, query: { limit: '2' } }, 200);
  await take('removeChannel', { params }, 204);
  receiver.close();
  const { notifications } = await take('listNotifications', { query: { limit: '2' } }, 200);
  await take('readNotification', { params: { id: notifications[0].id } }, 204);
  await take('readAllNotifications', {}, 204);
  const hours = { starts_at: now() + 3600, ends_at: now() + 7200 };
  const window = await take('createMaintenanceWindow', { body: { reason: 'new disks', ...hours } }, 201);
  const which = { params: { id: window.id } };
  await take('listMaintenanceWindows', {}, 200);
  await take('getMaintenanceWindow', which, 200);
  await take('updateMaintenanceWindow', { ...which, body: { ends_at: now() + 10_800 } }, 200);
  await take('removeMaintenanceWindow', which, 204);
  await world.logIn();
}

async function terminals(world: World, take: Take, web: string): Promise<void> {
  const node = { params: { node_id: web } };
  await take('openForward', { ...node, body: { targets: [{ host: 'localhost', port: 5432 }] } }, 200);
  await take('openSshProxy', { ...node, body: { port: 22 } }, 200);
  await take('openCopy', { ...node, body: { direction: 'read', paths: ['/var/log/syslog'] } }, 200);
  await take('execOnAgent', { ...node, body: { command: ['uptime'], timeout_secs: 60 } }, 200);
  const { session_id } = await take('openTerminal', { ...node, query: { cols: '80', rows: '24' } }, 200);
  const params = { session_id };
  await take('listTerminals', { query: { kind: 'shell', limit: '2' } }, 200);
  await take('getTerminal', { params }, 200);
  await take('attachTerminal', { params, body: { mode: 'write' } }, 200);
  await take('closeTerminal', { params }, 204);
  await until(async () => (await world.call('getTranscript', { params })).status === 200, 'it is recorded');
  await take('getTranscript', { params }, 200);
  await take('searchTerminals', { query: { pattern: 'error', ignore_case: 'true' } }, 200);
}

async function audit(take: Take): Promise<void> {
  await take('listAuditEvents', { query: { category: 'agent', limit: '2' } }, 200);
  await take('getAuditRetention', {}, 200);
  await take('setAuditRetention', { body: { retention_days: 90 } }, 200);
  await take('verifyAudit', {}, 200);
  await take('pruneAuditEvents', { query: { before: '2020-01-01T00:00:00Z' } }, 200);
  const query = { category: 'agent', after: '2020-01-01T00:00:00Z' };
  await take('streamEvents', { query, hangsUp: true }, 200);
}

async function farewell(take: Take, web: string, spare: string): Promise<void> {
  await take('getAgent', { params: { node_id: web } }, 200);
  await take('getFleet', {}, 200);
  await take('listAgents', { query: { status: 'approved', limit: '1' } }, 200);
  await take('removeAssignment', { params: { name: 'web' } }, 204);
  await take('removeValueSet', { params: { name: 'prod' } }, 204);
  await take('removeModule', { params: { name: 'motd' } }, 204);
  const rejection = { params: { node_id: spare }, body: { status: 'rejected' } };
  await take('setAgentStatus', rejection, 200);
  await take('removeAgent', { params: { node_id: spare } }, 204);
}
