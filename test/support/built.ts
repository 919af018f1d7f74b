/** Before any test: builds `dist/` when a source is newer, because many tests run the built command. */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const sources = ['bin', 'src', 'daemon', 'scripts', 'package.json'];

/** Vitest calls it once, before the workers start. */
export function setup(): void {
  const built = modified(`${root}dist/orch/orch.js`);
  if (sources.every((source) => newest(`${root}${source}`) <= built)) return;
  process.stderr.write('tests: a source is newer than dist/, building\n');
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error('the build failed, its messages are above');
}

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Newest modification below a file or directory, in milliseconds. */
function newest(path: string): number {
  if (!statSync(path).isDirectory()) return modified(path);
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.tsbuildinfo'))
    .reduce((latest, { parentPath, name }) => Math.max(latest, modified(`${parentPath}/${name}`)), 0);
}
