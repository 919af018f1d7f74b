/** The libraries that the command needs beside its bundle, without what only their build and their readers need. */
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EXTERNAL } from '../bundle/external.mjs';
import { find, PackagingError, run } from './run.mjs';

const CROSS = { arm64: 'aarch64-linux-gnu' };
/** Parts of packages that nothing loads. */
const UNUSED_DIRECTORIES = new Set(['test', 'tests', 'docs', 'typings', 'benchmark', '.github', '.bin']);
const UNUSED_FILES = /(\.map|\.d\.[cm]?ts|\.ts|\.tsbuildinfo|\.gyp|\.gypi|\.md|\.markdown|\.yml|\.flow)$/i;
const LICENCE = /^(licen[cs]e|copying|notice)/i;

/**
 * Installs the libraries of `package-lock.json` into `directory/node_modules` and compiles the native ones for the runtime.
 *
 * @param {{root: string, directory: string, runtime: string, hostRuntime: string, cpu: 'x64' | 'arm64'}} options the package's
 *   root, the directory to fill, the runtime of the package, and the same runtime for this machine
 * @throws {PackagingError} without the compiler
 */
export function installLibraries({ root, directory, runtime, hostRuntime, cpu }) {
  for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(root, name), join(directory, name));
  const env = { ...process.env, PATH: `${hostRuntime}/bin:${process.env.PATH}` };
  run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--os=linux', `--cpu=${cpu}`], {
    cwd: directory,
    env,
  });
  rmSync(join(directory, 'package-lock.json'));
  const modules = join(directory, 'node_modules');
  keepLoaded(modules);
  compilePty(join(modules, 'node-pty'), { runtime, env, cpu });
  pruneSqlite(modules, cpu);
  prune(modules);
}

/** Removes the libraries that are part of the bundle. */
function keepLoaded(modules) {
  const kept = new Set();
  const keep = (name) => {
    if (kept.has(name) || !existsSync(join(modules, name))) return;
    kept.add(name);
    const { dependencies = {} } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
    for (const needed of Object.keys(dependencies)) keep(needed);
  };
  for (const name of EXTERNAL) keep(name);
  for (const name of libraryNames(modules)) if (!kept.has(name)) rmSync(join(modules, name), { recursive: true });
}

/** Returns the names of the packages in a directory, scoped ones as `@scope/name`. */
const libraryNames = (modules) =>
  readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );

/** Compiles node-pty, whose package carries no binary for Linux. */
function compilePty(directory, { runtime, env, cpu }) {
  const prefix = cpu === process.arch ? '' : `${CROSS[cpu]}-`;
  const compiler = `${prefix}g++`;
  if (find(compiler) === null || find('make') === null || find('python3') === null) {
    throw new PackagingError(`the terminal module is compiled with ${compiler}, make and python3: install them`);
  }
  const gyp = join(
    dirname(run('npm', ['root', '--global']).trim()),
    'node_modules/npm/node_modules/node-gyp/bin/node-gyp.js',
  );
  run(process.execPath, [gyp, 'rebuild', '--release', `--nodedir=${runtime}`, `--arch=${cpu}`], {
    cwd: directory,
    env: { ...env, CC: `${prefix}gcc`, CXX: compiler, LDFLAGS: '-s' },
  });
  const built = join(directory, 'build/Release/pty.node');
  if (!existsSync(built)) throw new PackagingError(`the build of node-pty made no ${built}`);
  const kept = join(directory, 'kept.node');
  copyFileSync(built, kept);
  for (const name of ['build', 'prebuilds', 'third_party', 'deps', 'src', 'scripts', 'node-addon-api']) {
    rmSync(join(directory, name), { recursive: true, force: true });
  }
  mkdirSync(join(directory, 'build/Release'), { recursive: true });
  cpSync(kept, built);
  rmSync(kept);
}

/** Keeps of SQLite the release that this runtime loads, with its binary for this platform. */
function pruneSqlite(modules, cpu) {
  rmSync(join(modules, 'better-sqlite3'), { recursive: true });
  const current = join(modules, 'better-sqlite3-13');
  const binary = `linux-${cpu}.node`;
  const binaries = readdirSync(join(current, 'prebuilds'));
  if (!binaries.includes(binary)) throw new PackagingError(`better-sqlite3 has no ${binary}`);
  for (const name of binaries) if (name !== binary) rmSync(join(current, 'prebuilds', name));
  for (const name of ['deps', 'src', 'node_modules']) rmSync(join(current, name), { recursive: true, force: true });
}

function prune(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory() && UNUSED_DIRECTORIES.has(entry.name)) rmSync(path, { recursive: true });
    else if (entry.isDirectory()) prune(path);
    else if (UNUSED_FILES.test(entry.name) && !LICENCE.test(entry.name)) rmSync(path);
  }
}
