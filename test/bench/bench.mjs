/** Bundles the benchmarks with the programs that they start, and runs them: `npm run bench -- --help`. */
import { mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outdir = `${root}dist/bench`;
const entryPoints = [
  'test/bench/main.ts',
  'test/bench/http-load.ts',
  'test/bench/fleet/simulated-agents.ts',
  'test/bench/limits/bare-links.ts',
  'test/bench/limits/bare-https.ts',
];

/** Booted hosts find scripts beside their files. */
const hosts = {
  name: 'hosts',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/test\/hosts\/[^/]*\.ts$/ }, ({ path }) => {
      const own = JSON.stringify(pathToFileURL(path).href);
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', own), loader: 'ts' };
    }),
};

mkdirSync(outdir, { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints,
  outdir,
  entryNames: '[name]',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
  plugins: [hosts],
  // All other files of the bundle count as files of `test/support`.
  define: { 'import.meta.url': JSON.stringify(pathToFileURL(`${root}test/support/bench.mjs`).href) },
});
if (process.argv.includes('--smallest')) process.env.ORCH_BENCH_SMALLEST = '1';
await import(pathToFileURL(`${outdir}/main.mjs`).href);
