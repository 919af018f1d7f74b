/** The output of the reading commands, in every format. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectGolden, runOrch, transcript } from '../support/cli.js';
import { agents, events, readings, ulid, web1 } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi(readings);
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], columns?: number) =>
  runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' }, ...(columns === undefined ? {} : { columns }) });

/** The parts that differ from run to run. */
const steady = (text: string) => text.replaceAll(api.url, 'http://orch.test');

describe('a person reads', () => {
  it.each([
    ['status', ['status']],
    ['login', ['login']],
    ['whoami', ['operator', 'whoami']],
    ['operator-list', ['operator', 'list', '--include-removed']],
    ['operator-show', ['operator', 'show', 'grace']],
    ['agents', ['agents']],
    ['agents-wide', ['agents', '-o', 'wide']],
    ['agents-pending', ['agents', '--status', 'pending']],
    ['agents-show', ['agents', 'show', 'web-01']],
    ['facts', ['facts', 'web-01']],
    ['facts-refresh', ['facts', 'web-01', '--refresh', '-o', 'name']],
    ['facts-json', ['facts', 'web-01', '-o', 'json']],
    ['tags', ['tags']],
    ['module-list', ['module', 'list']],
    ['module-show', ['module', 'show', 'site']],
    ['state', ['state', 'web-01']],
    ['ops', ['ops']],
    ['ops-of-agent', ['ops', '--agent', 'web-01', '--limit', '1']],
    ['ops-show', ['ops', 'show', ulid(2)]],
    ['ops-show-verbose', ['ops', 'show', ulid(1), '-v']],
    ['ops-show-not-delivered', ['ops', 'show', ulid(0)]],
    ['ops-output', ['ops', 'output', ulid(1)]],
    ['drift-list', ['drift', 'list']],
    ['drift-list-of-agent', ['drift', 'list', '--agent', 'web-01']],
    ['drift-show', ['drift', 'show', ulid(7)]],
    ['drift-latest', ['drift', 'latest', 'web-01']],
    ['audit', ['audit']],
    ['audit-wide', ['audit', '-o', 'wide']],
  ])('%s', async (name, argv) => {
    const ran = await run(argv);
    expect(ran.status).toBe(0);
    expectGolden(`read-${name}`, steady(transcript(argv, ran)));
  });

  it.each([
    ['agents', 72, ['agents']],
    ['audit', 72, ['audit']],
    ['ops', 80, ['ops']],
    ['agents-60', 60, ['agents']],
    ['agents-30', 30, ['agents']],
    ['drift-list', 80, ['drift', 'list']],
  ])('%s on a terminal of %d columns', async (name, columns, argv) => {
    const ran = await run(argv, columns);
    for (const line of ran.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(columns);
    expectGolden(`narrow-${name}`, ran.stdout);
  });
});

describe('some agents', () => {
  it.each([['-l'], ['--selector'], ['--filter']])('are selected with %s', async (option) => {
    expect((await run(['agents', option, 'role=web', '-o', 'json'])).status).toBe(0);
    expect(api.requests.at(-1)).toContain('filter=role%3Dweb');
  });

  it('are those that are offline', async () => {
    const { stdout } = await run(['agents', '--status', 'offline', '-o', 'name']);
    expect(stdout).toBe('db-01\n');
    expect(api.requests.at(-1)).toContain('status=approved');
    expect((await run(['agents', '-l', 'role=web', '--filter', 'role=db'])).status).toBe(64);
  });
});

describe('an empty list', () => {
  beforeAll(() => {
    api.answer({
      listAgents: { body: [] },
      listOperations: { body: { operations: [], total: 0, limit: 50, offset: 0 } },
      listDrift: { body: { records: [] } },
    });
  });
  afterAll(() => api.answer(readings));

  it.each([
    [['agents'], 'No agents. Add a machine with: orch enroll create'],
    [['agents', '--filter', 'role=db'], 'No matching agents. '],
    [['agents', '--status', 'pending'], 'No matching agents. '],
    [['ops'], 'No operations. Begin one with: '],
    [['ops', '--status', 'failed'], 'No matching operations. '],
    [['drift', 'list'], 'No drift records. Check an agent with: '],
    [['drift', 'list', '--status', 'drifted'], 'No matching drift records. '],
  ])('tells how to begin only when nothing was left out: orch %j', async (argv, sentence) => {
    expect((await run(argv)).stdout).toContain(sentence);
  });
});

describe('a program reads', () => {
  it.each([
    [['agents'], '/agents'],
    [['agents', 'show', 'web-01'], `/agents/${web1.node_id}`],
    [['operator', 'list'], '/operators'],
    [['tags'], '/tags'],
    [['state', 'web-01'], `/agents/${web1.node_id}/state`],
    [['ops'], '/state/operations'],
    [['ops', 'show', ulid(1)], `/state/operations/${ulid(1)}`],
    [['drift', 'list'], '/drift'],
    [['drift', 'latest', 'web-01'], `/agents/${web1.node_id}/drift/latest`],
    [['audit'], '/audit'],
    [['module', 'show', 'site'], '/modules/site'],
  ])("the API's own body: orch %j -o json is %s", async (argv, path) => {
    const ran = await run([...argv, '-o', 'json']);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    const raw = await run(['api', 'GET', path]);
    expect(JSON.parse(ran.stdout)).toEqual(JSON.parse(raw.stdout));
  });

  it('the bodies of health and counts together: orch status -o json', async () => {
    const bodies = await Promise.all(['/status', '/fleet'].map((path) => run(['api', 'GET', path, '-o', 'json'])));
    const [status, fleet] = bodies.map(({ stdout }) => JSON.parse(stdout));
    expect(JSON.parse((await run(['status', '-o', 'json'])).stdout)).toEqual({ ...status, ...fleet });
  });

  it('the same as YAML', async () => {
    const ran = await run(['operator', 'show', 'ada', '-o', 'yaml']);
    expectGolden('read-operator-yaml', ran.stdout);
  });

  it.each([
    [['agents'], agents.map(({ name, node_id }) => name ?? node_id)],
    [['operator', 'list'], ['ada']],
    [['tags'], ['canary', 'env', 'role']],
    [['module', 'list'], ['site']],
    [['ops'], [ulid(2), ulid(1), ulid(0)]],
    [
      ['drift', 'list'],
      [ulid(7), ulid(6)],
    ],
    [['status'], ['ok']],
  ])('names alone: orch %j -o name', async (argv, names) => {
    expect((await run([...argv, '-o', 'name'])).stdout).toBe(names.map((name) => `${name}\n`).join(''));
  });
});

describe('which agent is meant', () => {
  it.each([
    ['web-01', 'web-01'],
    ['3f2a91c4', 'web-01'],
    ['3f2a 77d0', 'web-02'],
    ['C0FFEE', 'db-01'],
    [agents[0]?.node_id ?? '', 'db-01'],
    [agents[3]?.node_id ?? '', null],
  ])('%s is %s', async (text, name) => {
    const ran = await run(['agents', 'show', text, '-o', 'json']);
    expect(JSON.parse(ran.stdout)).toMatchObject({ name });
  });

  it.each([
    ['ambiguous', '3f2a'],
    ['too-short', '3f2'],
    ['mistyped', 'web-1'],
    ['unknown', 'elsewhere'],
    ['unknown-id', 'f'.repeat(32)],
  ])('%s', async (name, text) => {
    const argv = ['agents', 'show', text];
    expectGolden(`node-${name}`, transcript(argv, await run(argv)));
  });

  it('tells programs the candidates', async () => {
    const { stderr } = await run(['agents', 'show', '3f2a', '-o', 'json']);
    expect(JSON.parse(stderr)).toMatchObject({
      code: 'ambiguous_node',
      candidates: [{ name: 'web-01' }, { name: 'web-02' }],
    });
  });

  it('is asked for by its ID alone when that is whole', async () => {
    const before = api.requests.length;
    await run(['agents', 'show', agents[0]?.node_id ?? '']);
    expect(api.requests.slice(before)).toEqual([`GET /agents/${agents[0]?.node_id}`]);
  });
});

describe('a long list', () => {
  it('of agents is read page by page', async () => {
    const [first, ...others] = agents;
    api.answer({
      listAgents: ({ query }) =>
        query.cursor ? { body: others } : { body: [first], headers: { link: '</api/v1/agents?cursor=x>; rel="next"' } },
    });
    const ran = await run(['agents', '-o', 'json']);
    api.answer(readings);
    expect(JSON.parse(ran.stdout)).toEqual(agents);
  });

  it('of events comes with --all as one body after the other, and as one table', async () => {
    const [first, ...others] = events;
    const pages = {
      listAuditEvents: ({ query }: { readonly query: Readonly<Record<string, string>> }) =>
        query.cursor === first?.id
          ? { body: { events: others, has_more: false, next_cursor: null } }
          : { body: { events: [first], has_more: true, next_cursor: first?.id } },
    };
    api.answer(pages);
    const rest = await run(['audit', '--cursor', String(first?.id), '-o', 'json']);
    expect(JSON.parse(rest.stdout)).toMatchObject({ events: others });
    const json = await run(['audit', '--all', '-o', 'json']);
    const table = await run(['audit', '--all']);
    const one = await run(['audit']);
    api.answer(readings);
    const bodies = json.stdout.split(/^}$/m).filter((part) => part.trim() !== '');
    expect(bodies.map((part) => JSON.parse(`${part}}`).events.length)).toEqual([1, 2]);
    expect(table.stdout.match(/^TIME/gm)).toHaveLength(1);
    expect(table.stdout.trim().split('\n')).toHaveLength(4);
    expect(one.stderr).toBe('More events exist: --limit N or --all shows them.\n');
  });

  it('asks with the filters that were given', async () => {
    await run(['audit', '--category', 'agent', '--after', '2h ago', '--agent', 'web-01', '--limit', '5']);
    const query = new URLSearchParams(api.requests.at(-1)?.split('?')[1]);
    expect(Object.fromEntries(query)).toEqual({
      category: 'agent',
      after: '2025-03-01T10:00:00.000Z',
      agent: 'web-01',
      limit: '5',
    });
    await run(['agents', '--status', 'pending', '--filter', 'role in (web,db)']);
    expect(api.requests.at(-1)).toMatch(/status=pending&filter=role(%20|\+)in(%20|\+)\(web(,|%2C)db\)/);
  });
});

