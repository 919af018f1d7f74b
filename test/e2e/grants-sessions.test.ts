/** Terminals, commands, recordings, copies and forwards of an operator with grants, on real agents that permit all of them. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { jsonFrame } from '../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import { type Call, World } from '../api/world.js';
import { until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';

const world = new World();
const config = (directory: string) =>
  `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\nforward: {targets: ['localhost:*']}\nssh_proxy: {targets: ['localhost:22']}\ncopy: {read: [${directory}], write: [${directory}]}\n`;

const DEV = [
  { rights: ['exec', 'terminal', 'watch', 'take-pen', 'copy', 'forward', 'ssh-proxy'], selector: 'env=dev' },
];
let dora = '';
let dev = '';
let prod = '';

const on = (node_id: string, more: Call = {}): Call => ({ token: dora, params: { node_id }, ...more });

/** Opens the WebSocket of an answer, and gives it once the first message has come. */
const connected = (url: string) =>
  new Promise<WebSocket>((resolve, reject) => {
    const socket = new WebSocket(url, TERMINAL_SUBPROTOCOL, { rejectUnauthorized: false, perMessageDeflate: false });
    socket.on('error', reject);
    socket.on('open', () => socket.send(jsonFrame('hello', { version: 1, resume: null })));
    socket.once('message', () => resolve(socket));
  });

const setEnv = (node_id: string, value: string) =>
  world.gives('setTag', { params: { node_id, key: 'env' }, body: { value } }, 204);

/** Starts an agent that permits sessions, approves it under the name, and tags it with the name as its environment. */
async function start(name: string): Promise<string> {
  const file = world.sandbox.path(`${name}.yaml`);
  writeFileSync(file, config(world.sandbox.path('shared')), { mode: 0o600 });
  const { nodeId } = await world.startAgent(name, { ORCH_AGENT_CONFIG: file });
  await world.gives('setAgentStatus', { params: { node_id: nodeId }, body: { status: 'approved', name } }, 200);
  await until(
    async () => (await world.gives('getAgent', { params: { node_id: nodeId } }, 200)).connected,
    `${name} is connected`,
  );
  await setEnv(nodeId, name);
  return nodeId;
}

beforeAll(async () => {
  await world.start();
  dev = await start('dev');
  prod = await start('prod');
  dora = await world.addLimited('dora', DEV);
});
afterAll(() => world.sandbox.dispose());

