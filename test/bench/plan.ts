/** How long a plan takes that has nothing to do: a thousand small files on this machine. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { bareEnvironment } from './guard.js';
import { alternate, atMostTimes, type Bench, numbersOf, OURS, type Part, type Row, rowOf } from './row.js';
import { runProgram } from './run-program.js';

const FILES = 1_000;
const SIZE = 200;
const ROUNDS = 9;
const LOOP = 'a loop in Node';
const CFENGINE = 'cf-agent';
const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));

interface WantedFile {
  readonly path: string;
  readonly content: string;
}

const WHAT = `plan: ${FILES} files, nothing to do`;

export const plan: Part = {
  name: 'plan',
  summary: `orch plan --local of ${FILES} files that are as they should be; beside a plain loop over them, and CFEngine`,
  run: (bench) =>
    bench.measure([WHAT], async () => {
      const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
      try {
        return await measurePlan(directory, bench);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }),
};

async function measurePlan(directory: string, { say, missing, peers }: Bench): Promise<readonly Row[]> {
  const files = makeFiles(directory);
  const env = bareEnvironment(directory);
  const orch = (...words: readonly string[]) => [process.execPath, ORCH, ...words];
  const common = ['--local', '-f', writeModule(directory, files), '--data-dir', join(directory, 'data')];
  say('plan: the files are applied once');
  await runProgram(orch('apply', ...common, '--yes'), { env });
  const programs = new Map<string, readonly string[]>([
    [OURS, orch('plan', ...common, '--detailed-exitcode')],
    [LOOP, [process.execPath, writeLoop(directory, files)]],
  ]);
  const cfengine = peers ? cfengineOf(directory, files) : null;
  if (cfengine !== null) programs.set(CFENGINE, cfengine);
  else if (peers) missing(CFENGINE, 'not installed; apt-get install cfengine3');
  const runs = await alternate(
    ROUNDS,
    new Map([...programs].map(([name, words]) => [name, () => runProgram(words, { env })])),
  );
  return [
    rowOf({ what: WHAT, unit: 'ms', runs: numbersOf(runs, ({ wall }) => wall), goal: atMostTimes(0.8, CFENGINE) }),
  ];
}

/** Directories within directories, a few files in each. */
function makeFiles(directory: string): readonly WantedFile[] {
  const files = Array.from({ length: FILES }, (_, index) => ({
    path: join(directory, 'tree', `${index % 10}`, `${Math.floor(index / 10) % 10}`, `file-${index}`),
    content: `${index} `
      .repeat(SIZE)
      .slice(0, SIZE - 1)
      .concat('\n'),
  }));
  for (const { path } of files) mkdirSync(dirname(path), { recursive: true });
  return files;
}

function writeModule(directory: string, files: readonly WantedFile[]): string {
  const path = join(directory, 'bench.orch.yaml');
  const resources = files.map(({ path, content }) => ({ resource: { 'file-unix': { path, content } } }));
  writeFileSync(path, stringify({ name: 'bench', supports: [{ platform: process.platform }], resources }));
  return path;
}

/** The least that any program has to do: read each file and compare it. */
function writeLoop(directory: string, files: readonly WantedFile[]): string {
  const list = join(directory, 'files.json');
  const path = join(directory, 'loop.mjs');
  writeFileSync(list, JSON.stringify(files));
  writeFileSync(
    path,
    `import { readFileSync } from 'node:fs';
for (const { path, content } of JSON.parse(readFileSync(${JSON.stringify(list)}, 'utf8'))) {
  if (!readFileSync(path).equals(Buffer.from(content))) process.exit(1);
}
`,
  );
  return path;
}

/** Null when it is not installed. */
function cfengineOf(directory: string, files: readonly WantedFile[]): readonly string[] | null {
  if (spawnSync('cf-agent', ['--version']).status !== 0) return null;
  const promises = files.map(
    ({ path, content }) => `    "${path}" create => "true", content => "${content.trimEnd()}\n";`,
  );
  const policy = join(directory, 'bench.cf');
  const bundle = ['bundle agent main', '{', '  files:', ...promises, '}', ''];
  writeFileSync(policy, bundle.join('\n'), { mode: 0o600 });
  return ['cf-agent', '--no-lock', '--file', policy];
}
