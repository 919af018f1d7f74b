/**
 * The tree of files that every package installs: the command with its runtime and libraries in `/usr/lib/orch`, units, settings,
 * man pages and completions.
 */
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { installLibraries } from './libraries.mjs';
import { manPages } from './man.mjs';
import { sealRelease } from './release.mjs';
import { find, PackagingError, run } from './run.mjs';

const FILES = new URL('files/', import.meta.url);
/** Libraries beside the runtime that it needs and that a bare system may lack. */
const BESIDE = { x64: '/usr/lib/x86_64-linux-gnu/libatomic.so.1', arm64: '/usr/aarch64-linux-gnu/lib/libatomic.so.1' };
const STRIP = { x64: 'strip', arm64: 'aarch64-linux-gnu-strip' };

/** The settings files, which belong to the operator once they are installed. */
export const CONFIGURATION = ['/etc/orch/agent.yaml', '/etc/orch/orchestrator.yaml'];

/**
 * Fills `directory` with the tree.
 *
 * @param {{root: string, directory: string, runtime: string, hostRuntime: string, cpu: 'x64' | 'arm64', version: string, date: string, key: import('node:crypto').KeyObject | null}} options
 *   the root of the source, where `npm run build` has run; the new directory; the runtime of the packages and the one of this
 *   machine; the version of orch, and its date as `2026-11-23`; the private key that signs packages, or null
 */
export async function makeTree({ root, directory, runtime, hostRuntime, cpu, version, date, key }) {
  const at = (path) => {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    return file;
  };
  const library = join(directory, 'usr/lib/orch');
  mkdirSync(library, { recursive: true });
  installRuntime({ runtime, library, cpu });
  installLibraries({ root, directory: library, runtime, hostRuntime, cpu });
  bundle({ root, library, hostRuntime, cpu });
  cpSync(join(root, 'LICENSE'), at('usr/share/doc/orch/copyright'));
  cpSync(join(root, 'CHANGELOG.md'), at('usr/share/doc/orch/CHANGELOG.md'));
  for (const name of ['docs', 'examples'])
    cpSync(join(root, name), at(`usr/share/doc/orch/${name}`), { recursive: true });
  cpSync(join(runtime, 'LICENSE'), at('usr/share/doc/orch/copyright.nodejs'));

  copyFileSync(new URL('orch.sh', FILES), at('usr/bin/orch'));
  chmodSync(at('usr/bin/orch'), 0o755);
  const { SERVE_UNIT, AGENT_UNIT, serveUnit, agentUnit } = await import(join(root, 'dist/src/service/units.js'));
  writeFileSync(at(`usr/lib/systemd/system/${SERVE_UNIT}`), serveUnit(['/usr/bin/orch']));
  writeFileSync(at(`usr/lib/systemd/system/${AGENT_UNIT}`), agentUnit(['/usr/bin/orch']));
  copyFileSync(new URL('orch.sysusers', FILES), at('usr/lib/sysusers.d/orch.conf'));
  for (const path of CONFIGURATION) copyFileSync(new URL(path.split('/').pop(), FILES), at(path.slice(1)));

  const orch = join(library, 'dist/orch/orch.js');
  const completion = (shell) => run(join(hostRuntime, 'bin/node'), [orch, 'completion', shell]);
  writeFileSync(at('usr/share/bash-completion/completions/orch'), completion('bash'));
  writeFileSync(at('usr/share/zsh/vendor-completions/_orch'), completion('zsh'));
  writeFileSync(at('usr/share/fish/vendor_completions.d/orch.fish'), completion('fish'));
  for (const [name, page] of await manPages(await commandModules(root), { version, date })) {
    writeFileSync(at(`usr/share/man/man1/${name}.gz`), gzipSync(page, { level: 9 }));
  }
  sealRelease({ library, version, cpu, key });
}

/** Installs the runtime's binary without its symbols for debuggers, and what it needs beside it. */
function installRuntime({ runtime, library, cpu }) {
  const strip = cpu === process.arch ? 'strip' : STRIP[cpu];
  for (const program of [strip, 'patchelf']) {
    if (find(program) === null) throw new PackagingError(`the runtime is packaged with ${program}: install it`);
  }
  mkdirSync(join(library, 'bin'));
  mkdirSync(join(library, 'lib'));
  const node = join(library, 'bin/node');
  copyFileSync(join(runtime, 'bin/node'), node);
  run(strip, [node]);
  run('patchelf', ['--set-rpath', '$ORIGIN/../lib', node]);
  copyFileSync(BESIDE[cpu], join(library, 'lib/libatomic.so.1'));
}

/** Bundles the built command with the runtime itself, so that the compiled code beside the packs is its own. */
function bundle({ root, library, hostRuntime, cpu }) {
  const out = join(library, 'dist/orch');
  mkdirSync(out, { recursive: true });
  run(join(hostRuntime, 'bin/node'), [join(root, 'scripts/bundle.mjs'), out], { cwd: root });
  for (const name of readdirSync(out)) {
    if (name.endsWith('.map') || (name.endsWith('.v8') && cpu !== process.arch)) rmSync(join(out, name));
  }
}

async function commandModules(root) {
  const [commands, help, options] = await Promise.all(
    ['commands/index', 'help/syntax', 'global-options'].map((name) => import(join(root, `dist/src/cli/${name}.js`))),
  );
  return { commands, help, options };
}

/** Returns the size of a directory's files in KiB, rounded up. */
export const kibibytesOf = (directory) => Number(run('du', ['-sk', '--apparent-size', directory]).split('\t')[0]);

/** Returns a file of `files/` with `@NAME@` replaced. */
export const template = (name, values) =>
  readFileSync(new URL(name, FILES), 'utf8').replaceAll(/@([A-Z]+)@/g, (whole, key) => values[key] ?? whole);
