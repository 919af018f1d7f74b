/** What the shell offers to an operator with grants, for each kind of value, while machines come under the grants and leave them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { World } from '../api/world.js';
import { runOrch } from '../support/cli.js';
import { type Machine, machineWithHistory, tellsOf } from '../support/machine-with-history.js';

const world = new World();
let dora = '';

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

const setEnv = (nodeId: string, value: string) =>
  world.gives('setTag', { params: { node_id: nodeId, key: 'env' }, body: { value } }, 204);

beforeAll(async () => {
  await world.start();
  dev = await machineWithHistory(world, 'dev-box');
  prod = await machineWithHistory(world, 'prod-box');
  dora = await world.addLimited('dora', [{ rights: ['operator'], selector: 'env=dev-box' }]);
});

afterAll(() => world.sandbox.dispose());

it.each(OF_MACHINES)('%s of others is not offered', async (_, words, offeredOf) => {
  const all = await offered(world.tokenOf('admin'), words(prod));
  expect(all).toContainEqual(expect.stringMatching(new RegExp(`^${offeredOf(prod)}\\b`)));
  const own = await offered(dora, words(dev));
  expect(own).toContainEqual(expect.stringMatching(new RegExp(`^${offeredOf(dev)}\\b`)));
  expect(own.filter((line) => tellsOf(prod, line))).toEqual([]);
  expect((await offered(dora, words(prod))).filter((line) => tellsOf(prod, line))).toEqual([]);
});

it('offers a machine that comes, and nothing of its past', async () => {
  await setEnv(prod.nodeId, 'dev-box');
  const seen = new Map<string, readonly string[]>();
  for (const [what, words] of OF_MACHINES) {
    seen.set(
      what,
      (await offered(dora, words(prod))).filter((line) => tellsOf(prod, line)),
    );
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
    expect([what, (await offered(dora, words(dev))).filter((line) => tellsOf(dev, line))]).toEqual([what, []]);
  }
});

it('offers nothing to an operator whose grants match no machine', async () => {
  const nobody = await world.addLimited('nobody', [{ rights: ['operator'], selector: 'env=none' }]);
  for (const [what, words] of OF_MACHINES) {
    const told = (await offered(nobody, words(dev))).filter((line) => tellsOf(dev, line) || tellsOf(prod, line));
    expect([what, told]).toEqual([what, []]);
  }
});
