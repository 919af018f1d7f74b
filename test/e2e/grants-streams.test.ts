/** Every stream of the API, opened by an operator with grants on a machine that leaves them meanwhile, and on hidden machines. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import type { TSchema } from 'typebox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { TERMINAL_CLOSE } from '../../src/terminal/limits.js';
import { type Call, World } from '../api/world.js';
import { connectedAgent } from '../support/limited-sessions.js';
import { type OpenStream, openSocket, openStream } from '../support/open-stream.js';
import { until } from '../support/orch.js';

const world = new World();
const gate = world.sandbox.path('gate');
const atWork = world.sandbox.path('at-work');
const applied = world.sandbox.path('applied');
const RIGHTS = ['operator'];
const LINES = 'application/x-ndjson';
const UNKNOWN = 'f'.repeat(32);

let dora = '';
let dev = '';
let prod = '';
/** The record of an apply, a rollout and a session on the hidden machine. */
let hidden: { readonly operation_id: string; readonly rollout_id: string; readonly session_id: string };

/** A script that waits at the gate, once it has said that it is at work. */
const WAITS = `touch ${atWork}; until [ -e ${gate} ]; do sleep 0.05; done`;
const gated = [
  'name: gated',
  'supports: [{platform: linux}]',
  'resources:',
  '  - id: after-the-gate',
  `    resource: {script: {program: sh, check: "${WAITS}; test -e ${applied}", apply: "touch ${applied}"}}`,
  'verify:',
  `  - {name: gate, within: 2m, timeout: 2m, script: {program: sh, run: "${WAITS}"}}`,
];

const isAtWork = () => until(() => existsSync(atWork), 'the machine is at work');
const openGate = () => writeFileSync(gate, '');

/** A way to open a stream on a machine, and what tells that it has ended because the machine left. */
interface Opening {
  /** Opens it as dora on the machine of the grants. Resolves when the machine is at work for it. */
  readonly open: () => Promise<OpenStream>;
  readonly end: string;
  /** The call on a hidden machine, and the same on one that there is not; null where the call names no machine. */
  readonly outside: ((nodeId: string) => Call) | null;
}

const begun =
  (id: string, call: Call, accept = LINES) =>
  async () => {
    const stream = await openStream(world, id, { token: dora, ...call }, accept, true);
    const tooEarly = stream.ended.then((text) => Promise.reject(new Error(`${id} has ended before: ${text}`)));
    tooEarly.catch(() => undefined);
    await Promise.race([isAtWork(), tooEarly]);
    return stream;
  };
const on = (node_id: string, more: Call = {}): Call => ({ token: dora, params: { node_id }, ...more });

const run = { body: { modules: ['gated'] } };
const rollout = (agent: string) => ({ token: dora, body: { agents: [agent], modules: ['gated'] } });

/** Begins an apply as dora without following it. */
async function started(id: string, call: Call) {
  const answer = await world.gives(id, { token: dora, ...call }, 202);
  await isAtWork();
  return answer;
}

const socketOf = async (id: string, call: Call): Promise<OpenStream> =>
  openSocket((await world.gives(id, { token: dora, ...call }, 200)).ws_url);

const revoked = `close ${TERMINAL_CLOSE.revoked}`;
const session = (id: string, body?: object): Opening => ({
  open: () => socketOf(id, on(dev, body === undefined ? {} : { body })),
  end: 'close',
  outside: (nodeId) => on(nodeId, body === undefined ? {} : { body }),
});
const ofSession = (nodeId: string): Call => ({
  token: dora,
  params: { session_id: nodeId === prod ? hidden.session_id : '01ARZ3NDEKTSV4RRFFQ69G5FAV' },
});

