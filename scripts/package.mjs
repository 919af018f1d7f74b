/**
 * Makes the packages of the present source: npm run package [-- FORMAT… --cpu CPU --out DIR --sign KEYFILE --fast]. Without a
 * FORMAT all of deb, rpm, tar, oci and npm; without --cpu for this machine's. --sign signs their sums and their manifests, and puts the
 * public key into the packages, which then accept only packages of the same key. --fast compresses little, for tests.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeDeb } from './package/deb.mjs';
import { requiredGlibc } from './package/glibc.mjs';
import { makeNpm } from './package/npm.mjs';
import { makeOci } from './package/oci.mjs';
import { makeRpm } from './package/rpm.mjs';
import { PackagingError, run } from './package/run.mjs';
import { fetchRuntime } from './package/runtime.mjs';
import { loadSigningKey, writeSums } from './package/sums.mjs';
import { makeTarball } from './package/tarball.mjs';
import { makeTree } from './package/tree.mjs';

/** Formats with a package for each CPU; the one for npm serves all. */
const FORMATS = { deb: makeDeb, rpm: makeRpm, tar: makeTarball, oci: makeOci };
const root = fileURLToPath(new URL('..', import.meta.url));

const { values, positionals } = optionsOf(process.argv.slice(2));
const known = [...Object.keys(FORMATS), 'npm'];
const wanted = positionals.length === 0 ? known : positionals;
const unknown = wanted.filter((format) => !known.includes(format));
if (unknown.length > 0) fail(`there is no format ${unknown.join(', ')}; there are ${known.join(', ')}`);
const formats = wanted.filter((format) => format !== 'npm');
const cpus = values.cpu ?? [process.arch];
for (const cpu of cpus) if (!['x64', 'arm64'].includes(cpu)) fail(`--cpu takes x64 or arm64, not ${cpu}`);
const out = resolve(values.out ?? join(root, 'packages'));

const scratch = mkdtempSync(join(tmpdir(), 'orch-package-'));
try {
  await make();
} catch (error) {
  if (!(error instanceof PackagingError)) throw error;
  fail(error.message);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function make() {
  const key = values.sign === undefined ? null : loadSigningKey(resolve(values.sign));
  const files = [];
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const date = run('git', ['log', '-1', '--format=%cs'], { cwd: root }).trim();
  mkdirSync(out, { recursive: true });
  if (wanted.includes('npm')) files.push(makeNpm({ root, scratch, out }));
  const built = formats.length === 0 ? [] : cpus;
  const runtimes = new Map(
    [...new Set([...built, ...(built.length === 0 ? [] : [process.arch])])].map((cpu) => [
      cpu,
      fetchRuntime(cpu, join(scratch, `node-${cpu}`)),
    ]),
  );
  for (const cpu of built) {
    const tree = join(scratch, `tree-${cpu}`);
    const hostRuntime = runtimes.get(process.arch);
    await makeTree({
      root,
      directory: tree,
      runtime: runtimes.get(cpu),
      hostRuntime,
      cpu,
      version,
      date,
      key,
    });
    const libc = requiredGlibc(join(tree, 'usr/lib/orch'));
    for (const format of formats) {
      files.push(FORMATS[format]({ tree, scratch, out, cpu, version, libc, level: values.fast ? 1 : 6 }));
    }
  }
  for (const path of [...files, ...(await writeSums({ files, out, key }))]) process.stdout.write(`${path}\n`);
}

function optionsOf(args) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        cpu: { type: 'string', multiple: true },
        out: { type: 'string' },
        sign: { type: 'string' },
        fast: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return fail(error.message);
  }
}

function fail(message) {
  process.stderr.write(`package: ${message}\n`);
  process.exit(1);
}