describe('the raw API', () => {
  it('takes a body from a flag, a file or standard input, and gives back whatever comes', async () => {
    api.answer({ replaceTags: ({ body }) => ({ status: 204, body: undefined, ...(body ? {} : { status: 500 }) }) });
    const path = `/agents/${agents[1]?.node_id}/tags`;
    const body = JSON.stringify({ tags: { a: 'b' } });
    expect(await run(['api', 'put', path, '--data', body])).toMatchObject({ status: 0, stdout: '' });
    const piped = await runOrch(['api', 'PUT', path, '--data', '@-'], { env: loggedIn(api), input: body });
    expect(piped).toMatchObject({ status: 0, stdout: '' });
    const missing = await run(['api', 'PUT', path, '--data', '@/nonexistent/x']);
    expect(missing).toMatchObject({ status: 64 });
  });

  it('shows a problem as it is, and ends with its status', async () => {
    const ran = await run(['api', 'GET', '/state/operations/nope']);
    expect(ran).toMatchObject({ status: 1, stderr: '' });
    expect(JSON.parse(ran.stdout)).toMatchObject({ code: 'operation_not_found' });
    const no = await runOrch(['api', 'GET', '/nowhere'], { env: loggedIn(api) });
    expect(JSON.parse(no.stdout)).toMatchObject({ code: 'not_found' });
  });
});
