/**
 * Installs, builds and tests the committed state on other versions of Node, each in a fresh clone:
 * npm run test:node [-- 22 24 26 PATH…]. With paths only the tests whose file has one of them in its name.
 */
import { spawn } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { summarise } from './test-summary.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const words = process.argv.slice(2);
const isMajor = (word) => /^\d+$/.test(word);
const majors = words.some(isMajor) ? words.filter(isMajor) : ['22', '24', '26'];
const paths = words.filter((word) => !isMajor(word));
const work = mkdtempSync(join(tmpdir(), 'orch-node-matrix-'));
let running;

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    running?.kill('SIGTERM');
    rmSync(work, { recursive: true, force: true });
    process.exit(1);
  });
}

const rows = [];
for (const major of majors) {
  rows.push(
    await test(major).catch((error) => ({ major, version: '', result: error.message, minutes: '', ok: false })),
  );
}
console.table(rows.map(({ ok, ...row }) => row));
const ok = rows.every((row) => row.ok);
if (ok) rmSync(work, { recursive: true, force: true });
else process.stderr.write(`The logs are in ${work}\n`);
process.exitCode = ok ? 0 : 1;

async function test(major) {
  const started = Date.now();
  const directory = join(work, major);
  const log = `${directory}.log`;
  const node = await installNode(major, log);
  await mustRun('git', ['clone', '--quiet', '--local', root, directory], { log });
  // The headers beside the binary: native modules are compiled against them and not against another Node's.
  const env = {
    ...process.env,
    PATH: `${node.home}/bin${delimiter}${process.env.PATH}`,
    npm_config_nodedir: node.home,
    ORCH_TEST_RESULTS: `${directory}.results`,
  };
  process.stderr.write(`node ${node.version}: npm test (log: ${log})\n`);
  const reporters = ['default', './scripts/skipped-reporter.mjs', './scripts/result-reporter.mjs'].map(
    (reporter) => `--reporter=${reporter}`,
  );
  const status = await run('npm', ['test', '--', ...reporters, ...paths], { cwd: directory, env, log });
  const { passed, failed, skipped } = summarise(env.ORCH_TEST_RESULTS, status);
  const result = `${passed} passed, ${failed} failed, ${skipped} skipped`;
  const minutes = ((Date.now() - started) / 60_000).toFixed(1);
  return { major, version: node.version, result, minutes, ok: status === 0 && passed > 0 && failed === 0 };
}

/** The npm package of this platform carries the binary and the headers, and runs no script when it is installed. */
async function installNode(major, log) {
  const name = `node-${process.platform}-${process.arch}`;
  const prefix = join(work, `node-${major}`);
  await mustRun('npm', ['install', '--prefix', prefix, '--no-save', '--ignore-scripts', `${name}@${major}`], { log });
  const home = join(prefix, 'node_modules', name);
  const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  return { home, version };
}

async function mustRun(program, argv, options) {
  const status = await run(program, argv, options);
  if (status !== 0) throw new Error(`${program} ${argv[0]} failed`);
}

/** Resolves with the exit status; the output is added to the log. */
function run(program, argv, { log, ...options }) {
  return new Promise((resolve, reject) => {
    const out = createWriteStream(log, { flags: 'a' });
    running = spawn(program, argv, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    running.stdout.pipe(out, { end: false });
    running.stderr.pipe(out, { end: false });
    running.on('error', reject);
    running.on('close', (status) => out.end(() => resolve(status ?? 1)));
  });
}
