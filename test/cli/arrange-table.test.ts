/** `--sort` and `--columns`: what a table shows, and what a narrow terminal gives up. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands/index.js';
import { columnName } from '../../src/cli/table-options.js';
import { runOrch } from '../support/cli.js';
import { readings } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi(readings);
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (words: string, columns?: number) =>
  runOrch(words.split(' '), {
    env: { ...loggedIn(api), NO_COLOR: '1' },
    ...(columns === undefined ? {} : { columns }),
  });

/** Returns the first column of a table, without its title. */
const firstOf = (table: string): readonly string[] =>
  table
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.trimStart().split('  ')[0] ?? '');

const titlesOf = (table: string): readonly string[] => (table.split('\n')[0] ?? '').split(/ {2,}/);

describe('--sort', () => {
  it.each([
    ['agents --sort name', ['db-01', 'web-01', 'web-02', '-']],
    ['agents --sort -name', ['web-02', 'web-01', 'db-01', '-']],
    ['agents --sort tags', ['web-01', 'db-01', 'web-02', '-']],
    ['agents --sort NAME', ['db-01', 'web-01', 'web-02', '-']],
  ])('orch %s', async (words, names) => expect(firstOf((await run(words)).stdout)).toEqual(names));

  it('orders numbers as numbers, and ages by their times', async () => {
    const changed = (await run('ops --columns changed --sort -changed')).stdout;
    expect(firstOf(changed).map((cell) => cell.trim())).toEqual(['6', '4', '0']);
    const added = async (sort: string) => firstOf((await run(`operator list --include-removed --sort ${sort}`)).stdout);
    expect(await added('added')).toEqual(['ada', 'grace']);
    expect(await added('-added')).toEqual(['grace', 'ada']);
  });

  it('orders names too', async () => {
    expect((await run('agents --sort -name -o name')).stdout.split('\n').slice(0, 2)).toEqual(['web-02', 'web-01']);
  });

  it('needs the whole list', async () => {
    const ran = await run('audit --all --sort time');
    expect(ran).toMatchObject({ status: 64, stdout: '', stderr: expect.stringContaining('--limit N') });
  });
});

describe('--columns', () => {
  it('shows these columns in this order, also those of -o wide', async () => {
    const { stdout } = await run('agents --columns last-connected,name', 60);
    expect(titlesOf(stdout)).toEqual(['LAST CONNECTED', 'NAME']);
    expect(stdout).toContain('2 h ago');
  });

  it('drops none of them on a narrow terminal', async () => {
    const { stdout } = await run('ops --columns operation-id,agent,status,changed,failed,modules', 60);
    expect(titlesOf(stdout)).toHaveLength(6);
  });
});

it.each([
  ['agents --sort nmae', '--sort takes name, status'],
  ['agents --columns name,nope', '--columns takes name, status'],
  ['agents --sort name -o json', 'does not go with -o json'],
  ['agents --columns name -q', 'does not go with -o name'],
  ['config show --sort value', 'there is no table'],
])('orch %s is wrong usage', async (words, message) => {
  const ran = await run(words);
  expect(ran.status).toBe(64);
  expect(ran.stdout).toBe('');
  expect(ran.stderr).toContain(message);
});

describe('a narrow terminal keeps what people look for', () => {
  it.each([
    ['agents --filter role=web', 60, ['NAME', 'STATUS', 'CONNECTED', 'STANDING', 'TAGS']],
    ['ops', 60, ['OPERATION ID', 'AGENT', 'STATUS', 'STARTED']],
    ['ops', 80, ['OPERATION ID', 'AGENT', 'STATUS', 'FAILED', 'STARTED', 'MODULES']],
    ['rollouts', 60, ['ROLLOUT ID', 'STATE', 'WHAT', 'DONE']],
    ['audit', 60, ['TIME', 'EVENT', 'BY', 'SUMMARY']],
    ['operator list', 60, ['USERNAME', 'ROLE', 'ADDED', 'REMOVED']],
  ])('orch %s at %d columns', async (words, columns, titles) => {
    expect(titlesOf((await run(words, columns)).stdout)).toEqual(expect.arrayContaining(titles));
  });

  it('gives up the node ID, unless a machine has no name yet', async () => {
    expect((await run('agents --status approved', 60)).stdout).not.toContain('NODE ID');
    expect((await run('agents', 60)).stdout).toContain('NODE ID');
  });
});

it.each(COMMANDS.filter(({ path }) => /(list|revisions|snoozes|^tags)$/.test(path)))(
  'orch $path takes --sort and --columns',
  async ({ load }) => {
    const names = (await load()).columns.map(columnName);
    expect(names.length).toBeGreaterThan(1);
    expect(new Set(names).size).toBe(names.length);
  },
);
