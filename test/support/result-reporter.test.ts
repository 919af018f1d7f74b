/** The result of a run of tests, also when it was cut off in the middle. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

function summary(results: string, status = 0): { readonly text: string; readonly status: number | null } {
  const run = spawnSync(process.execPath, [join(root, 'scripts/test-summary.mjs'), results, String(status)], {
    encoding: 'utf8',
  });
  return { text: run.stdout, status: run.status };
}

function project(files: Readonly<Record<string, string>>): string {
  // Below the repository, so that its vitest is found.
  const directory = mkdtempSync(join(root, 'node_modules/.orch-results-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'vitest.config.mjs'), 'export default {};\n');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

function runTests(directory: string): { readonly results: string; readonly status: number | null } {
  const results = join(directory, 'results');
  const { status } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', `--reporter=${join(root, 'scripts/result-reporter.mjs')}`],
    { cwd: directory, env: { ...process.env, ORCH_TEST_RESULTS: results, VITEST: undefined }, encoding: 'utf8' },
  );
  return { results, status };
}

it('counts tests, and a file that fails outside of its tests', () => {
  const { results, status } = runTests(
    project({
      'a.test.mjs':
        "import { expect, it } from 'vitest'; it('x', () => {}); it.skip('y'); it('z', () => expect(1).toBe(2));",
      'b.test.mjs': "throw new Error('no');",
    }),
  );
  expect(summary(results, status ?? 1)).toEqual({ text: '1 passed, 2 failed, 1 skipped\n', status: 1 });
});

it('counts what had run when the runner was ended, and names the files that did not end', () => {
  // Vitest may hold a result back until the next test starts (its `throttle` in 4.1), so many short tests wait for the first.
  const { results, status } = runTests(
    project({
      'a.test.mjs': `
        import { readFileSync } from 'node:fs';
        import { it } from 'vitest';
        const runner = process.ppid;
        for (let index = 0; index < 1000; index += 1) {
          it(String(index), async () => {
            await new Promise((resolve) => setTimeout(resolve, 20));
            if (!readFileSync(process.env.ORCH_TEST_RESULTS, 'utf8').includes('"passed"')) return;
            process.kill(runner, 'SIGKILL');
            await new Promise(() => {});
          });
        }`,
    }),
  );
  expect(status).toBeNull();
  expect(summary(results, 124)).toEqual({
    text: expect.stringMatching(
      /^1 test files did not end:\n {2}a\.test\.mjs\n[1-9]\d* passed, 1 failed, 0 skipped\n$/,
    ),
    status: 1,
  });
});

it('adds up the time of each suite, the slowest first', () => {
  const directory = mkdtempSync(join(tmpdir(), 'orch-results-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const ended = (file: string, seconds: number, cpu?: number) => JSON.stringify({ file, event: 'ended', seconds, cpu });
  const lines = [
    ended('test/api/a.test.ts (on SQLite)', 6, 1),
    ended('test/api/inner/b.test.ts (on SQLite)', 5.4, 3),
    ended('test/api/a.test.ts (on PostgreSQL)', 9.9),
    ended('test/slow.test.ts (on SQLite)', 100),
    JSON.stringify({ file: 'test/slow.test.ts (on SQLite)', test: 'x', state: 'passed' }),
  ];
  writeFileSync(join(directory, 'results'), `${lines.join('\n')}\n`);
  expect(summary(join(directory, 'results')).text).toBe(
    'time of the workers, and of the processors, of all that took ten seconds:\n' +
      '    100 s     0 s  test/slow.test.ts (on SQLite)\n     11 s     4 s  test/api (on SQLite)\n1 passed, 0 failed, 0 skipped\n',
  );
});

it('fails when no test ran, and passes over a line that was cut off', () => {
  const directory = mkdtempSync(join(tmpdir(), 'orch-results-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  expect(summary(join(directory, 'none'))).toEqual({ text: 'no test ran\n0 passed, 0 failed, 0 skipped\n', status: 1 });
  writeFileSync(join(directory, 'torn'), '{"file":"a","test":"x","state":"passed"}\n{"file":"a","te');
  expect(summary(join(directory, 'torn'))).toEqual({ text: '1 passed, 0 failed, 0 skipped\n', status: 0 });
});
