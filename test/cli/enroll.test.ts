/** The output of the commands of enrolment tokens, and the ways to give one to the agent. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedEnrolmentToken, EnrolmentTokenRecord } from '../../src/contract/enrolment-tokens.js';
import type { AgentConnectFlags } from '../../src/programs/agent.js';
import { expectGolden, Home, NOW, noPrograms, runOrch, transcript } from '../support/cli.js';
import { operators, ulid } from '../support/cli-world.js';
import { type FakeApi, loggedIn, type Request, startFakeApi } from '../support/fake-api.js';

const SECONDS = NOW / 1000;

const record: EnrolmentTokenRecord = {
  id: ulid(1),
  created_by: operators[0]?.operator_id ?? '',
  created_at: SECONDS,
  expires_at: SECONDS + 3600,
  uses: 1,
  uses_left: 1,
  tags: {},
  auto_approve: false,
  last_used_at: null,
};

const TOKEN = `orch-enroll-v1.${ulid(1)}.${'s'.repeat(42)}Q.${'k'.repeat(42)}Q`;

const created: CreatedEnrolmentToken = {
  ...record,
  token: TOKEN,
  agent_host: 'orch.home',
  agent_port: 4747,
  reachable_host: '192.0.2.7',
  install: null,
};

const listed: readonly EnrolmentTokenRecord[] = [
  {
    ...record,
    expires_at: SECONDS - 1,
    uses: 20,
    uses_left: 3,
    tags: { role: 'web', canary: '' },
    last_used_at: SECONDS - 120,
  },
  { ...record, id: ulid(2), uses_left: 0, last_used_at: SECONDS - 7200 },
  { ...record, id: ulid(3), auto_approve: true },
];

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi({ listOperators: { body: operators } });
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[]) => runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });

async function golden(name: string, argv: readonly string[], status: number): Promise<void> {
  const ran = await run(argv);
  expect(ran.status).toBe(status);
  expectGolden(name, transcript(argv, ran));
}

/** The request for the next token. */
function recordBody(answer: CreatedEnrolmentToken = created): () => unknown {
  let body: unknown;
  api.answer({
    createEnrolmentToken: (request: Request) => {
      ({ body } = request);
      return { body: answer };
    },
  });
  return () => body;
}

