/** Values of a run of its own (`--set`, `--values`), and the history of value sets, as commands show them. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { OperationDetail } from '../../src/contract/operations.js';
import { expectGolden, Home, type RunOptions, runOrch, settledText, transcript } from '../support/cli.js';
import {
  applied,
  appliedStream,
  haltedRollout,
  operations,
  planned,
  readings,
  reported,
  rolloutRecord,
  runResult,
  streamed,
  streamOf,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
const home = new Home();
const SET_TEXT = 'values:\n  - when: {}\n    set: {nginx: {workers: 8}}\n';
const setFile = home.file('trial.values.yaml');

beforeAll(async () => {
  api = await startFakeApi();
  writeFileSync(setFile, SET_TEXT);
});
beforeEach(() => api.answer(readings));
afterAll(async () => {
  await api.stop();
  home.dispose();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, columns: 80, env: { ...loggedIn(api), NO_COLOR: '1', ...options.env } });

const golden = async (name: string, argv: readonly string[], options: RunOptions = {}) => {
  const ran = await run(argv, options);
  const shown = argv.map((word) => word.replace(home.path, '~'));
  const text = transcript(shown, ran).replaceAll(home.path, '~');
  expectGolden(name, settledText(text));
  return ran;
};

const HASH = `${'a'.repeat(64)}.${'b'.repeat(64)}`;
const own = { value_inputs: ['nginx.workers', 'shared.domain'] };
const values = { set: ['nginx:workers=8'], files: [{ name: '~/trial.values.yaml', content: SET_TEXT }] };
const sent = { ...values, files: [{ name: setFile, content: SET_TEXT }] };
const GIVEN = ['--set', 'nginx:workers=8', '--values', setFile];

describe('values of a run of its own', () => {
  it('go with a plan, an apply and a saved plan', async () => {
    const bodies: unknown[] = [];
    const keep =
      <T>(answer: T) =>
      ({ body }: { readonly body: unknown }): T => {
        bodies.push((body as { readonly values?: unknown }).values);
        return answer;
      };
    api.answer({
      planAgent: keep(streamOf(runResult(planned.slice(0, 2), { ...own, plan_hash: HASH }))),
      applyAgent: keep(streamOf(runResult(applied.slice(0, 2), { ...own, operation_id: ulid(2) }))),
    });
    expect((await golden('plan-values', ['plan', 'web-01', ...GIVEN])).status).toBe(0);
    expect((await golden('apply-values', ['apply', 'web-01', ...GIVEN, '--yes'])).status).toBe(0);
    const file = home.file('own.orchplan');
    expect(await run(['plan', 'web-01', ...GIVEN, '--out', file])).toMatchObject({ status: 0 });
    expect((await golden('apply-plan-values', ['apply', file, '--yes'])).status).toBe(0);
    expect(bodies).toEqual([sent, sent, sent, sent]);
  });

  it('go with a rollout', async () => {
    const bodies: { values?: unknown }[] = [];
    const answer = (results: Parameters<typeof streamed>[0]) => streamed(results);
    api.answer({
      planRollout: ({ body }) => {
        bodies.push(body as object);
        return answer([web1, web2].map((agent) => reported(agent, runResult(planned.slice(0, 2), own))));
      },
      applyRollout: ({ body }) => {
        bodies.push(body as object);
        const results = [web1, web2].map((agent, index) =>
          reported(agent, runResult(applied.slice(0, 2), { ...own, operation_id: ulid(index + 1), plan_hash: null })),
        );
        return appliedStream(results);
      },
    });
    expect((await run(['plan', 'web-01', 'web-02', ...GIVEN])).status).toBe(0);
    expect((await golden('apply-rollout-values', ['apply', 'web-01', 'web-02', ...GIVEN, '--yes'])).status).toBe(0);
    expect(bodies.map((body) => body.values)).toEqual([sent, sent]);
  });

  it.each([
    [['--to', ulid(1)], '--to excludes --values'],
    [['--set', 'a:b=1', '--to', ulid(1)], '--to excludes --values'],
  ])('are refused beside %j', async (more, message) => {
    const ran = await run(['apply', 'web-01', ...GIVEN, ...more, '--yes']);
    expect(ran).toMatchObject({ status: 64 });
    expect(ran.stderr).toContain(message);
  });

  it('are refused beside a saved plan, without a file, and when there are too many', async () => {
    const plan = home.file('none.orchplan');
    const beside = await run(['apply', plan, ...GIVEN, '--yes']);
    expect(beside.stderr.replace(/\n */g, ' ')).toContain('so it stands alone');
    const away = await run(['plan', 'web-01', '--values', home.file('away.values.yaml')]);
    expect(away.stderr).toContain('away.values.yaml does not exist');
    const many = Array.from({ length: 101 }, (_, at) => ['--set', `a:b${at}=1`]).flat();
    expect((await run(['plan', 'web-01', ...many])).stderr).toContain('at most 100 are taken');
    const long = await run(['plan', 'web-01', '--set', `a:b=${'x'.repeat(9000)}`]);
    expect(long.stderr).toContain('--set a:b has more than 8192 characters');
    expect(long.stderr).toContain('write the values into a file of --values');
    writeFileSync(home.file('large.values.yaml'), `# ${'x'.repeat(300_000)}\n`);
    const large = await run(['plan', 'web-01', '--values', home.file('large.values.yaml')]);
    expect(large.stderr).toContain('has more than 256.0 KiB');
  });

  it('are shown with the operation and the rollout', async () => {
    const operation = { ...(operations[1] as OperationDetail), ...own, values };
    api.answer({ getOperation: { body: operation }, getRollout: { body: { ...haltedRollout, ...own, values } } });
    await golden('ops-show-values', ['ops', 'show', operation.operation_id]);
    await golden('rollouts-show-values', ['rollouts', 'show', haltedRollout.rollout_id]);
    const json = JSON.parse((await run(['ops', 'show', operation.operation_id, '-o', 'json'])).stdout);
    expect(json).toMatchObject({ ...own, values });
  });

  it('are explained as what the agent has', async () => {
    const applied = { value: 8, from: '--set nginx:workers', operation_id: ulid(2) };
    const candidates = [{ value: 4, from: 'prod.values.yaml:3', when: {}, used: true }];
    const input = { name: 'workers', value: 4, is_default: false, candidates, problem: null, applied };
    api.answer({ explainValues: { body: { modules: [{ module: 'nginx', inputs: [input] }] } } });
    await golden('explain-values', ['explain', 'web-01', 'nginx.workers']);
  });
});

