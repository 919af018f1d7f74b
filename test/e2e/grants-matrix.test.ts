/** Every route, called by an operator with grants about machines inside and outside them, while machines come and leave. */
import { ulid } from 'ulid';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONTRACT, type RouteId } from '../../src/contract/contract.js';
import { grantUse, type RouteSpec } from '../../src/contract/route.js';
import { samplesFor } from '../api/samples.js';
import { type Call, World } from '../api/world.js';
import { type Machine, machineWithHistory, tellsOf } from '../support/machine-with-history.js';
import { StatementLog } from '../support/statements.js';

const world = new World();
const statements = new StatementLog(world.sandbox.path('statements'));
const ROUTES = Object.values<RouteSpec>(CONTRACT);
/** Ends the session, or does not end itself: test/e2e/grants-streams.test.ts follows the stream. */
const NOT_CALLED = ['endSession', 'streamEvents'];
/** IDs of nothing, the same in every request. */
const KNOWN = { channel: ulid(), window: ulid(), token: ulid() };
let dora = '';
let prod: Machine;
/** Not connected, so that little comes of what is asked of it. */
let dev = '';

const noSuch = (): Machine => ({
  name: 'no-such-box',
  place: 'nowhere',
  nodeId: 'f'.repeat(32),
  ...{ rolloutId: ulid(), operationId: ulid(), driftId: ulid(), snoozeId: ulid() },
  ...{ notificationId: ulid(), sessionId: ulid() },
});

/** A valid request of each operation about the machine, and about its records. */
function requestsAbout(machine: Machine): Readonly<Record<string, Call>> {
  const { nodeId: connected, nodeId: away, nodeId: pending, nodeId: rejected } = machine;
  const agents = { connected, away, pending, rejected };
  const samples = {
    ...samplesFor({ agents, people: world.people } as World, KNOWN),
    // Without the tag that the grants select by, it would leave them.
    replaceTags: { params: { node_id: away }, body: { tags: { env: 'dev', site: 'lab' } } },
  };
  const ids: Readonly<Record<string, string>> = {
    operation_id: machine.operationId,
    rollout_id: machine.rolloutId,
    drift_id: machine.driftId,
    snooze_id: machine.snoozeId,
    session_id: machine.sessionId,
  };
  return Object.fromEntries(
    Object.entries(samples).map(([id, call]) => {
      const params = Object.fromEntries(
        Object.entries(call.params ?? {}).map(([key, value]) => [key, ids[key] ?? value]),
      );
      return [id, { ...call, params: id === 'readNotification' ? { id: machine.notificationId } : params }];
    }),
  );
}

/** Asks as dora. Returns status and text without the IDs of the request and of the machine. */
async function answer(id: string, machine: Machine, call: Call): Promise<readonly [number, string]> {
  const { status, text } = await world.call(id, { token: dora, ...call });
  // Errors list the modules, and one has the name of the hidden machine in its own.
  const parts = [...Object.values(machine), prod.name];
  const plain = parts.reduce((all, part) => all.replaceAll(part, 'ID'), text);
  return [status, plain.replace(/"request_id":"\w+"/, '')];
}

/** The text of a request without public keys, which are new in each. */
const textOf = (call: Call | undefined): string => JSON.stringify(call).replace(/[0-9a-f]{64}/g, '');

/** Operations whose requests name a machine or a record of one. */
const aboutMachines = (): readonly RouteId[] => {
  const [one, other] = [requestsAbout(prod), requestsAbout(noSuch())];
  return ROUTES.map(({ id }) => id as RouteId).filter(
    (id) => !NOT_CALLED.includes(id) && textOf(one[id]) !== textOf(other[id]),
  );
};

/** Asks everything about a machine that is hidden, and expects what is answered about one that there is not. */
async function isHidden(machine: Machine, ids: readonly string[]): Promise<void> {
  const strange = noSuch();
  const [asked, unknown] = [requestsAbout(machine), requestsAbout(strange)];
  for (const id of ids) {
    const given = await answer(id, machine, asked[id] ?? {});
    expect([id, given]).toEqual([id, await answer(id, strange, unknown[id] ?? {})]);
  }
}

const setEnv = (node_id: string, value: string) =>
  world.gives('setTag', { params: { node_id, key: 'env' }, body: { value } }, 204);