describe('orch enroll create', () => {
  it('prints the line to run', async () => {
    const asked = recordBody();
    await golden('enroll-create', ['enroll', 'create'], 0);
    expect(asked()).toEqual({ ttl_secs: 3600, uses: 1, tags: {}, auto_approve: false });
    const json = await run(['enroll', 'create', '-o', 'json']);
    const command = `echo ${TOKEN} | orch agent install orch.home:4747 --token -`;
    expect(JSON.parse(json.stdout)).toEqual({ ...created, command, curl: null, wget: null });
    expect((await run(['enroll', 'create', '-o', 'name'])).stdout).toBe(`${ulid(1)}\n`);
  });

  it('says on a terminal what it waits for, until the token is there', async () => {
    recordBody();
    const { stderr } = await runOrch(['enroll', 'create'], { env: { ...loggedIn(api), NO_COLOR: '1' }, columns: 80 });
    expect(stderr).toMatch(/^making a token, .*\r\u001b\[2K$/s);
  });

  it.each([
    [['--ephemeral'], 3600, '1 h'],
    [['--ephemeral=5m', '--auto-approve'], 300, '5 min'],
  ])('asks with %j for agents that are removed again', async (options, secs, said) => {
    const asked = recordBody({ ...created, ephemeral_secs: secs });
    const { stdout } = await run(['enroll', 'create', ...options]);
    expect(asked()).toMatchObject({ ephemeral_secs: secs });
    expect(stdout).toContain(`, and removes it after ${said} without a connection.`);
  });

  it('says what the token does', async () => {
    const tags = { role: 'web', site: 'a=b' };
    const asked = recordBody({ ...created, uses: 20, uses_left: 20, auto_approve: true, tags });
    const argv = [
      'enroll',
      'create',
      '--ttl',
      '1d',
      '--uses',
      '20',
      '--tag',
      'role=web',
      '--tag',
      'site=a=b',
      '--auto-approve',
    ];
    await golden('enroll-create-approving', argv, 0);
    expect(asked()).toEqual({ ttl_secs: 86_400, uses: 20, tags, auto_approve: true });
  });

  it('prints lines for machines without orch when there is a package for them', async () => {
    const pin = `sha256//${'p'.repeat(43)}=`;
    recordBody({ ...created, install: { pin, cpus: ['x64', 'arm64'] } });
    await golden('enroll-create-install', ['enroll', 'create'], 0);
    const { curl, wget } = JSON.parse((await run(['enroll', 'create', '-o', 'json'])).stdout);
    expect(curl).toBe(
      `echo 'header = "Authorization: Bearer ${TOKEN}"' | (curl -fsSk --config - --pinnedpubkey '${pin}' https://orch.home:4747/install.sh || echo 'echo "orch: nothing was installed, because the token has ended or another key answered" >&2; exit 1') | sh`,
    );
    expect(wget).toContain(`--pinnedpubkey '${pin}'`);
  });

  it('names an address that others reach when the API is used over loopback', async () => {
    recordBody({ ...created, agent_host: null, reachable_host: '2001:db8::7' });
    const ran = await run(['enroll', 'create']);
    expect(ran.stdout).toContain("orch agent install '[2001:db8::7]:4747' --token -");
    expect(ran.stderr).toBe('');
  });

  it('warns when the line works on this machine alone', async () => {
    recordBody({ ...created, agent_host: null, agent_port: 14747, reachable_host: '127.0.0.1' });
    await golden('enroll-create-loopback', ['enroll', 'create'], 0);
  });

  it('writes an IPv6 address in brackets', async () => {
    recordBody({ ...created, agent_host: '2001:db8::1' });
    expect((await run(['enroll', 'create'])).stdout).toContain("install '[2001:db8::1]:4747' --token");
  });

  it.each([
    [['--ttl', 'soon'], '--ttl takes a duration, not "soon"'],
    [['--ttl', '8d'], '--ttl is at most 7d'],
    [['--uses', '0'], '--uses takes a whole number of at least 1'],
    [['--uses', '1001'], '--uses is at most 1000'],
    [['--ephemeral=299s'], '--ephemeral is from 5m to 7d'],
    [['--ephemeral=8d'], '--ephemeral is from 5m to 7d'],
    [['--ephemeral=soon'], '--ephemeral takes a duration, not "soon"'],
  ])('refuses %j before it asks', async (options, told) => {
    const before = api.requests.length;
    const ran = await run(['enroll', 'create', ...options]);
    expect([ran.status, ran.stdout]).toEqual([64, '']);
    expect(ran.stderr).toContain(told);
    expect(api.requests).toHaveLength(before);
  });
});

describe('orch enroll', () => {
  it('list', async () => {
    api.answer({ listEnrolmentTokens: { body: listed } });
    await golden('enroll-list', ['enroll', 'list'], 0);
    expect(JSON.parse((await run(['enroll', 'list', '-o', 'json'])).stdout)).toEqual(listed);
    api.answer({ listEnrolmentTokens: { body: [] } });
    await golden('enroll-list-empty', ['enroll', 'list'], 0);
  });

  it('revoke', async () => {
    api.answer({ revokeEnrolmentToken: { body: undefined, status: 204 } });
    await golden('enroll-revoke', ['enroll', 'revoke', ulid(1)], 0);
    expect(api.requests.at(-1)).toBe(`DELETE /enrolment-tokens/${ulid(1)}`);
  });
});

describe('orch agent connect --token', () => {
  async function connect(given: string, options: Parameters<typeof runOrch>[1] = {}) {
    const flags: AgentConnectFlags[] = [];
    const agent = {
      ...noPrograms.agent,
      connect: async (one: AgentConnectFlags) => {
        flags.push(one);
        return 0;
      },
    };
    const ran = await runOrch(['agent', 'connect', 'h', '--token', given], { programs: { agent }, ...options });
    return { ran, token: flags[0]?.token };
  }

  it('takes it from standard input, a file, a question, or as it is', async () => {
    const home = new Home();
    const file = home.file('token');
    writeFileSync(file, `${TOKEN}\r\n`);
    expect((await connect('-', { input: `${TOKEN} \n` })).token).toBe(TOKEN);
    expect((await connect(`@${file}`)).token).toBe(TOKEN);
    expect((await connect(TOKEN)).token).toBe(TOKEN);
    const asked = await connect('-', { columns: 80, answers: [{ at: 'Enrolment token', type: `${TOKEN}\r` }] });
    expect(asked.token).toBe(TOKEN);
    expect(asked.ran.stdout + asked.ran.stderr).not.toContain(TOKEN);
    home.dispose();
  });

  it('refuses what holds nothing', async () => {
    const { ran, token } = await connect('-', { input: '\n' });
    expect([ran.status, token]).toEqual([64, undefined]);
    expect(ran.stderr).toContain('--token - holds nothing');
    expect((await connect('@/nonexistent/token')).ran.stderr).toContain('/nonexistent/token does not exist');
  });
});