const OPENINGS: Readonly<Record<string, Opening>> = {
  planAgent: {
    open: () => begun('planAgent', on(dev, run))(),
    end: 'agent_not_found',
    outside: (nodeId) => on(nodeId, run),
  },
  applyAgent: {
    open: () => begun('applyAgent', on(dev, run))(),
    end: 'agent_not_found',
    outside: (nodeId) => on(nodeId, run),
  },
  getOperation: {
    open: async () => {
      const { operation_id } = await started('applyAgent', on(dev, { body: { ...run.body, wait: false } }));
      return openStream(world, 'getOperation', { token: dora, params: { operation_id } }, LINES);
    },
    end: 'operation_not_found',
    outside: (nodeId) => ({
      token: dora,
      params: { operation_id: nodeId === prod ? hidden.operation_id : '01ARZ3NDEKTSV4RRFFQ69G5FAV' },
    }),
  },
  planRollout: { open: () => begun('planRollout', rollout(dev))(), end: 'not_granted', outside: rollout },
  applyRollout: { open: () => begun('applyRollout', rollout(dev))(), end: 'not_granted', outside: rollout },
  getRollout: {
    open: async () => {
      const { rollout_id } = await started('applyRollout', { body: { ...rollout(dev).body, wait: false } });
      return openStream(world, 'getRollout', { token: dora, params: { rollout_id } }, LINES);
    },
    end: 'rollout_not_found',
    outside: (nodeId) => ({
      token: dora,
      params: { rollout_id: nodeId === prod ? hidden.rollout_id : '01ARZ3NDEKTSV4RRFFQ69G5FAV' },
    }),
  },
  planAssignment: {
    open: () => begun('planAssignment', { params: { name: 'gated' }, body: {} })(),
    end: 'not_granted',
    outside: null,
  },
  applyAssignment: {
    open: () => begun('applyAssignment', { params: { name: 'gated' }, body: {} })(),
    end: 'not_granted',
    outside: null,
  },
  openTerminal: session('openTerminal'),
  execOnAgent: session('execOnAgent', { command: ['sleep', '600'] }),
  openForward: { ...session('openForward', { targets: [{ host: 'localhost', port: 80 }] }), end: revoked },
  openSshProxy: { ...session('openSshProxy'), end: revoked },
  openCopy: { ...session('openCopy', { direction: 'write', paths: [world.sandbox.path('shared')] }), end: revoked },
  attachTerminal: {
    open: async () => {
      const { session_id } = await world.gives('openTerminal', { params: { node_id: dev } }, 200);
      return socketOf('attachTerminal', { params: { session_id }, body: { mode: 'read' } });
    },
    end: 'close',
    outside: (nodeId) => ({ ...ofSession(nodeId), body: { mode: 'read' } }),
  },
};

/** Answers that are no stream, and come when the machine has done its work. */
const WAITING: Readonly<Record<string, { readonly call: () => Call; readonly end: string }>> = {
  planAgent: { call: () => on(dev, run), end: 'agent_not_found' },
  applyAgent: { call: () => on(dev, run), end: 'agent_not_found' },
  verifyAgent: { call: () => on(dev), end: 'agent_not_found' },
  checkDrift: { call: () => on(dev), end: 'agent_not_found' },
  planRollout: { call: () => rollout(dev), end: 'not_granted' },
  applyRollout: { call: () => rollout(dev), end: 'not_granted' },
};

/** Streams with a test of their own: that of all events, and recordings, which end where their session has come to. */
const OTHERS = ['streamEvents', 'getTranscript'];

const setEnv = (node_id: string, value: string) =>
  world.gives('setTag', { params: { node_id, key: 'env' }, body: { value } }, 204);

/** Lets what the machine does end, and returns when it is idle. */
async function settle(): Promise<void> {
  openGate();
  const idle = { params: { node_id: dev }, body: run.body };
  await until(async () => {
    const { status, text } = await world.call('planAgent', idle);
    return status === 200 && text.includes('after-the-gate');
  }, 'the machine is idle, and its plan shows what is behind the gate');
  rmSync(gate);
  rmSync(atWork, { force: true });
}

