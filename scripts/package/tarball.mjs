/** Plain tarballs of the tree, for systems without either package format. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './run.mjs';

/** Starts the command from wherever the tarball was unpacked. */
const LAUNCHER = `#!/bin/sh
prefix=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$prefix/lib/orch/bin/node" "$prefix/lib/orch/dist/orch/orch.js" "$@"
`;

/**
 * Makes a `.tar.xz` of a tree. Its directory can be unpacked anywhere, for example in `/opt`.
 *
 * @param {{tree: string, scratch: string, out: string, cpu: 'x64' | 'arm64', version: string, level: number}} options the tree, a
 *   directory for intermediate files, the directory of the package, and the level of compression from 1 to 9
 * @returns {string} the path of the package
 */
export function makeTarball({ tree, scratch, out, cpu, version, level }) {
  const name = `orch-${version}-linux-${cpu}`;
  const directory = join(scratch, `tar-${cpu}`, name);
  mkdirSync(dirname(directory), { recursive: true });
  cpSync(join(tree, 'usr'), directory, { recursive: true, verbatimSymlinks: true });
  cpSync(join(tree, 'etc/orch'), join(directory, 'share/doc/orch/examples/config'), { recursive: true });
  rmSync(join(directory, 'lib/sysusers.d'), { recursive: true });
  writeFileSync(join(directory, 'bin/orch'), LAUNCHER, { mode: 0o755 });
  const file = join(out, `${name}.tar.xz`);
  run('tar', [
    '-I',
    `xz -${level}`,
    '-cf',
    file,
    '--owner=root:0',
    '--group=root:0',
    '--sort=name',
    '-C',
    dirname(directory),
    name,
  ]);
  return file;
}
