/** Clients that two generators make of the OpenAPI document compile strictly and run the whole loop with real processes. */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Finished, Sandbox } from '../support/orch.js';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const TSC = join(root, 'node_modules/typescript/bin/tsc');
/** Path of a generator. The generators are beside the older compiler that they need. */
const generator = (name: string) => join(here, 'node_modules/.bin', name);

const GENERATORS = [
  {
    program: 'openapi-fetch',
    command: [generator('openapi-typescript'), 'openapi.json', '--output', 'api.ts'],
  },
  {
    program: 'hey-api',
    command: [generator('openapi-ts'), '--input', 'openapi.json', '--output', 'sdk', '--no-log-file'],
  },
] as const;

let sandbox: Sandbox;

/** Installs the generators with the compiler that they need. They stay apart from the libraries of the repository and its packages. */
beforeAll(() => {
  const changed = (name: string) => (existsSync(join(here, name)) ? statSync(join(here, name)).mtimeMs : 0);
  if (changed('node_modules/.package-lock.json') >= changed('package-lock.json')) return;
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: here, stdio: 'pipe' });
});

beforeEach(() => {
  sandbox = new Sandbox();
});
afterEach(() => sandbox.dispose());

/** Runs a program with Node in the sandbox, and throws with its output when it fails. */
async function node(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const child = spawn(process.execPath, args, { cwd: sandbox.path('client'), env: { ...sandbox.env, ...env } });
  const finished: Finished = await new Promise((resolve) => {
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => {
      output.stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output.stderr += chunk;
    });
    child.on('close', (status) => resolve({ status, ...output }));
  });
  if (finished.status !== 0) throw new Error(`${args.join(' ')} failed:\n${finished.stderr}${finished.stdout}`);
  return finished.stdout;
}

const COMPILER = {
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
  target: 'es2023',
  lib: ['es2023', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  types: ['node'],
  typeRoots: [join(root, 'node_modules/@types')],
};

it.each(GENERATORS)('$program', async ({ program, command }) => {
  const directory = sandbox.path('client');
  cpSync(join(here, 'programs'), directory, { recursive: true });
  symlinkSync(join(here, 'node_modules'), join(directory, 'node_modules'));
  writeFileSync(
    join(directory, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: COMPILER, files: [`${program}.ts`] }),
  );

  expect(await sandbox.orch(['operator', 'init'])).toMatchObject({ status: 0 });
  const { ready } = await sandbox.serve();
  const url = new URL('/api/v1/openapi.json', ready.api_url);
  const ca = { NODE_EXTRA_CA_CERTS: sandbox.path('serve', 'api.crt') };
  writeFileSync(
    join(directory, 'openapi.json'),
    await node(
      ['--eval', `fetch('${url}').then((answer) => answer.text()).then((text) => process.stdout.write(text))`],
      ca,
    ),
  );
  await node(command);
  await node([TSC, '--project', 'tsconfig.json']);
  const bundle = join(directory, 'client.mjs');
  await build({
    entryPoints: [join(directory, `${program}.ts`)],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });

  const data = sandbox.path('agent');
  sandbox.start(['agent', 'connect', ready.agent_address, '--orchestrator-key', ready.public_key, '--data-dir', data]);
  const site = sandbox.path('site');
  const keyFile = sandbox.path('config', 'orch', 'operator.key');
  const result = await node([bundle], { ...ca, ORCH_URL: ready.api_url, ORCH_KEY_FILE: keyFile, SITE_FILE: site });
  expect(JSON.parse(result)).toEqual({
    name: 'web-01',
    tags: { role: 'web' },
    modules: ['site'],
    plan: { has_changes: true, total: 1 },
    apply: { status: 'succeeded', changed: 1, resources: [site] },
    drift: ['in_sync', 'drifted'],
    diff: [expect.stringContaining('-by hand')],
    refusal: 'module_not_found',
  });
  expect(readFileSync(site, 'utf8')).toBe('web-01 is web\nby hand\n');
});

it('are what the guide shows', () => {
  const programs = ['loop', ...GENERATORS.map(({ program }) => program)].map((name) =>
    readFileSync(join(here, 'programs', `${name}.ts`), 'utf8'),
  );
  const guide = readFileSync(join(root, 'docs/guides/api-clients.md'), 'utf8');
  const blocks = [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  expect(blocks).toHaveLength(3);
  for (const block of blocks) expect(programs.filter((program) => program.includes(block))).toHaveLength(1);
});
