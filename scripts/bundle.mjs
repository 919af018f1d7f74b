/**
 * Bundles what `tsc` has made into `dist/orch/`, so that a command loads a few files instead of hundreds. The orchestrator's
 * own libraries stay outside: it starts once and runs for long. The core file and its compiled code serve the benchmark rows
 * "start: orch agents list" and "start: orch __complete".
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { closureOf, compiledName, toCommonJs, withCore, withLazyImports } from './bundle/common-js.mjs';
import { compileCore } from './bundle/compile-core.mjs';
import { evaluatedModules } from './bundle/evaluated-modules.mjs';
import { launcherFor } from './bundle/launcher.mjs';
import { rulesVersion } from './bundle/rules-version.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = `${root}dist/orch`;
const ENTRY = 'main.js';
const { engines, optionalDependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

/** What is loaded by most commands, and by those that are to start at once. */
const CORE = [
  'dist/src/cli/dispatch.js',
  'dist/src/cli/connect-api.js',
  'dist/src/cli/commands/agents.js',
  'dist/src/cli/commands/completion.js',
  'dist/src/cli/commands/term.js',
  'dist/src/cli/terminal/run-terminal.js',
  'node_modules/commander/esm.mjs',
];

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  // The agent starts its engine and the process of its terminals, and the orchestrator the emulator of their screens, from
  // files beside the one that each runs from.
  entryPoints: {
    main: 'dist/bin/orch.js',
    worker: 'dist/src/agent/engine/worker.js',
    'terminal-host': 'dist/src/agent/terminal/terminal-host.js',
    emulator: 'dist/daemon/terminal/emulator/emulator.js',
    // What writes recordings, and what searches them.
    'recording-worker': 'dist/daemon/terminal/recordings/recording-worker.js',
    'search-worker': 'dist/daemon/terminal/recordings/search-worker.js',
    // What parses modules.
    'parser-worker': 'dist/daemon/engine/modules/parser-worker.js',
    // The check of a backup, beside the orchestrator's own work.
    'seal-copy-worker': 'dist/daemon/backup/seal-copy-worker.js',
    // The check of the store after a start.
    'check-copy-worker': 'dist/daemon/backup/check-copy-worker.js',
  },
  outdir: out,
  write: false,
  metafile: true,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'external',
  legalComments: 'inline',
  external: [...Object.keys(optionalDependencies), 'pino', 'kysely', 'undici'],
  // Neither is a dependency of ours, and looking for them takes time at each start.
  define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
  plugins: [evaluatedModules(/dist.src.client.(calls|terminal.server-checks)\.js$/), rulesVersion(root)],
  logLevel: 'warning',
});

const outputs = Object.fromEntries(
  Object.entries(metafile.outputs)
    .filter(([path]) => path.endsWith('.js'))
    .map(([path, { imports, inputs, entryPoint }]) => [
      basename(path),
      {
        entryPoint,
        inputs: Object.keys(inputs),
        imports: imports.map((one) => (one.external ? one : { ...one, path: basename(one.path) })),
      },
    ]),
);
// `orch --version` needs no more than the entry and the version.
const versionFile = Object.keys(outputs).find((name) => outputs[name].inputs.join() === 'dist/src/kernel/version.js');
const inCore = closureOf(CORE.map(nameOf), outputs);
inCore.delete(versionFile);
const textOf = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
const modules = await Promise.all(
  Object.keys(outputs).map((name) => toCommonJs({ name, text: textOf.get(name), map: textOf.get(`${name}.map`) })),
);
const { files, core } = withCore(
  modules.map((file) => (file.name === ENTRY ? withLazyImports(file) : file)),
  inCore,
);

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const { name, code, map } of files) {
  writeFileSync(`${out}/${name}`, map === undefined ? code : `${code}//# sourceMappingURL=${name}.map\n`);
  if (map !== undefined) writeFileSync(`${out}/${name}.map`, map);
}
writeFileSync(`${out}/orch.js`, launcherFor(engines.node, ENTRY), { mode: 0o755 });
writeFileSync(`${out}/package.json`, '{"type":"commonjs"}\n');
writeFileSync(`${out}/${compiledName(core)}`, compileCore(out, nameOf('dist/src/cli/dispatch.js')));

/** The file of the bundle that a module of the CLI is the entry of. */
function nameOf(entryPoint) {
  const found = Object.entries(outputs).find(([, output]) => output.entryPoint === entryPoint);
  if (found === undefined) throw new Error(`nothing loads ${entryPoint} by itself, so it cannot be in the core`);
  return found[0];
}
