/** Agents that permit sessions, and commands on them, for the tests of operators with grants. */
import { writeFileSync } from 'node:fs';
import type { World } from '../api/world.js';
import { openSocket } from './open-stream.js';
import { until } from './orch.js';
import { TEST_SHELL } from './test-shell.js';

/** Starts an agent that permits sessions, approves it under the name, and tags it with the name as its environment. */
export async function connectedAgent(world: World, name: string): Promise<string> {
  const file = world.sandbox.path(`${name}.yaml`);
  const shared = world.sandbox.path('shared');
  const config = `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\nforward: {targets: ['localhost:*']}\nssh_proxy: {targets: ['localhost:22']}\ncopy: {read: [${shared}], write: [${shared}]}\n`;
  writeFileSync(file, config, { mode: 0o600 });
  const { nodeId } = await world.startAgent(name, { ORCH_AGENT_CONFIG: file });
  const params = { node_id: nodeId };
  await world.gives('setAgentStatus', { params, body: { status: 'approved', name } }, 200);
  await until(async () => (await world.gives('getAgent', { params }, 200)).connected, `${name} is connected`);
  await world.gives('setTag', { params: { ...params, key: 'env' }, body: { value: name } }, 204);
  return nodeId;
}

/** Runs a command on an agent to its end, and returns its session, of which there is a recording. */
export async function sessionOn(world: World, node_id: string, command: readonly string[]): Promise<string> {
  const { ws_url, session_id } = await world.gives('execOnAgent', { params: { node_id }, body: { command } }, 200);
  const socket = await openSocket(ws_url);
  const params = { session_id };
  await until(
    async () => (await world.gives('getTerminal', { params }, 200)).recording === 'complete',
    'it is recorded',
  );
  socket.close();
  return session_id;
}
