/** RPM packages, made by rpmbuild of a finished tree. */
import { copyFileSync, cpSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { find, PackagingError, run } from './run.mjs';
import { template } from './tree.mjs';

const ARCHITECTURE = { x64: 'x86_64', arm64: 'aarch64' };

/** Directories in which RPM distributions look elsewhere than Debian. */
const MOVED = [['usr/share/zsh/vendor-completions', 'usr/share/zsh/site-functions']];

/**
 * Makes an `.rpm` of a tree.
 *
 * @param {{tree: string, scratch: string, out: string, cpu: 'x64' | 'arm64', version: string, libc: string, level: number}} options the tree, a directory
 *   for intermediate files, the directory of the package, the oldest release of glibc that it runs on, and the level of compression from 1 to 9
 * @returns {string} the path of the package
 * @throws {PackagingError} without rpmbuild
 */
export function makeRpm({ tree, scratch, out, cpu, version, libc, level }) {
  if (find('rpmbuild') === null) throw new PackagingError('an .rpm is made by rpmbuild: install the package rpm');
  const directory = join(scratch, `rpm-${cpu}`);
  const copy = join(directory, 'tree');
  cpSync(tree, copy, { recursive: true, verbatimSymlinks: true });
  for (const [from, to] of MOVED) {
    mkdirSync(dirname(join(copy, to)), { recursive: true });
    renameSync(join(copy, from), join(copy, to));
  }
  const spec = join(directory, 'orch.spec');
  writeFileSync(
    spec,
    template('rpm/orch.spec', {
      VERSION: version,
      LIBC: libc,
      TREE: copy,
      TAKEOVER: template('take-over.sh', {}),
    }),
  );
  const target = ARCHITECTURE[cpu];
  run('rpmbuild', [
    '-bb',
    '--quiet',
    '--target',
    target,
    '--define',
    `_topdir ${directory}`,
    '--define',
    `_binary_payload w${level}.xzdio`,
    spec,
  ]);
  const [built] = readdirSync(join(directory, 'RPMS', target));
  if (built === undefined) throw new PackagingError('rpmbuild made no package');
  const file = join(out, built);
  copyFileSync(join(directory, 'RPMS', target, built), file);
  return file;
}
