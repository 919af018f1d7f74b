/** An ephemeral machine with real processes and real time: removed after its five minutes, and let in again by its token. */
import { afterAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { CreatedEnrolmentToken } from '../../src/contract/enrolment-tokens.js';
import { World } from '../api/world.js';
import { until } from '../support/orch.js';

const SECS = 300;
/** The orchestrator looks once a minute, and counts from the first look that finds the machine away. */
const LATEST_MS = (SECS + 180) * 1_000;

const world = new World();
afterAll(() => world.sandbox.dispose());

it('is removed when its time without a connection is over, not before, and may come back', {
  timeout: 600_000,
}, async () => {
  await world.start();
  const wanted = { auto_approve: true, uses: 2, tags: { ci: 'yes' }, ephemeral_secs: SECS };
  const { token }: CreatedEnrolmentToken = await world.gives('createEnrolmentToken', { body: wanted }, 201);
  const agents = (): Promise<readonly Agent[]> => world.gives('listAgents', {}, 200);
  const { nodeId, agent } = await world.startAgent('job', { ORCH_AGENT_TOKEN: token });
  await until(async () => (await agents())[0]?.connected === true, 'the machine is connected');
  expect((await agents())[0]).toMatchObject({ status: 'approved', tags: { ci: 'yes' }, ephemeral_secs: SECS });
  await agent.stop('SIGKILL');
  const left = performance.now();
  await expect.poll(async () => (await agents()).length, { timeout: LATEST_MS, interval: 1_000 }).toBe(0);
  expect(performance.now() - left).toBeGreaterThan(SECS * 1_000);
  const { events } = await world.gives('listAuditEvents', { query: { agent: nodeId } }, 200);
  expect(events.map(({ event_type: type }: AuditEvent) => type)).toContain('agent.removed');
  const again = await world.startAgent('job', { ORCH_AGENT_TOKEN: token });
  expect(again.nodeId).toBe(nodeId);
  await until(async () => (await agents())[0]?.connected === true, 'it is back');
  expect((await agents())[0]).toMatchObject({ status: 'approved', ephemeral_secs: SECS });
});
