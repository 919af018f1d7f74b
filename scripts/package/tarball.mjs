/** Plain tarballs of the tree: for systems without either package format, and for the machines that an orchestrator installs. */
import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './run.mjs';

/**
 * Makes a `.tar.gz` of a tree, which every machine can unpack. Its directory works anywhere, for example in `/opt`.
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
  rmSync(join(directory, 'bin/orch'));
  symlinkSync('../lib/orch/bin/orch', join(directory, 'bin/orch'));
  const file = join(out, `${name}.tar.gz`);
  run('tar', [
    '-I',
    `gzip -n -${level}`,
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