describe('sessions of an operator with grants', () => {
  const calls: readonly (readonly [string, Call])[] = [
    ['openTerminal', {}],
    ['execOnAgent', { body: { command: ['true'] } }],
    ['openForward', { body: { targets: [{ host: 'localhost', port: 80 }] } }],
    ['openSshProxy', {}],
    ['openCopy', { body: { direction: 'read', paths: ['/etc/hosts'] } }],
  ];

  it.each(calls)('%s is answered on a hidden machine as on an unknown one', async (id, call) => {
    const unknown = 'f'.repeat(32);
    const answers = [];
    for (const node_id of [prod, unknown]) {
      const { status, text } = await world.call(id, on(node_id, call));
      answers.push([status, text.replaceAll(node_id, 'NODE').replace(/"request_id":"\w+"/, '')]);
    }
    expect(answers[0]?.[0]).toBe(404);
    expect(answers[0]).toEqual(answers[1]);
  });

  it('of others on hidden machines are neither listed, watched, closed nor read afterwards', async () => {
    const opened = await world.gives('openTerminal', { params: { node_id: prod } }, 200);
    const socket = await connected(opened.ws_url);
    const params = { session_id: opened.session_id };
    const look = async () => {
      expect((await world.call('listTerminals', { token: dora })).text).not.toContain(opened.session_id);
      for (const id of ['getTerminal', 'closeTerminal', 'getTranscript']) {
        await world.refuses(id, { token: dora, params }, 'terminal_not_found');
      }
      for (const mode of ['read', 'write']) {
        await world.refuses('attachTerminal', { token: dora, params, body: { mode } }, 'terminal_not_found');
      }
    };
    await look();
    await world.gives('closeTerminal', { params }, 204);
    socket.terminate();
    await look();
    const { text } = await world.call('listAuditEvents', { token: dora });
    expect(text).not.toContain(prod);
  });

  it('are watched and typed in only with the rights to it', async () => {
    const opened = await world.gives('openTerminal', { params: { node_id: dev } }, 200);
    const socket = await connected(opened.ws_url);
    const params = { session_id: opened.session_id };
    const may = async (rights: readonly string[], mode: string) => {
      const token = await world.addLimited(`u${rights.join('-')}-${mode}`, [
        { rights: [...rights], selector: 'env=dev' },
      ]);
      const { status, json } = await world.call('attachTerminal', { token, params, body: { mode } });
      return status === 200 ? 200 : json.code;
    };
    expect(await may(['terminal', 'exec'], 'read')).toBe('not_granted');
    expect(await may(['watch'], 'read')).toBe(200);
    expect(await may(['watch'], 'write')).toBe('not_granted');
    await world.gives('closeTerminal', { params }, 204);
    socket.terminate();
  });

  it('end when the machine leaves the grants, and its recordings stay behind', async () => {
    const terminal = await world.gives('openTerminal', on(dev), 200);
    const shell = await connected(terminal.ws_url);
    const command = await world.gives('execOnAgent', on(dev, { body: { command: ['sleep', '600'] } }), 200);
    const running = await connected(command.ws_url);
    const ends = [shell, running].map(
      (socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())),
    );
    await setEnv(dev, 'prod');
    await Promise.all(ends);
    for (const { session_id } of [terminal, command]) {
      const params = { session_id };
      await until(
        async () => (await world.gives('getTerminal', { params }, 200)).closed_at !== null,
        'the session is over',
      );
      await world.refuses('getTerminal', { token: dora, params }, 'terminal_not_found');
      await world.refuses('getTranscript', { token: dora, params }, 'terminal_not_found');
    }
    await setEnv(dev, 'dev');
  });

  it('of their own are read with the right to watch, also once the right to begin them is gone', async () => {
    const token = await world.addLimited('uma', [{ rights: ['exec'], selector: 'env=dev' }]);
    const { operator } = await world.gives('getSession', { token }, 200);
    const command = { token, params: { node_id: dev }, body: { command: ['true'] } };
    const { session_id } = await world.gives('execOnAgent', command, 200);
    const own = { token, params: { session_id } };
    await world.gives('getTerminal', own, 200);
    const give = (right: string) => {
      const params = { operator_id: operator.operator_id };
      return world.gives(
        'setOperatorGrants',
        { params, body: { grants: [{ rights: [right], selector: 'env=dev' }] } },
        200,
      );
    };
    await give('watch');
    await world.gives('getTerminal', own, 200);
    await give('plan');
    await world.refuses('getTerminal', own, 'not_granted');
  });

  it('of a robot are commands alone', async () => {
    const robot = await world.addRobot('ci', [{ rights: ['operator'], selector: 'env=dev' }]);
    await world.refuses('openTerminal', { token: robot, params: { node_id: dev } }, 'role_forbidden');
    const exec = (more: object) => ({
      token: robot,
      params: { node_id: dev },
      body: { command: ['sleep', '600'], ...more },
    });
    await world.refuses('execOnAgent', exec({ tty: {} }), 'role_forbidden');
    const own = await world.gives('execOnAgent', exec({}), 200);
    const others = await world.gives(
      'execOnAgent',
      { params: { node_id: dev }, body: { command: ['sleep', '600'] } },
      200,
    );
    const of = ({ session_id }: { session_id: string }, more: Call = {}) => ({
      token: robot,
      params: { session_id },
      ...more,
    });
    await world.gives('getTerminal', of(own), 200);
    const url = (await world.gives('attachTerminal', of(own, { body: { mode: 'write', take: true } }), 200)).ws_url;
    (await connected(url)).terminate();
    for (const id of ['getTerminal', 'closeTerminal', 'getTranscript']) {
      expect([id, (await world.call(id, of(others))).status]).toEqual([id, 403]);
    }
    await world.refuses('attachTerminal', of(others, { body: { mode: 'read' } }), 'not_granted');
    await world.gives('closeTerminal', of(own), 204);
    const everywhere = await world.addRobot('nightly', null);
    await world.refuses(
      'getTerminal',
      { token: everywhere, params: { session_id: others.session_id } },
      'role_forbidden',
    );
    await world.gives('closeTerminal', { params: { session_id: others.session_id } }, 204);
  });
});
