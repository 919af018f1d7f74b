/** `orch agents upgrade`: what it asks, sends and shows, canaries, limits and its exit status. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Upgrade } from '../../src/contract/upgrades.js';
import { expectGolden, runOrch, transcript } from '../support/cli.js';
import { agents, readings, ulid, web1, web2 } from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const approved = agents.filter(({ status }) => status === 'approved');
let asked: { readonly node_id: string; readonly body: unknown }[];
/** Ends of upgrades by agent; the others succeed. */
let ends: Readonly<Record<string, Pick<Upgrade, 'state' | 'error'>>>;

beforeEach(() => {
  asked = [];
  ends = {};
  const base = (node_id: string): Upgrade => ({
    upgrade_id: ulid(1),
    node_id,
    version: '0.2.0',
    from_version: '0.1.0',
    state: 'requested',
    waits_for: null,
    error: null,
    requested_by: 'a'.repeat(32),
    requested_at: 1,
    updated_at: 1,
  });
  const upgrading: Answers = {
    getStatus: { body: { ...(readings.getStatus as { body: object }).body, version: '0.2.0' } },
    getFleet: { body: { ...(readings.getFleet as { body: object }).body, outdated_agents: 3 } },
    upgradeAgent: ({ params, body }) => {
      const node_id = params.node_id ?? '';
      asked.push({ node_id, body });
      if (!approved.find((agent) => agent.node_id === node_id)?.connected) {
        return { problem: 'agent_not_connected', detail: `agent ${node_id} is not connected` };
      }
      return { status: 202, body: base(node_id) };
    },
    getAgentUpgrade: ({ params }) => {
      const node_id = params.node_id ?? '';
      return { body: { ...base(node_id), ...(ends[node_id] ?? { state: 'succeeded', error: null }) } };
    },
  };
  api.answer({ ...readings, ...upgrading });
});

const golden = async (name: string, argv: readonly string[], status: number) => {
  const ran = await runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });
  expectGolden(name, transcript(argv, ran).replace(/127\.0\.0\.1:\d+/, 'ORCHESTRATOR'));
  expect(ran.status).toBe(status);
};

const rolledBack = {
  state: 'rolled_back',
  error: { code: 'upgrade_failed', message: 'the new agent ends again and again; its log ends with:\nnode: not found' },
} as const;

it('gives agents the version of the orchestrator', async () => {
  await golden('agents-upgrade', ['agents', 'upgrade', 'web-01', '--yes'], 0);
  expect(asked).toEqual([{ node_id: web1.node_id, body: { version: '0.2.0', force: false, wait_secs: 3600 } }]);
  const argv = ['agents', 'upgrade', 'web-01', '--yes', '-o', 'json'];
  const { stdout } = await runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });
  expect(JSON.parse(stdout)).toMatchObject([{ name: 'web-01', status: 'succeeded', version: '0.2.0' }]);
});

it('shows why an agent returned to its release', async () => {
  ends = { [web1.node_id]: rolledBack };
  await golden('agents-upgrade-rolled-back', ['agents', 'upgrade', 'web-01', '--yes'], 3);
});

it('begins no other agent after a canary that failed', async () => {
  ends = { [web1.node_id]: rolledBack };
  await golden('agents-upgrade-canary', ['agents', 'upgrade', '-l', '*', '--canary', '1', '--yes'], 3);
  expect(asked.map(({ node_id }) => node_id)).toEqual([web1.node_id]);
});

it('begins the others after the canary, and names those that are not connected', async () => {
  await golden(
    'agents-upgrade-all',
    ['agents', 'upgrade', '-l', '*', '--canary', '1', '--force', '--wait', '5m', '--yes'],
    5,
  );
  expect(asked.map(({ node_id }) => node_id)[0]).toBe(web1.node_id);
  expect(asked.map(({ node_id }) => node_id)).toContain(web2.node_id);
  expect(asked[0]?.body).toEqual({ version: '0.2.0', force: true, wait_secs: 300 });
});

it('leaves agents out that have the version', async () => {
  await golden('agents-upgrade-nothing', ['agents', 'upgrade', 'web-01', '--to', '0.1.0', '--yes'], 0);
  expect(asked).toEqual([]);
});

it('refuses what it cannot do', async () => {
  await golden('agents-upgrade-no-agent', ['agents', 'upgrade'], 64);
  await golden('agents-upgrade-no-consent', ['agents', 'upgrade', 'web-01'], 64);
  await golden('agents-upgrade-wait', ['agents', 'upgrade', 'web-01', '--wait', '2d'], 64);
});

it('shows in the list which agents differ from the orchestrator, and warns in the status', async () => {
  await golden('agents-list-older', ['agents', 'list'], 0);
  await golden('status-older-agents', ['status'], 0);
});