beforeAll(async () => {
  await world.start();
  dev = await connectedAgent(world, 'dev');
  prod = await connectedAgent(world, 'prod');
  await world.gives('uploadModule', { body: { name: 'gated', content: `${gated.join('\n')}\n` } }, 201);
  await world.gives('createAssignment', { body: { name: 'gated', modules: ['gated'], selector: '*' } }, 201);
  openGate();
  const on = { params: { node_id: prod }, body: run.body };
  const { operation_id } = await world.gives('applyAgent', on, 200);
  const { rollout_id } = await world.gives('applyRollout', { body: { agents: [prod], modules: ['gated'] } }, 200);
  const { session_id } = await world.gives('openTerminal', { params: { node_id: prod } }, 200);
  hidden = { operation_id, rollout_id, session_id };
  await world.gives('applyAgent', { params: { node_id: dev }, body: run.body }, 200);
  await settle();
  dora = await world.addLimited('dora', [{ rights: RIGHTS, selector: 'env=dev' }]);
});
afterAll(() => world.sandbox.dispose());

/** Returns true for an answer with the address of a socket. */
const leadsToSocket = (schema: TSchema | null): boolean =>
  schema !== null && 'properties' in schema && Object.hasOwn(schema.properties as object, 'ws_url');

it('are all streams and sockets of the contract', () => {
  const isStream = ({ stream, events, mediaType, path, answers }: RouteSpec) =>
    stream !== undefined ||
    events !== undefined ||
    (mediaType !== undefined && path.startsWith('/terminal')) ||
    Object.values(answers).some(leadsToSocket);
  const streams = Object.values<RouteSpec>(CONTRACT).filter(isStream);
  expect(streams.map(({ id }) => id).sort()).toEqual([...Object.keys(OPENINGS), ...OTHERS].sort());
});

/** Opens, takes the machine out of the grants, and returns what came until the end. */
async function untilItLeft(open: Opening['open']): Promise<string> {
  const stream = await open();
  await setEnv(dev, 'prod');
  try {
    return await stream.ended;
  } finally {
    stream.close();
    await settle();
    await setEnv(dev, 'dev');
  }
}

describe('a machine that leaves the grants', () => {
  it.each(Object.entries(OPENINGS))('ends %s, which says so', async (_, { open, end }) => {
    const text = await untilItLeft(open);
    expect(text).toContain(end);
    expect(text).not.toContain('after-the-gate');
  });

  it.each(Object.entries(WAITING))('ends the wait for the answer of %s', async (id, { call, end }) => {
    const text = await untilItLeft(() => begun(id, call(), 'application/json')());
    expect(text).toContain(end);
    expect(text).not.toContain('after-the-gate');
  });

  it('is told of no more by the stream of all events', async () => {
    const events = await openStream(world, 'streamEvents', { token: dora }, 'text/event-stream');
    await setEnv(dev, 'dev2');
    await world.gives('setTag', { params: { node_id: dev, key: 'told' }, body: { value: 'hidden' } }, 204);
    await setEnv(dev, 'dev');
    await world.gives('setTag', { params: { node_id: dev, key: 'told' }, body: { value: 'shown' } }, 204);
    await until(() => events.text().includes('shown'), 'the stream tells of the machine again');
    expect(events.text()).not.toMatch(/"after":\{[^}]*"told":"hidden"/);
    events.close();
  });
});

describe('a hidden machine', () => {
  const outside = Object.entries(OPENINGS).flatMap(([id, { outside: call }]) =>
    call === null ? [] : [[id, call] as const],
  );

  it.each([...outside, ['getTranscript', ofSession] as const])(
    'is for %s as one that there is not',
    async (id, callOn) => {
      const answers = [];
      for (const nodeId of [prod, UNKNOWN]) {
        const { status, text } = await world.call(id, callOn(nodeId));
        const ids = [nodeId, ...Object.values(callOn(nodeId).params ?? {})];
        const plain = ids.reduce((all, one) => all.replaceAll(one, 'ID'), text).replace(/"request_id":"\w+"/, '');
        answers.push([status, plain]);
      }
      expect(answers[0]?.[0]).toBe(404);
      expect(answers[0]).toEqual(answers[1]);
    },
  );

  it.each(['planAssignment', 'applyAssignment'])('is not chosen by %s', async (id) => {
    openGate();
    const { text } = await world.call(id, { token: dora, params: { name: 'gated' }, body: {} });
    expect(text).toContain(dev);
    expect(text).not.toContain(prod);
    await settle();
  });
});
