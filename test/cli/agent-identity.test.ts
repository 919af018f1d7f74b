/** The commands that decide which machine an agent is. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { expectGolden, runOrch, transcript } from '../support/cli.js';
import { agents, readings, web1 } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

const held: Agent = {
  ...web1,
  contest: {
    since: web1.updated_at,
    machines: [
      { hostname: 'web1-clone', address: '192.0.2.2', last_seen_at: web1.updated_at, connected: false },
      { hostname: 'web-01', address: '192.0.2.1', last_seen_at: web1.updated_at, connected: true },
    ],
  },
};

let api: FakeApi;
let sent: unknown[];

beforeAll(async () => {
  api = await startFakeApi();
});
beforeEach(() => {
  sent = [];
  api.answer({
    ...readings,
    listAgents: { body: agents.map((agent) => (agent === web1 ? held : agent)) },
    getAgent: { body: held },
    renameAgent: ({ body }) => {
      sent.push(body);
      return { body: { ...web1, name: 'frontend-01' } };
    },
    keepMachine: ({ body }) => {
      sent.push(body);
      return { body: web1 };
    },
  });
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

async function golden(name: string, argv: readonly string[]): Promise<number> {
  const ran = await runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });
  expectGolden(name, transcript(argv, ran));
  return ran.status;
}

describe('a new name', () => {
  it('is given to the agent', async () => {
    expect(await golden('agents-rename', ['agents', 'rename', 'web-01', 'frontend-01'])).toBe(0);
    expect(sent).toEqual([{ name: 'frontend-01' }]);
  });

  it.each([
    [{ node_id: '3f'.repeat(16), until: 1_760_000_000 }, `agent ${'3f'.repeat(16)} until 2025-10-09`],
    [{ node_id: null, until: null }, 'another agent before'],
  ])('that another agent had is given with a warning: %j', async (name_reused, said) => {
    api.answer({ renameAgent: { body: { ...web1, name: 'frontend-01', name_reused } } });
    const { status, stderr } = await runOrch(['agents', 'rename', 'web-01', 'frontend-01'], { env: loggedIn(api) });
    expect([status, stderr]).toEqual([0, expect.stringContaining(`frontend-01 was the name of ${said}`)]);
  });
});

describe('an agent whose key two machines have', () => {
  it('is marked in lists and details', async () => {
    expect(await golden('agents-held', ['agents'])).toBe(0);
    expect(await golden('agents-show-held', ['agents', 'show', 'web-01'])).toBe(0);
  });

  it('is kept by consent, with the machine that was shown', async () => {
    expect(await golden('agents-keep-no-terminal', ['agents', 'keep', 'web-01'])).toBe(64);
    expect(sent).toEqual([]);
    expect(await golden('agents-keep', ['agents', 'keep', 'web-01', '--yes'])).toBe(0);
    expect(sent).toEqual([{ hostname: 'web-01', address: '192.0.2.1' }]);
    const argv = ['agents', 'keep', 'web-01', '--yes', '-o', 'json'];
    const { stdout } = await runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });
    expect(JSON.parse(stdout)).toMatchObject({ name: 'web-01' });
  });

  it('is not kept while none of them is connected, and needs no decision without them', async () => {
    const away = held.contest?.machines.map((machine) => ({ ...machine, connected: false })) ?? [];
    const contest = { since: web1.updated_at, machines: away };
    api.answer({ ...readings, listAgents: { body: [{ ...web1, contest }] } });
    expect(await golden('agents-keep-away', ['agents', 'keep', 'web-01', '--yes'])).not.toBe(0);
    api.answer(readings);
    expect(await golden('agents-keep-nothing', ['agents', 'keep', 'web-01', '--yes'])).toBe(0);
  });
});
