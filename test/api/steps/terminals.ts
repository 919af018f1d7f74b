/** Terminals and commands on an agent that allows them, their recordings, and who is refused. */
import { writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { jsonFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../../src/terminal/limits.js';
import { until } from '../../support/orch.js';
import { TEST_SHELL } from '../../support/test-shell.js';
import type { Answer } from '../api-request.js';
import type { Call, World } from '../world.js';

const ENABLED = `remote_terminal: {enabled: true, max_sessions: 1, shell: ${TEST_SHELL}}\nforward: {targets: ['localhost:*']}\nssh_proxy: {targets: ['localhost:22']}\ncopy: {read: [/etc/hosts]}\n`;

/** Takes the pen, and holds it until it is closed. */
async function write(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url, TERMINAL_SUBPROTOCOL, { rejectUnauthorized: false, perMessageDeflate: false });
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => socket.send(jsonFrame('hello', { version: 1, resume: null })));
    socket.once('message', () => resolve());
  });
  return socket;
}

export async function terminals(world: World): Promise<void> {
  await refusedOnes(world);
  const config = world.sandbox.path('terminal.yaml');
  writeFileSync(config, ENABLED, { mode: 0o600 });
  const { nodeId: node_id, agent } = await world.startAgent('terminal', { ORCH_AGENT_CONFIG: config });
  try {
    await world.gives('setAgentStatus', { params: { node_id }, body: { status: 'approved', name: 'shells' } }, 200);
    const isThere = async () => (await world.call('getAgent', { params: { node_id } })).json.connected === true;
    await until(isThere, 'the agent with terminals is there');
    const params = await opened(world, node_id);
    await recorded(world, params);
    await world.gives('setAgentStatus', { params: { node_id }, body: { status: 'rejected' } }, 200);
    await world.gives('removeAgent', { params: { node_id } }, 204);
  } finally {
    await agent.stop();
  }
}

/** What an agent with its default settings refuses each of them with. */
const OFF = {
  openTerminal: 'terminal_disabled',
  execOnAgent: 'terminal_disabled',
  openForward: 'forward_refused',
  openSshProxy: 'forward_refused',
  openCopy: 'copy_refused',
} as const;

async function refusedOnes(world: World): Promise<void> {
  const { connected, away, pending } = world.agents;
  const exec = { body: { command: ['true'] } };
  const forward = { body: { targets: [{ host: 'localhost', port: 80 }] } };
  const copy = { body: { direction: 'read', paths: ['/etc/motd'] } } as const;
  const calls = [
    ['openTerminal', {}],
    ['execOnAgent', exec],
    ['openForward', forward],
    ['openSshProxy', {}],
    ['openCopy', copy],
  ] as const;
  for (const [id, call] of calls) {
    const on = (node_id: string) => ({ ...call, params: { node_id } });
    await world.refuses(id, on('f'.repeat(32)), 'agent_not_found');
    await world.refuses(id, on(pending), 'agent_not_approved');
    await world.refuses(id, on(away), 'agent_not_connected');
    await world.refuses(id, on(connected), OFF[id]);
  }
  for (const id of ['getTerminal', 'closeTerminal', 'attachTerminal', 'getTranscript']) {
    await world.refuses(id, id === 'attachTerminal' ? { body: { mode: 'read' } } : {}, 'terminal_not_found');
  }
}

/** Gives the ID of a session that is over. */
async function opened(world: World, node_id: string): Promise<{ readonly session_id: string }> {
  const on = { params: { node_id } };
  const refused = { ...on, query: { shell: '/no/shell' } };
  await world.refuses('openTerminal', refused, 'shell_not_allowed');
  const { session_id, ws_url } = await world.gives('openTerminal', on, 200);
  const params = { session_id };
  const socket = await write(ws_url);
  await world.refuses('openTerminal', on, 'terminal_limit');
  await world.gives('listTerminals', {}, 200);
  await world.gives('getTerminal', { params }, 200);
  await world.gives('attachTerminal', { params, body: { mode: 'read' } }, 200);
  await world.refuses('attachTerminal', { params, body: { mode: 'write' } }, 'terminal_pen_taken');
  await world.gives('closeTerminal', { params }, 204);
  for (const id of ['closeTerminal', 'attachTerminal']) {
    await world.refuses(
      id,
      { params, ...(id === 'attachTerminal' ? { body: { mode: 'read' } } : {}) },
      'terminal_over',
    );
  }
  socket.terminate();
  const command = (...words: string[]) => ({ ...on, body: { command: words } });
  await world.gives('execOnAgent', command('true'), 200);
  await world.refuses('execOnAgent', command('/no/such/program'), 'command_missing');
  await world.refuses('execOnAgent', command('/etc'), 'command_not_executable');
  await tooMany(world, node_id);
  await tooManyForwards(world, node_id);
  return params;
}

/** As many commands as an agent runs at a time, and one more. */
async function tooMany(world: World, node_id: string): Promise<void> {
  const sleep = { params: { node_id }, body: { command: ['sleep', '600'] } };
  await refusesBeyondLimit(world, 'execOnAgent', sleep, 'terminal_limit', () => world.call('execOnAgent', sleep));
}

/** As many forwards as an operator may have, and one more. */
async function tooManyForwards(world: World, node_id: string): Promise<void> {
  const on = { params: { node_id } };
  const forward = { ...on, body: { targets: [{ host: 'localhost', port: 9 }] } };
  await world.gives('openSshProxy', on, 200);
  await world.gives('openForward', forward, 200);
  const copy = { ...on, body: { direction: 'read', paths: ['/etc/hosts'] } };
  await world.gives('openCopy', copy, 200);
  const open = () => world.call('openForward', forward);
  await refusesBeyondLimit(world, 'openForward', forward, 'forward_limit', open);
  await refusesBeyondLimit(world, 'openSshProxy', on, 'forward_limit', open);
  await refusesBeyondLimit(world, 'openCopy', copy, 'forward_limit', open);
}

/** Opens one after the other until a request is refused. Those without a client end by themselves after a while. */
async function refusesBeyondLimit(
  world: World,
  id: string,
  call: Call,
  code: string,
  open: () => Promise<Answer>,
): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    const { status, json } = await world.call(id, call);
    if (status === 409) {
      expect(json?.code).toBe(code);
      return;
    }
    await Promise.all(Array.from({ length: 20 }, open));
  }
  throw new Error(`${id} is never refused`);
}

async function recorded(world: World, params: { readonly session_id: string }): Promise<void> {
  await world.gives('getTranscript', { params }, 200);
  await world.gives('searchTerminals', { query: { pattern: '.' } }, 200);
  await world.refuses('searchTerminals', { query: { pattern: '(' } }, 'invalid_query');
}
