/** Forwards to agents that are too old for them, say nothing, or do less than they say. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit-status.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { AGENT_FEATURES } from '../../src/wire/features.js';
import { itInLong } from '../support/exhaustive.js';
import { TestAgent } from '../support/fleet.js';
import { auditEvents } from '../support/forwarding.js';
import { Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
let port = 0;

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  const { ready } = await sandbox.serve([]);
  const { api_url: url, tls_fingerprint: fingerprint } = ready;
  await sandbox.orch(['profile', 'create', 'test', '--url', url, '--tls-fingerprint', fingerprint]);
  await sandbox.orch(['profile', 'use', 'test']);
  port = Number(ready.agent_address.split(':').at(-1));
});

afterAll(() => sandbox.dispose());

/** Connects an agent of that name and approves it. @param version protocol version that it speaks */
async function approved(name: string, version = PROTOCOL_VERSION): Promise<TestAgent> {
  const agent = await TestAgent.dial(port);
  agent.hello({ protocol_version: version });
  await agent.message(0);
  await sandbox.orch(['agents', 'approve', agent.nodeId, '--name', name, '--yes']);
  await until(() => agent.received.some((message) => 'status' in message && message.status === 'approved'), 'approval');
  return agent;
}

/** Announces features, as agents do after each approval; none as agents of the first release of their protocol version. */
const announce = (agent: TestAgent, features?: readonly string[]): void =>
  agent.send({ type: 'inventory', runs: [], ...(features && { features }) });

const forward = (name: string) => sandbox.orch(['forward', name, '0:localhost:80']);

const asked = (agent: TestAgent) => agent.received.filter(({ type }) => type.startsWith('forward_'));

it.each([
  ['an earlier protocol version', 'older', PROTOCOL_VERSION - 1, undefined],
  [
    'this protocol version without forwards',
    'old',
    PROTOCOL_VERSION,
    AGENT_FEATURES.filter((one) => one !== 'forward'),
  ],
] as const)('are refused for an agent of %s, which is asked nothing', async (_, name, version, features) => {
  const agent = await approved(name, version);
  announce(agent, features);
  await until(async () => {
    const { status, stdout, stderr } = await forward(name);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    return stderr.includes(`agent ${name} is too old to forward connections`);
  }, 'it is refused');
  expect((await sandbox.orch(['ssh-proxy', name])).status).toBe(255);
  expect(asked(agent)).toEqual([]);
  expect(agent.socket.readyState).toBe(agent.socket.OPEN);
  const [refused] = await auditEvents(sandbox, 'forward.refused');
  expect(refused?.metadata).toMatchObject({ reason: 'agent_too_old', node_id: agent.nodeId });
});

it('end with what the agent lacks when it announces that only after the request', async () => {
  const agent = await approved('late');
  const answer = forward('late');
  await until(() => asked(agent).length > 0, 'it is asked');
  announce(agent, []);
  expect((await answer).stderr).toContain('agent late is too old to forward connections');
});

// The orchestrator waits for half a minute.
itInLong('end after a while for an agent that answers nothing, or that permits and does not dial', async () => {
  const [mute, idle] = [await approved('mute'), await approved('idle')];
  for (const agent of [mute, idle]) announce(agent, AGENT_FEATURES);
  const answers = Promise.all([forward('mute'), forward('idle')]);
  await until(() => asked(mute).length + asked(idle).length === 2, 'both are asked');
  const [request] = asked(idle);
  idle.send({ type: 'forward_answer', session_id: (request as { session_id: string }).session_id, error: null });
  const [silent, absent] = await answers;
  expect(silent.stderr).toContain('the agent answered nothing for 15 s');
  expect(absent.stderr).toContain('the agent or the client did not attach in time');
  expect([silent, absent]).toMatchObject([{ status: EXIT.timedOut }, { status: EXIT.offline }]);
  // Both are told that it is over, and only the one that permitted it has a record of that.
  await until(() => asked(mute).length === 2 && asked(idle).length === 2, 'both are told');
  await until(async () => {
    const events = await auditEvents(sandbox, 'forward.closed');
    expect(events.length).toBeLessThan(2);
    return events[0]?.metadata.reason === 'not_attached' && events[0].metadata.node_id === idle.nodeId;
  }, 'the end is recorded');
});

it('are no copies for an agent without them, which is asked nothing', async () => {
  const agent = await approved('older-copy');
  announce(
    agent,
    AGENT_FEATURES.filter((one) => one !== 'copy'),
  );
  await until(async () => {
    const { status, stderr } = await sandbox.orch(['cp', 'older-copy:/etc/motd', '.']);
    expect(status).toBe(1);
    return stderr.includes('agent older-copy is too old to copy files, or runs on a system on which it cannot');
  }, 'it is refused');
  expect(asked(agent)).toEqual([]);
  const [refused] = await auditEvents(sandbox, 'copy.refused');
  expect(refused?.metadata).toMatchObject({ reason: 'agent_too_old', node_id: agent.nodeId, direction: 'read' });
});
