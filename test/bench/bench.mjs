/** Bundles the benchmarks and runs them: `npm run bench [-- NAME…] [--only TEXT] [--peers] [--json FILE] [--compare FILE]`. */
import { mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outfile = `${root}dist/bench/main.mjs`;

/** Booted hosts find scripts beside their files. */
const hosts = {
  name: 'hosts',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/test\/hosts\/[^/]*\.ts$/ }, ({ path }) => {
      const own = JSON.stringify(pathToFileURL(path).href);
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', own), loader: 'ts' };
    }),
};

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
  plugins: [hosts],
  // All other files of the bundle count as files of `test/support`.
  define: { 'import.meta.url': JSON.stringify(pathToFileURL(`${root}test/support/bench.mjs`).href) },
});
await import(pathToFileURL(outfile).href);
