/** The Node.js runtime of the packages: the binary and the headers that native modules are compiled against. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PackagingError, run } from './run.mjs';

const { version, integrity } = JSON.parse(readFileSync(new URL('runtimes.json', import.meta.url), 'utf8'));

/** Version of the runtime. */
export const RUNTIME_VERSION = version;

/**
 * Downloads the runtime of an architecture from the package registry and unpacks it. Runs no script of it.
 *
 * @param {'x64' | 'arm64'} cpu
 * @param {string} directory a new directory for it
 * @returns {string} the directory with `bin/node` and `include`
 * @throws {PackagingError} when it is not what `runtimes.json` names
 */
export function fetchRuntime(cpu, directory) {
  mkdirSync(directory, { recursive: true });
  const name = `node-linux-${cpu}@${version}`;
  const file = run('npm', ['pack', '--silent', name], { cwd: directory }).trim();
  const found = `sha512-${createHash('sha512')
    .update(readFileSync(join(directory, file)))
    .digest('base64')}`;
  if (found !== integrity[cpu]) {
    throw new PackagingError(
      `${name} has the hash ${found}, and scripts/package/runtimes.json names ${integrity[cpu]}`,
    );
  }
  run('tar', ['-xzf', file], { cwd: directory });
  return join(directory, 'package');
}
