/** Machines that options select: by selector and by state, in every command that takes machines. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { runOrch } from '../support/cli.js';
import { agents, readings, ulid, web1, web2 } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

/** web-01 is in sync, web-02 is behind, db-01 is offline, and one agent is pending. */
const fleet: readonly Agent[] = agents.map((agent) =>
  agent.node_id === web2.node_id ? { ...agent, standing: 'behind' } : agent,
);
const webs = fleet.filter(({ tags }) => tags.role === 'web');

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi();
});
afterEach(() => {
  expect(api.violations).toEqual([]);
});
afterAll(() => api.stop());

const answers = {
  ...readings,
  listAgents: ({ query }: { readonly query: Readonly<Record<string, string>> }) => ({
    body: (query.filter === 'role=web' ? webs : fleet).filter(({ status }) => !query.status || status === query.status),
  }),
  listTerminals: { body: [] },
};

async function run(argv: readonly string[], more: Parameters<FakeApi['answer']>[0] = {}) {
  api.answer({ ...answers, ...more });
  return runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });
}

const namesOf = async (words: string) => (await run([...words.split(' '), '-o', 'name'])).stdout.trim().split('\n');

describe('a state', () => {
  it.each([
    ['agents --status pending', [fleet[3]?.node_id]],
    ['agents --status offline', ['db-01']],
    ['agents --status online', ['web-01', 'web-02']],
    ['agents --status behind', ['web-02']],
    ['agents --status behind,offline', ['db-01', 'web-02']],
    ['agents --status pending --status behind', ['web-02', fleet[3]?.node_id]],
    ['agents --status in_sync -l role=web', ['web-01']],
  ])('%s', async (words, expected) => expect(await namesOf(words)).toEqual(expected));

  it('that is unknown is named with those that exist', async () => {
    const ran = await run(['agents', '--status', 'behind,asleep']);
    expect(ran.status).toBe(64);
    expect(ran.stderr).toContain('--status takes pending, approved, rejected, online, offline,');
    expect(ran.stderr).toContain('not "asleep"');
  });

  it('does not go with names, which choose already', async () => {
    for (const words of ['verify web-01 --status online', 'exec web-01 --status online -- true', 'state web-01 -l a']) {
      expect(await run(words.split(' '))).toMatchObject({ status: 64, stderr: expect.stringContaining('one of them') });
    }
  });

  it('that no agent has is an error, unless --allow-empty is given', async () => {
    const ran = await run(['state', '--status', 'drifted', '-l', 'role=web']);
    expect(ran).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no approved agent matches "role=web" and is drifted'),
    });
    expect(await run(['plan', '--status', 'drifted', '--allow-empty'])).toMatchObject({ status: 0 });
  });
});

