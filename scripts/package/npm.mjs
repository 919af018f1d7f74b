/** The package for npm, for every platform: the bundled command, and the libraries outside of the bundle with locked versions. */
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EXTERNAL } from '../bundle/external.mjs';
import { run } from './run.mjs';

const SHRINKWRAP = 'npm-shrinkwrap.json';

/**
 * Makes an `orch-VERSION.tgz` that npm installs. npm compiles its native libraries where it is installed, and takes the versions and
 * hashes of `package-lock.json` from its `npm-shrinkwrap.json`.
 *
 * @param {{root: string, scratch: string, out: string}} options the root of the source, where `npm run build` has run; a directory
 *   for intermediate files; and the directory of the package
 * @returns {string} the path of the package
 */
export function makeNpm({ root, scratch, out }) {
  const directory = join(scratch, 'npm');
  mkdirSync(directory);
  const manifest = readJson(join(root, 'package.json'));
  for (const name of ['README.md', 'LICENSE', ...manifest.files.filter((entry) => !entry.startsWith('!'))]) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    cpSync(join(root, name), join(directory, name), { recursive: true });
  }
  writeJson(join(directory, 'package.json'), installedManifest(manifest));
  copyFileSync(join(root, 'package-lock.json'), join(directory, 'package-lock.json'));
  // Removes the libraries that only the source needs from the lock.
  run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: directory });
  writeJson(join(directory, SHRINKWRAP), withoutRegistry(readJson(join(directory, 'package-lock.json'))));
  rmSync(join(directory, 'package-lock.json'));
  const packed = join(
    out,
    run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', out], { cwd: directory }).trim(),
  );
  const file = join(out, `orch-${manifest.version}.tgz`);
  renameSync(packed, file);
  return file;
}

/** Returns package.json without what only the source needs. The other libraries are part of the bundle. */
function installedManifest({ devDependencies, scripts, allowScripts, dependencies, ...manifest }) {
  const needed = Object.entries(dependencies).filter(([name]) => EXTERNAL.includes(name));
  const allowed = Object.entries(allowScripts).filter(([name]) => EXTERNAL.includes(name));
  return {
    ...manifest,
    files: [...manifest.files, SHRINKWRAP],
    dependencies: Object.fromEntries(needed),
    allowScripts: Object.fromEntries(allowed),
  };
}

/** Returns a lock without the addresses from which this machine would download: the registry of the one who installs counts. */
function withoutRegistry({ packages, ...lock }) {
  const entries = Object.entries(packages).map(([path, { resolved, ...entry }]) => [path, entry]);
  return { ...lock, packages: Object.fromEntries(entries) };
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
