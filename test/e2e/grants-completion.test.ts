/** What the shell offers to an operator with grants, for each kind of value, while machines come under the grants and leave them. */
import { rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { jsonFrame } from '../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import { World } from '../api/world.js';
import { runOrch } from '../support/cli.js';
import { until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';

const world = new World();
const now = () => Math.floor(Date.now() / 1000);
let dora = '';

/** A machine, and every text that tells of it. */
interface Machine {
  readonly name: string;
  readonly nodeId: string;
  readonly rolloutId: string;
  readonly operationId: string;
  readonly driftId: string;
  readonly snoozeId: string;
  readonly notificationId: string;
  readonly sessionId: string;
  /** Value of its tag `place`. */
  readonly place: string;
}
let dev: Machine;
let prod: Machine;

/** Returns the words that the shell offers after these. */
async function offered(token: string, words: readonly string[]): Promise<readonly string[]> {
  const env = {
    HOME: world.sandbox.root,
    ORCH_URL: world.base,
    ORCH_TLS_FINGERPRINT: world.ready.tls_fingerprint,
    ORCH_TOKEN: token,
    ORCH_NO_STATE: '1',
  };
  const { status, stdout, stderr } = await runOrch(['__complete', '--', ...words], { env });
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split('\n').filter((line) => line !== '');
}

/** The words before the one to complete, and what of a machine is offered there. */
const OF_MACHINES: readonly (readonly [
  string,
  (machine: Machine) => readonly string[],
  (machine: Machine) => string,
])[] = [
  ['a machine', () => ['agents', 'show', ''], ({ name }) => name],
  ['a value of a tag', () => ['agents', 'tag', 'x', 'place='], ({ place }) => `place=${place}`],
  ['a value in a selector', () => ['agents', 'list', '-l', 'place='], ({ place }) => `place=${place}`],
  ['an operation', () => ['ops', 'show', ''], ({ operationId }) => operationId],
  ['an operation of a machine', ({ name }) => ['apply', name, '--to', ''], ({ operationId }) => operationId],
  ['a rollout', () => ['rollouts', 'show', ''], ({ rolloutId }) => rolloutId],
  ['a drift check', () => ['drift', 'show', ''], ({ driftId }) => driftId],
  ['a snooze', () => ['drift', 'unsnooze', ''], ({ snoozeId }) => snoozeId],
  ['a notification', () => ['notifications', 'read', ''], ({ notificationId }) => notificationId],
  ['a session', () => ['term', 'close', ''], ({ sessionId }) => sessionId],
];

/** Starts a machine on which something of each kind has happened, and whose session stays open. */
async function start(name: string): Promise<Machine> {
  const place = `place-of-${name}`;
  const config = world.sandbox.path(`${name}.yaml`);
  writeFileSync(config, `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\n`, { mode: 0o600 });
  const { nodeId } = await world.startAgent(name, { ORCH_AGENT_CONFIG: config });
  const params = { node_id: nodeId };
  await world.gives('setAgentStatus', { params, body: { status: 'approved', name } }, 200);
  await until(async () => (await world.gives('getAgent', { params }, 200)).connected, `${name} is connected`);
  await world.gives('replaceTags', { params, body: { tags: { env: name, place } } }, 204);
  const file = world.sandbox.path(`file-of-${name}`);
  const content = `name: of-${name}\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: ${file}, content: one}}\n`;
  const sources = [{ name: `of-${name}`, content }];
  const body = { agents: [nodeId], modules: [`of-${name}`], sources, wait: false };
  const { rollout_id: rolloutId } = await world.gives('applyRollout', { body }, 202);
  await until(
    async () => (await world.gives('getRollout', { params: { rollout_id: rolloutId } }, 200)).finished_at !== null,
    `${name} has its module`,
  );
  const { operations } = await world.gives('listAgentOperations', { params }, 200);
  rmSync(file);
  const { drift_id: driftId } = await world.gives('checkDrift', { params }, 200);
  const snooze = { ends_at: now() + 3600, reason: `of ${name}` };
  const { snooze_id: snoozeId } = await world.gives('snoozeDrift', { params, body: snooze }, 201);
  const { notifications } = await world.gives('listNotifications', {}, 200);
  const { id } = notifications.find(({ summary }: { summary: string }) => summary.includes(name)) ?? {};
  const { session_id: sessionId, ws_url: url } = await world.gives('openTerminal', { params }, 200);
  await new Promise((resolve, reject) => {
    const socket = new WebSocket(url, TERMINAL_SUBPROTOCOL, { rejectUnauthorized: false, perMessageDeflate: false });
    socket.on('error', reject);
    socket.on('open', () => socket.send(jsonFrame('hello', { version: 1, resume: null })));
    socket.once('message', resolve);
  });
  const operationId = operations[0].operation_id;
  return { name, nodeId, place, rolloutId, operationId, driftId, snoozeId, notificationId: id, sessionId };
}

const setEnv = (nodeId: string, value: string) =>
  world.gives('setTag', { params: { node_id: nodeId, key: 'env' }, body: { value } }, 204);

/** True if a line of completions tells of the machine. */
const tellsOf = (machine: Machine) => (line: string) => Object.values(machine).some((text) => line.includes(text));

beforeAll(async () => {
  await world.start();
  dev = await start('dev-box');
  prod = await start('prod-box');
  dora = await world.addLimited('dora', [{ rights: ['operator'], selector: 'env=dev-box' }]);
});

afterAll(() => world.sandbox.dispose());

it.each(OF_MACHINES)('%s of others is not offered', async (_, words, offeredOf) => {
  const all = await offered(world.tokenOf('admin'), words(prod));
  expect(all).toContainEqual(expect.stringMatching(new RegExp(`^${offeredOf(prod)}\\b`)));
  const own = await offered(dora, words(dev));
  expect(own).toContainEqual(expect.stringMatching(new RegExp(`^${offeredOf(dev)}\\b`)));
  expect(own.filter(tellsOf(prod))).toEqual([]);
  expect((await offered(dora, words(prod))).filter(tellsOf(prod))).toEqual([]);
});

it('offers a machine that comes, and nothing of its past', async () => {
  await setEnv(prod.nodeId, 'dev-box');
  const seen = new Map<string, readonly string[]>();
  for (const [what, words] of OF_MACHINES) {
    seen.set(what, (await offered(dora, words(prod))).filter(tellsOf(prod)));
  }
  expect(seen.get('a machine')).toHaveLength(1);
  expect(seen.get('a value of a tag')).toHaveLength(1);
  for (const what of ['an operation', 'an operation of a machine', 'a rollout', 'a drift check', 'a notification']) {
    expect([what, seen.get(what)]).toEqual([what, []]);
  }
});

it('offers nothing of a machine that has left', async () => {
  await setEnv(dev.nodeId, 'away');
  for (const [what, words] of OF_MACHINES) {
    expect([what, (await offered(dora, words(dev))).filter(tellsOf(dev))]).toEqual([what, []]);
  }
});

it('offers nothing to an operator whose grants match no machine', async () => {
  const nobody = await world.addLimited('nobody', [{ rights: ['operator'], selector: 'env=none' }]);
  for (const [what, words] of OF_MACHINES) {
    const told = (await offered(nobody, words(dev))).filter((line) => tellsOf(dev)(line) || tellsOf(prod)(line));
    expect([what, told]).toEqual([what, []]);
  }
});
