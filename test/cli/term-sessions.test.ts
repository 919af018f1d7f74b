/** `orch term list`, `show` and `close`. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TerminalDetail, TerminalSession } from '../../src/contract/terminal.js';
import { expectGolden, NOW, type RunOptions, runOrch, transcript } from '../support/cli.js';
import { operators, readings, web1, web2 } from '../support/cli-world.js';
import { type FakeApi, loggedIn, type Request, startFakeApi } from '../support/fake-api.js';

const SECONDS = NOW / 1000;

const session = (id: string, fields: Partial<TerminalSession> = {}): TerminalSession => ({
  session_id: id,
  node_id: web1.node_id,
  node_name: 'web-01',
  status: 'active',
  opened_at: SECONDS - 300,
  closed_at: null,
  kind: 'shell',
  operator_id: operators[0]?.operator_id ?? '',
  operator: 'ada',
  user: 'root',
  shell: '/bin/bash',
  command: null,
  reason: null,
  exit_code: null,
  exit_signal: null,
  recording: 'on',
  output_bytes: 12_345,
  writer: 'ada',
  viewers: ['grace', 'tim'],
  ...fields,
});

const over: Partial<TerminalSession> = {
  status: 'closed',
  closed_at: SECONDS - 60,
  recording: 'complete',
  writer: null,
  viewers: [],
};
const shell = session('01JQ2Z6T0V5X8Y4M3N7P9R1S2T');
const detached = session('01JQ2Z6T0V5X8Y4M3N7P9R1S2X', {
  node_id: web2.node_id,
  node_name: null,
  writer: null,
  viewers: [],
});
const exec = session('01JQ2Z7T0V5X8Y4M3N7P9R1S2V', {
  ...over,
  kind: 'exec',
  shell: null,
  command: ['sh', '-c', 'echo "\u001b[2J"; exit 3'],
  reason: 'exited',
  exit_code: 3,
});
const all: readonly TerminalSession[] = [
  exec,
  detached,
  shell,
  session('01JQ0000000000000000000001', { ...over, reason: 'exited', exit_code: 0 }),
  session('01JQ0000000000000000000002', { ...over, reason: 'exited', exit_signal: 'KILL' }),
  session('01JQ0000000000000000000003', { ...over, reason: 'idle', operator: 'grace' }),
  session('01JQ0000000000000000000004', {
    ...over,
    status: 'interrupted',
    reason: 'agent_lost',
    recording: 'truncated',
  }),
];

let api: FakeApi;
let now: readonly TerminalSession[];
const queries: Request['query'][] = [];

const detail = (one: TerminalSession): TerminalDetail => ({
  ...one,
  cols: 120,
  rows: 40,
  transcript_path: one.recording === 'off' ? null : `transcripts/${one.session_id}.cast`,
  transcript_sha256: one.closed_at === null ? null : 'e'.repeat(64),
});

beforeAll(async () => {
  api = await startFakeApi({
    ...readings,
    listTerminals: ({ query }) => {
      queries.push(query);
      return {
        body: now.filter(
          ({ session_id, status, kind, node_id }) =>
            (!query.prefix || session_id.startsWith(query.prefix)) &&
            (!query.status || status === query.status) &&
            (!query.kind || kind === query.kind) &&
            (!query.node || node_id === query.node),
        ),
      };
    },
    getTerminal: ({ params }) => {
      const found = now.find(({ session_id }) => session_id === params.session_id);
      if (found) return { body: detail(found) };
      return { problem: 'terminal_not_found', detail: `there is no session ${params.session_id}` };
    },
    closeTerminal: { body: undefined, status: 204 },
  });
});
beforeEach(() => {
  now = all;
  queries.length = 0;
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(['term', ...argv], { ...options, env: { ...loggedIn(api), NO_COLOR: '1' } });

describe('orch term list', () => {
  it.each([
    ['term-list', []],
    ['term-list-all', ['list', '--all', '--kind', 'shell']],
    ['term-list-wide', ['list', '--all', '-o', 'wide']],
    ['term-list-none', ['list', '--status', 'interrupted', '--node', 'web-02']],
  ])('%s', async (name, argv) => {
    const ran = await run(argv);
    expect(ran.status).toBe(0);
    expectGolden(name, transcript(['term', ...argv], ran));
  });

  it('fits the terminal', async () => {
    const { stdout } = await run(['list', '--all'], { columns: 90 });
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(90);
    expectGolden('term-list-narrow', stdout);
  });

  it('asks for what the flags say', async () => {
    await run([
      'list',
      '--node',
      'web-01',
      '--operator',
      'grace',
      '--kind',
      'exec',
      '--status',
      'closed',
      '--limit',
      '7',
    ]);
    expect(queries).toEqual([{ node: web1.node_id, operator: 'grace', kind: 'exec', status: 'closed', limit: '7' }]);
  });

  it("is the API's own body for programs", async () => {
    expect(JSON.parse((await run(['list', '-o', 'json'])).stdout)).toEqual([detached, shell]);
    expect((await run(['list', '-o', 'name'])).stdout).toBe(`${detached.session_id}\n${shell.session_id}\n`);
  });

  it.each([['term-list-all-and-status', ['list', '--all', '--status', 'closed']]])('%s', async (name, argv) => {
    const ran = await run(argv);
    expect(ran.status).toBe(64);
    expectGolden(name, transcript(['term', ...argv], ran));
  });
});

describe('orch term show', () => {
  it.each([
    ['term-show', shell.session_id],
    ['term-show-exec', exec.session_id],
  ])('%s', async (name, id) => {
    const ran = await run(['show', id]);
    expect(ran.status).toBe(0);
    expectGolden(name, transcript(['term', 'show', id], ran));
  });

  it('takes a beginning of the ID that no other session has', async () => {
    expect(JSON.parse((await run(['show', '01jq2z7', '-o', 'json'])).stdout)).toEqual(detail(exec));
    expect(queries).toEqual([{ prefix: '01JQ2Z7', limit: '11' }]);
  });

  it('names some of many sessions that begin so', async () => {
    const last = (index: number) => String(index).padStart(2, '0');
    now = Array.from({ length: 11 }, (_, index) => ({
      ...shell,
      session_id: `01JQ2Z6T0V5X8Y4M3N7P9R1S${last(index)}`,
    }));
    const { status, stderr } = await run(['show', '01JQ2Z6T0V5X8Y4M3N7P9R1']);
    expect(status).toBe(64);
    expect(stderr).toContain('begins the IDs of more than 10 sessions; the newest:');
    expect(stderr.match(/ada on web-01/g)).toHaveLength(10);
  });

  it.each(['01JQ2Z6%', '01JU', "01JQ'"])('has no session whose ID begins with %s', async (id) => {
    expect(await run(['show', id])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('there is no session'),
    });
    expect(queries).toEqual([]);
  });

  it.each([
    ['ambiguous', '01JQ2Z6', 64],
    ['short', '01J', 64],
    ['unknown', '01JZ', 1],
    ['unknown-id', '01JZ0000000000000000000000', 1],
  ])('%s', async (name, id, status) => {
    const ran = await run(['show', id]);
    expect(ran.status).toBe(status);
    expectGolden(`term-show-${name}`, transcript(['term', 'show', id], ran));
  });
});

describe('orch term close', () => {
  const closed = () => api.requests.filter((request) => request.startsWith('DELETE')).length;

  it('asks, and closes', async () => {
    const before = closed();
    const no = await run(['close', shell.session_id], { columns: 80, answers: [{ at: /\(y\/N\)/, type: 'n\n' }] });
    expect(no.status).toBe(1);
    expect(no.stderr).toContain('ada on web-01, /bin/bash');
    expect(closed()).toBe(before);
    const yes = await run(['close', shell.session_id.slice(0, 26), '--yes']);
    expect(yes).toMatchObject({ status: 0, stdout: `Closed ${shell.session_id}.\n` });
    expect(closed()).toBe(before + 1);
  });

  it('closes several after one question, and none unless all can be', async () => {
    const before = closed();
    const both = [shell.session_id, detached.session_id];
    const refused = await run(['close', ...both, exec.session_id, '--yes']);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining(`${exec.session_id} is over`) });
    expect(closed()).toBe(before);
    const yes = await run(['close', ...both, shell.session_id], {
      columns: 80,
      answers: [{ at: /Close these 2 sessions, and end their programs\?/, type: 'y\n' }],
    });
    expect(yes).toMatchObject({ status: 0, stdout: both.map((id) => `Closed ${id}.\n`).join('') });
    expect(closed()).toBe(before + 2);
  });

  it.each([
    ['term-close-no-terminal', shell.session_id, 64],
    ['term-close-over', exec.session_id, 1],
  ])('%s', async (name, id, status) => {
    const ran = await run(['close', id]);
    expect(ran.status).toBe(status);
    expectGolden(name, transcript(['term', 'close', id], ran));
  });
});
