/** Bundles the benchmarks and runs them: `npm run bench [-- NAME…] [--only TEXT] [--peers] [--json FILE] [--compare FILE]`. */
import { mkdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outfile = `${root}dist/bench/main.mjs`;

mkdirSync(`${root}dist/bench`, { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints: ['test/bench/main.ts'],
  outfile,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
  // Files find others beside them; these are where they would be without the bundle.
  define: { 'import.meta.url': JSON.stringify(pathToFileURL(`${root}test/support/bench.mjs`).href) },
});
await import(pathToFileURL(outfile).href);