describe('a selector', () => {
  it('gives the state of each agent, as a list', async () => {
    const ran = await run(['state', '-l', 'role=web', '--json']);
    expect(JSON.parse(ran.stdout)).toHaveLength(2);
    expect(Array.isArray(JSON.parse((await run(['state', 'web-01', '--json'])).stdout))).toBe(false);
  });

  it('gives the measurements of each agent in one table', async () => {
    const sample = {
      collected_at: Math.floor(Date.UTC(2025, 2, 1, 11, 59) / 1000),
      cpu_usage: 25,
      memory_used: 1,
      memory_total: 4,
      disk_used: 1,
      disk_total: 2,
      uptime: 3600,
    };
    const ran = await run(['metrics', '-l', 'role=web'], { getLatestMetrics: { body: sample } });
    expect(ran.stdout.split('\n').slice(0, 3)).toEqual([
      'AGENT     CPU  MEMORY   DISK  UPTIME  MEASURED',
      'web-01  25.0%   25.0%  50.0%  1 h     1 min ago',
      'web-02  25.0%   25.0%  50.0%  1 h     1 min ago',
    ]);
    const wrong = await run(['metrics', '-l', 'role=web', '--watch']);
    expect(wrong).toMatchObject({ status: 64, stderr: expect.stringContaining('--watch shows one agent') });
  });

  it.each([
    ['ops', 'listOperations', '/state/operations?'],
    ['drift list', 'listDrift', '/drift?'],
  ])('narrows orch %s down at the orchestrator', async (words, _id, path) => {
    expect((await run([...words.split(' '), '-l', 'role=web'])).status).toBe(0);
    const asked = api.requests.filter((request) => request.startsWith(`GET ${path}`)).at(-1);
    expect(asked).toContain('filter=role%3Dweb');
    const both = await run([...words.split(' '), '-l', 'role=web', '--agent', 'web-01']);
    expect(both).toMatchObject({ status: 64, stderr: expect.stringContaining('--selector does not go with it') });
  });

  it('narrows the list of terminals down', async () => {
    const session = (number: number, agent: Agent) => ({
      session_id: ulid(number),
      node_id: agent.node_id,
      status: 'active',
      opened_at: 1,
      closed_at: null,
      node_name: agent.name,
      kind: 'shell',
      operator_id: 'a'.repeat(32),
      operator: 'ada',
      user: 'root',
      shell: '/bin/sh',
      command: null,
      reason: null,
      exit_code: null,
      exit_signal: null,
      recording: 'on',
      output_bytes: 0,
      writer: null,
      viewers: [],
    });
    const sessions = [session(3, web1), session(2, agents[0] as Agent), session(1, web2)];
    const ran = await run(['term', 'list', '-l', 'role=web', '-o', 'name'], { listTerminals: { body: sessions } });
    expect(ran).toMatchObject({ status: 0, stdout: `${ulid(3)}\n${ulid(1)}\n` });
  });

  it('tags every agent after consent, and shows each', async () => {
    const set = { setTag: { status: 204, body: undefined } };
    const refused = await run(['agents', 'tag', '-l', 'role=web', 'tier=front'], set);
    expect(refused).toMatchObject({ status: 64, stderr: expect.stringContaining('Tag these 2 agents?') });
    const done = await run(['agents', 'tag', '-l', 'role=web', 'tier=front', '--yes'], set);
    expect(done).toMatchObject({ status: 0, stdout: expect.stringMatching(/^web-01 has the tags.*\nweb-02 has/) });
    expect(api.requests.filter((request) => request.startsWith('PUT '))).toEqual([
      `PUT /agents/${web1.node_id}/tags/tier`,
      `PUT /agents/${web2.node_id}/tags/tier`,
    ]);
  });

  it('takes a tag off the agents that have it', async () => {
    const ran = await run(['agents', 'untag', '-l', 'role=web', 'canary'], {
      removeTag: { status: 204, body: undefined },
    });
    expect(ran.status).toBe(0);
    expect(api.requests.filter((request) => request.startsWith('DELETE '))).toEqual([
      `DELETE /agents/${web1.node_id}/tags/canary`,
    ]);
  });

  it('names all agents before it rejects them', async () => {
    const ran = await runOrch(['agents', 'reject', '-l', 'role=web'], {
      env: { ...loggedIn(api), NO_COLOR: '1' },
      columns: 100,
      answers: [{ at: 'Reject these 2 agents?', type: 'n\r' }],
    });
    expect(ran.stderr).toContain(`web-01  approved  ${web1.node_id}`);
    expect(ran.stderr).toContain('not confirmed, nothing was changed');
  });
});

describe('one word alone', () => {
  it.each([
    ['agents tag web-01', 'needs a tag'],
    ['agents untag -l role=web', 'needs a tag'],
    ['agents reject', '"orch agents reject" needs an agent'],
    ['explain web-01', '"orch explain" needs a resource'],
    ['metrics', '"orch metrics" needs an agent'],
  ])('orch %s is refused', async (words, message) => {
    expect(await run(words.split(' '))).toMatchObject({ status: 64, stderr: expect.stringContaining(message) });
  });
});