beforeAll(async () => {
  await world.start([], statements.env);
  prod = await machineWithHistory(world, 'prod-box');
  const { nodeId, agent } = await world.startAgent('dev-box');
  dev = nodeId;
  await world.gives('setAgentStatus', { params: { node_id: dev }, body: { status: 'approved', name: 'dev-box' } }, 200);
  await agent.stop();
  await setEnv(dev, 'dev');
  const rights = ['operator', 'enroll', 'approve-agents', 'remove-agent', 'tag', 'tag:env', 'values', 'secrets'];
  dora = await world.addLimited('dora', [{ rights, selector: 'env=dev' }]);
});

afterAll(() => world.sandbox.dispose());

it('asks about machines or their records in most operations, of which others see something', async () => {
  expect(aboutMachines().length).toBeGreaterThan(55);
  const [asked, unknown] = [requestsAbout(prod), requestsAbout(noSuch())];
  let different = 0;
  for (const { id } of ROUTES.filter(({ method }) => method === 'GET')) {
    if (!aboutMachines().includes(id as RouteId)) continue;
    const [given, nothing] = [await world.call(id, asked[id]), await world.call(id, unknown[id])];
    if (given.status !== nothing.status) different++;
  }
  expect(different).toBeGreaterThan(12);
});

it('answers about a hidden machine as about one that there is not', async () => {
  await isHidden(prod, aboutMachines());
});

it('costs the store the same about a hidden machine, so that the time tells nothing', async () => {
  const strange = noSuch();
  const [asked, unknown] = [requestsAbout(prod), requestsAbout(strange)];
  const isRecord = (id: RouteId) =>
    Object.keys(asked[id]?.params ?? {}).some((name) => name.endsWith('_id') && name !== 'node_id');
  // The IDs of records cannot be guessed, so whoever knows one has seen it.
  for (const id of aboutMachines().filter((one) => !isRecord(one))) {
    // The periodic work of the orchestrator is in some rounds.
    await expect
      .poll(
        async () => {
          const hidden = await statements.meanwhile(() => world.call(id, { token: dora, ...asked[id] }));
          const nothing = await statements.meanwhile(() => world.call(id, { token: dora, ...unknown[id] }));
          return [id, hidden.join('\n') === nothing.join('\n')];
        },
        { timeout: 20_000 },
      )
      .toEqual([id, true]);
  }
});

it('tells of no hidden machine in the answers of the other operations', async () => {
  const asked = requestsAbout(noSuch());
  const about = new Set<string>(aboutMachines());
  // The names of modules are the same for everybody, and that of its module is made of its own.
  const machine = { ...prod, name: prod.nodeId };
  for (const { id, method, path } of ROUTES) {
    if (about.has(id) || NOT_CALLED.includes(id) || path.includes('openapi')) continue;
    const { text } = await world.call(id, { token: dora, ...asked[id], ...(method === 'GET' && { query: {} }) });
    expect([id, tellsOf(machine, text)]).toEqual([id, false]);
  }
});

it('admits to a machine of the grants, until it leaves', async () => {
  const machine = { ...noSuch(), nodeId: dev, name: 'dev-box' };
  const ids = ROUTES.filter((route) => grantUse(route) === 'machine').map(({ id }) => id);
  const admitted = async () => {
    const asked = requestsAbout(machine);
    const codes = [];
    for (const id of ids) {
      const { json } = await world.call(id, { token: dora, ...asked[id] });
      codes.push([id, ['not_granted', 'agent_not_found'].includes(json?.code) ? json.code : 'admitted']);
    }
    return codes.filter(([, code]) => code !== 'admitted');
  };
  expect(await admitted()).toEqual([]);
  await setEnv(dev, 'away');
  await isHidden(machine, ids);
});

it('shows a machine that comes, and no record of before', async () => {
  await setEnv(prod.nodeId, 'dev');
  const asked = requestsAbout(prod);
  expect(await answer('getAgent', prod, asked.getAgent ?? {})).toMatchObject([200, expect.anything()]);
  const records = ['operation_id', 'rollout_id', 'drift_id', 'session_id', 'id'];
  const own = aboutMachines().filter((id) => records.some((name) => asked[id]?.params?.[name] !== undefined));
  await isHidden(
    prod,
    own.filter((id) => asked[id]?.params?.node_id === undefined),
  );
});
