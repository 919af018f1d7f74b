/**
 * Completes a release, the directory that packages install as `/usr/lib/orch`: its launcher `bin/orch`, the file `RELEASE` with
 * its version, and `MANIFEST`, the sums of all its files, which `MANIFEST.sig` signs.
 */
import { createHash, sign } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PackagingError } from './run.mjs';
import { publicHexOf } from './sums.mjs';

/** Starts the release in which it is, wherever that was unpacked and through any link. */
const LAUNCHER = `#!/bin/sh
self=$(readlink -f "$0")
release=\${self%/bin/orch}
exec "$release/bin/node" "$release/dist/orch/orch.js" "$@"
`;

/**
 * Adds the launcher, `RELEASE`, `MANIFEST`, and with a key `release.pub` and `MANIFEST.sig`. Nothing may change the directory afterwards.
 *
 * @param {{library: string, version: string, cpu: 'x64' | 'arm64', key: import('node:crypto').KeyObject | null}} options the
 *   directory, the version and processor that it is for, and the private key of the publisher
 * @throws {PackagingError} for a file that a manifest cannot describe
 */
export function sealRelease({ library, version, cpu, key }) {
  writeFileSync(join(library, 'bin/orch'), LAUNCHER, { mode: 0o755 });
  writeFileSync(join(library, 'RELEASE'), `${JSON.stringify({ version, platform: 'linux', cpu })}\n`);
  if (key !== null) writeFileSync(join(library, 'release.pub'), `${publicHexOf(key)}\n`);
  const manifest = Buffer.from(
    filesOf(library)
      .map((path) => ({ path: relative(library, path), file: path }))
      .sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
      .map(({ path, file }) => `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${path}\n`)
      .join(''),
  );
  writeFileSync(join(library, 'MANIFEST'), manifest);
  if (key !== null) writeFileSync(join(library, 'MANIFEST.sig'), sign(null, manifest, key));
}

function filesOf(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (!/^[\w@+.,=~ -]+$/.test(entry.name)) throw new PackagingError(`${path} has a name that no release may contain`);
    if (entry.isDirectory()) return filesOf(path);
    if (!entry.isFile()) throw new PackagingError(`${path} is no regular file: a release contains no links`);
    return [path];
  });
}
