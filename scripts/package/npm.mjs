/** The package for npm, for every platform: the bundled command, and the libraries outside of the bundle with locked versions. */
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EXTERNAL } from '../bundle/external.mjs';
import { run } from './run.mjs';

const SHRINKWRAP = 'npm-shrinkwrap.json';

/**
 * Makes an `orch-VERSION.tgz` that npm installs, and whose native libraries npm compiles there. The versions and hashes of its
 * libraries are those of `package-lock.json`, in `npm-shrinkwrap.json`. npm reads that file only in packages of a registry, so
 * `package.json` names the exact version of each library as well.
 *
 * @param {{root: string, scratch: string, out: string}} options the root of the source, where `npm run build` has run; a directory
 *   for intermediate files; and the directory of the package
 * @returns {string} the path of the package
 */
export function makeNpm({ root, scratch, out }) {
  const directory = join(scratch, 'npm');
  mkdirSync(directory);
  const source = readJson(join(root, 'package.json'));
  for (const name of ['README.md', 'LICENSE', ...source.files.filter((entry) => !entry.startsWith('!'))]) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    cpSync(join(root, name), join(directory, name), { recursive: true });
  }
  const manifest = installedManifest(source);
  const lock = lockOf(manifest, { root, directory });
  const exact = exactVersions(lock.packages);
  writeJson(join(directory, 'package.json'), { ...manifest, ...exact });
  const { '': own, ...libraries } = lock.packages;
  writeJson(join(directory, SHRINKWRAP), { ...lock, packages: { '': { ...own, ...exact }, ...libraries } });
  const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', out];
  const packed = join(out, run('npm', pack, { cwd: directory }).trim());
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

/**
 * Returns the lock of the source without the libraries that the package does not need, and without the addresses from which this
 * machine would download: the registry of the one who installs counts.
 */
function lockOf(manifest, { root, directory }) {
  const file = join(directory, 'package-lock.json');
  writeJson(join(directory, 'package.json'), manifest);
  copyFileSync(join(root, 'package-lock.json'), file);
  run('npm', ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: directory });
  const { packages, ...lock } = readJson(file);
  rmSync(file);
  const entries = Object.entries(packages).map(([path, { resolved, ...entry }]) => [path, entry]);
  return { ...lock, packages: Object.fromEntries(entries) };
}

/** Returns all locked libraries as dependencies of the package, but for those inside of another library. */
function exactVersions(packages) {
  const all = { dependencies: {}, optionalDependencies: {} };
  for (const [path, { name, version, optional }] of Object.entries(packages)) {
    const [, ...names] = path.split('node_modules/');
    if (names.length !== 1) continue;
    const group = optional ? all.optionalDependencies : all.dependencies;
    group[names[0]] = name === undefined ? version : `npm:${name}@${version}`;
  }
  return all;
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
