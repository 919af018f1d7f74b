/** The oldest release of glibc that programs and libraries run on. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.mjs';

/** @param {string} directory @returns {string} such as `2.34` */
export function requiredGlibc(directory) {
  const binaries = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && (/\.(node|so(\.\d+)*)$/.test(entry.name) || entry.name === 'node'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const versions = binaries.flatMap((path) =>
    [...run('readelf', ['--version-info', '--wide', path]).matchAll(/\bGLIBC_(\d+)\.(\d+)/g)].map(
      ([, major, minor]) => [Number(major), Number(minor)],
    ),
  );
  const [newest] = versions.sort(([a, b], [c, d]) => c - a || d - b);
  if (newest === undefined) throw new Error(`no program in ${directory} needs glibc`);
  return newest.join('.');
}
