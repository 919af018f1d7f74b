/**
 * Bundles what `tsc` has made into `dist/orch/`, or into the directory that is named, so that a command loads a few files instead of hundreds. The orchestrator's
 * own libraries stay outside: it starts once and runs for long. The packs and their compiled code serve the benchmark rows
 * "start: orch __complete", "module validate" and "plan --local".
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { closureOf, compiledName, packsOf, toCommonJs, withLazyImports, withPacks } from './bundle/common-js.mjs';
import { compilePacks } from './bundle/compile-packs.mjs';
import { evaluatedModules } from './bundle/evaluated-modules.mjs';
import { EXTERNAL } from './bundle/external.mjs';
import { launcherFor } from './bundle/launcher.mjs';
import { rulesVersion } from './bundle/rules-version.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = resolve(process.argv[2] ?? `${root}dist/orch`);
const ENTRY = 'main.js';
const { engines } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

const DISPATCH = 'dist/src/cli/dispatch.js';
const LOCAL = 'dist/bin/local.js';

/** Entries of each pack. */
const PACKS = {
  /** Needed by all commands. */
  core: [
    DISPATCH,
    'dist/src/cli/commands/completion.js',
    'dist/src/cli/commands/help.js',
    'node_modules/commander/esm.mjs',
  ],
  /** What talks to the orchestrator, and the command that is called most. */
  client: ['dist/src/cli/connect-api.js', 'dist/src/cli/commands/agents.js'],
  /** The builders of schemas. */
  schemas: ['dist/src/kernel/schema.js'],
  terminal: ['dist/src/cli/commands/term.js', 'dist/src/cli/terminal/run-terminal.js'],
  /** Kinds of resources, and what resolves modules. */
  kinds: ['dist/src/language/resolve.js'],
  /** What reads and checks modules. */
  language: ['dist/src/cli/commands/module-files.js', 'dist/src/cli/modules/read-modules.js'],
  /** `orch plan`, `apply` and `drift` on this machine. */
  local: ['dist/src/cli/commands/apply.js', 'dist/src/cli/commands/drift.js', 'dist/src/cli/local/run-local.js', LOCAL],
};

/** Packs whose modules load what they import at its first use, for commands that need only a part of them. */
const LAZY = new Set(['core', 'client', 'local']);

/** Modules whose values are computed now, and not at each start. */
const EVALUATED =
  /dist.src.(client.calls|client.terminal.server-checks|language.definition-check|resources.body-checks|cli.local.state-check)\.js$/;

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  // The agent starts its engine and the process of its terminals, and the orchestrator the emulator of their screens, from
  // files beside the one that each runs from.
  entryPoints: {
    main: 'dist/bin/orch.js',
    worker: 'dist/src/agent/engine/worker.js',
    'terminal-host': 'dist/src/agent/terminal/terminal-host.js',
    'forward-host': 'dist/src/agent/forward/forward-host.js',
    'upgrade-trial': 'dist/src/agent/upgrade/upgrade-trial.js',
    'snapshot-guard-main': 'dist/src/agent/snapshot/snapshot-guard-main.js',
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
  // The build for Node asks for an environment variable at each token, a tenth of the time of parsing.
  alias: { yaml: './node_modules/yaml/browser/index.js' },
  external: [...EXTERNAL],
  // Neither is a dependency of ours, and looking for them takes time at each start.
  define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
  plugins: [evaluatedModules(EVALUATED), rulesVersion(root)],
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
// `orch --version` needs no more than these.
const early = closureOf([ENTRY, nameOf('dist/src/kernel/version.js')], outputs);
const packOf = packsOf(
  Object.entries(PACKS).map(([pack, entries]) => [
    pack,
    [...closureOf(entries.map(nameOf), outputs)].filter((name) => !early.has(name)),
  ]),
);
const textOf = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
const modules = await Promise.all(
  Object.keys(outputs).map((name) => toCommonJs({ name, text: textOf.get(name), map: textOf.get(`${name}.map`) })),
);
const { files, names } = withPacks(
  modules.map((file) => (file.name === ENTRY || LAZY.has(packOf.get(file.name)) ? withLazyImports(file) : file)),
  packOf,
);

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const { name, code, map } of files) {
  writeFileSync(`${out}/${name}`, map === undefined ? code : `${code}//# sourceMappingURL=${name}.map\n`);
  if (map !== undefined) writeFileSync(`${out}/${name}.map`, map);
}
writeFileSync(`${out}/orch.js`, launcherFor(engines.node, ENTRY), { mode: 0o755 });
writeFileSync(`${out}/package.json`, '{"type":"commonjs"}\n');
compilePacks(
  out,
  { dispatch: nameOf(DISPATCH), local: nameOf(LOCAL) },
  Object.fromEntries(Object.entries(names).map(([pack, name]) => [pack, compiledName(name)])),
);

/** The file of the bundle that contains a module. */
function nameOf(path) {
  const all = Object.entries(outputs);
  const found =
    all.find(([, { entryPoint }]) => entryPoint === path) ?? all.find(([, { inputs }]) => inputs.includes(path));
  if (found === undefined) throw new Error(`no file of the bundle contains ${path}, so it cannot be in a pack`);
  return found[0];
}
