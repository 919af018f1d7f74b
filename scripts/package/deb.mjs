/** Debian packages, as deb(5) and the Debian policy describe them. */
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { find, PackagingError, run } from './run.mjs';
import { CONFIGURATION, kibibytesOf, template } from './tree.mjs';

const ARCHITECTURE = { x64: 'amd64', arm64: 'arm64' };
const SCRIPTS = ['postinst', 'prerm', 'postrm'];

/**
 * Makes a `.deb` of a tree.
 *
 * @param {{tree: string, scratch: string, out: string, cpu: 'x64' | 'arm64', version: string, libc: string, level: number}} options the tree, a directory
 *   for intermediate files, the directory of the package, the oldest release of glibc that it runs on, and the level of compression from 1 to 9
 * @returns {string} the path of the package
 * @throws {PackagingError} without dpkg-deb
 */
export function makeDeb({ tree, scratch, out, cpu, version, libc, level }) {
  if (find('dpkg-deb') === null) throw new PackagingError('a .deb is made by dpkg-deb: install dpkg');
  const directory = join(scratch, `deb-${cpu}`);
  cpSync(tree, directory, { recursive: true, verbatimSymlinks: true });
  const control = join(directory, 'DEBIAN');
  mkdirSync(control);
  writeFileSync(
    join(control, 'control'),
    template('deb/control', {
      VERSION: version,
      ARCHITECTURE: ARCHITECTURE[cpu],
      SIZE: String(kibibytesOf(tree)),
      LIBC: libc,
    }),
  );
  writeFileSync(join(control, 'conffiles'), CONFIGURATION.map((path) => `${path}\n`).join(''));
  for (const name of SCRIPTS) {
    const path = join(control, name);
    writeFileSync(path, template(`deb/${name}`, { TAKEOVER: template('take-over.sh', {}) }));
    chmodSync(path, 0o755);
  }
  const file = join(out, `orch_${version}_${ARCHITECTURE[cpu]}.deb`);
  run('dpkg-deb', ['--root-owner-group', '-Zxz', `-z${level}`, '--build', directory, file]);
  return file;
}