describe('a rollout during which stored values change', () => {
  const changes = [
    { source: 'values' as const, name: 'prod', at: 1_770_000_000, by: 'ada' },
    { source: 'assignment' as const, name: 'web', at: 1_770_000_000, by: 'bob' },
  ];

  it('says so, and what to do', async () => {
    const counts = { ...haltedRollout.counts, waiting: 3 };
    const over = { ...counts, waiting: 0 };
    api.answer({ getRollout: { body: { ...haltedRollout, counts: over, value_changes: changes } } });
    const { stdout } = await run(['rollouts', 'show', haltedRollout.rollout_id]);
    expect(stdout).toContain('  Agents with older values are behind: orch agents --status behind\n');
    api.answer({ getRollout: { body: { ...haltedRollout, counts, value_changes: changes } } });
    const shown = await golden('rollouts-show-value-changes', ['rollouts', 'show', haltedRollout.rollout_id]);
    const lines = shown.stdout.split('\n');
    const warning = lines.slice(lines.findIndex((line) => line.startsWith('Values have changed'))).slice(0, 3);
    expect(Math.max(...warning.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('warns once for each change while it is followed', async () => {
    const record = rolloutRecord();
    const results = [web1, web2].map((agent, index) =>
      reported(agent, runResult(applied.slice(0, 2), { operation_id: ulid(index + 1), plan_hash: null })),
    );
    const { lines } = appliedStream(results) as unknown as { readonly lines: readonly object[] };
    const [first, ...rest] = lines;
    const told = (value_changes: readonly object[]) => ({ event: 'rollout', rollout: { ...record, value_changes } });
    api.answer({
      applyRollout: { lines: [first, told(changes.slice(0, 1)), told(changes), told(changes), ...rest] } as never,
    });
    const { stderr } = await run(['apply', 'web-01', 'web-02', '-m', 'site', '--yes']);
    const warnings = stderr.split('\n').filter((line) => line.includes('during the rollout'));
    expect(warnings).toEqual([
      expect.stringContaining('ada has changed value set prod during the rollout'),
      expect.stringContaining('bob has changed the values of assignment web during the rollout'),
    ]);
  });
});

describe('the history of a value set', () => {
  const revision = (number: number, sha256: string | null) => ({
    name: 'prod',
    revision: number,
    sha256,
    uploaded_at: 1_770_000_000 + number,
    uploaded_by: 'ada',
  });
  const stored = { ...revision(1, 'a'.repeat(64)), sha256: 'a'.repeat(64), modules: ['nginx'], content: SET_TEXT };

  it('is listed, and an older text is shown and compared', async () => {
    const asked: (string | undefined)[] = [];
    api.answer({
      listValueSetRevisions: {
        body: { revisions: [revision(3, null), revision(2, 'b'.repeat(64)), revision(1, 'a'.repeat(64))] },
      },
      getValueSet: ({ query }) => {
        asked.push(query.revision);
        return { body: stored };
      },
    });
    await golden('values-revisions', ['values', 'revisions', 'prod']);
    expect((await run(['values', 'revisions', 'prod', '-o', 'name'])).stdout).toBe('3\n2\n1\n');
    await golden('values-show-revision', ['values', 'show', 'prod', '--revision', '1']);
    const file = home.file('prod.values.yaml');
    writeFileSync(file, SET_TEXT.replace('8', '9'));
    await golden('values-diff', ['values', 'diff', file, '--revision', '1']);
    writeFileSync(file, SET_TEXT);
    expect((await run(['values', 'diff', file])).stdout).toBe(`${file} is revision 1 of prod.\n`);
    expect(asked).toEqual(['1', '1', undefined]);
  });

  it('is compared also for a set that is not stored, and not for a revision that is not kept', async () => {
    api.answer({ getValueSet: { problem: 'values_not_found', detail: 'there is no value set "prod"' } });
    const file = home.file('prod.values.yaml');
    writeFileSync(file, SET_TEXT);
    expect((await run(['values', 'diff', file])).stdout).toContain('+    set: {nginx: {workers: 8}}');
    expect((await run(['values', 'diff', file, '--revision', '7'])).status).toBe(1);
  });
});
