/**
 * Bundles what `tsc` has made into `dist/orch/`, so that a command loads a few files instead of hundreds. The orchestrator's
 * own libraries stay outside: it starts once and runs for long.
 */
import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const { optionalDependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

rmSync(`${root}dist/orch`, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  // The agent starts its engine and the process of its terminals, and the orchestrator the emulator of their screens, from
  // files beside the one that each runs from.
  entryPoints: {
    orch: 'dist/bin/orch.js',
    worker: 'dist/src/agent/engine/worker.js',
    'terminal-host': 'dist/src/agent/terminal/terminal-host.js',
    emulator: 'dist/daemon/terminal/emulator/emulator.js',
    // The search of recordings.
    'search-worker': 'dist/daemon/terminal/search-worker.js',
    // The check of a backup, beside the orchestrator's own work.
    'seal-copy-worker': 'dist/daemon/backup/seal-copy-worker.js',
  },
  outdir: 'dist/orch',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  legalComments: 'linked',
  external: [...Object.keys(optionalDependencies), 'fastify', 'pino', 'kysely', 'bufferutil', 'utf-8-validate'],
  // Packages of the CommonJS kind ask for built-in modules with `require`.
  banner: {
    js: "import { createRequire as orchCreateRequire } from 'node:module';const require = orchCreateRequire(import.meta.url);",
  },
  logLevel: 'warning',
});
