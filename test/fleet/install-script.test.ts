/** The shell script that installs an agent, with releases that were packed anew: sums cover neither modes nor further files. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { installScript } from '../../daemon/fleet/install-script.js';

const FILES = { 'bin/orch': '#!/bin/sh\necho 1.0.0\n', 'dist/orch.js': 'the program' };
const BYTES = 'a'.repeat(43);
const TOKEN = `orch-enroll-v1.01J00000000000000000000000.${BYTES}.${BYTES}`;

/** Packs a release, and runs the part of the script that unpacks it in a directory of the test. */
function fetched(spoil: (release: string) => void) {
  const root = mkdtempSync(join(tmpdir(), 'orch-install-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const release = join(root, 'orch-1.0.0/lib/orch');
  const lines = Object.entries(FILES).map(([path, content]) => {
    mkdirSync(join(release, path, '..'), { recursive: true });
    writeFileSync(join(release, path), content);
    return `${createHash('sha256').update(content).digest('hex')}  ${path}\n`;
  });
  writeFileSync(join(release, 'MANIFEST'), lines.join(''));
  chmodSync(join(release, 'bin/orch'), 0o755);
  spoil(release);
  const tarball = join(root, 'orch.tar.gz');
  execFileSync('tar', ['-czf', tarball, '-C', root, 'orch-1.0.0']);
  const sha256 = createHash('sha256').update(readFileSync(tarball)).digest('hex');
  const text = installScript({
    place: 'control:4747',
    pin: `sha256//${'A'.repeat(43)}=`,
    token: TOKEN,
    packages: [{ version: '1.0.0', cpu: 'x64', sha256 }],
    releaseKey: null,
  }).replaceAll('/opt/orch', join(root, 'opt'));
  const functions = text.slice(0, text.lastIndexOf('{ install_orch'));
  const values = `version=1.0.0; sum=${sha256}; place=control; key=; release=releases/one`;
  const steps = `set -eu; umask 022; download() { cp ${tarball} "$1"; }; fetch_release`;
  const { status, stderr } = spawnSync('sh', ['-c', `${functions}\n${values}\n${steps}`], { encoding: 'utf8' });
  return { status, stderr, installed: join(root, 'opt/releases/one') };
}

it('takes a setuid bit and write access from the files of a release', () => {
  const { status, stderr, installed } = fetched((release) => {
    chmodSync(join(release, 'bin/orch'), 0o6777);
    chmodSync(join(release, 'dist/orch.js'), 0o666);
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(statSync(join(installed, 'bin/orch')).mode & 0o7777).toBe(0o755);
  expect(statSync(join(installed, 'dist/orch.js')).mode & 0o7777).toBe(0o644);
});

it('refuses a release with a file that its manifest does not list', () => {
  const { status, stderr, installed } = fetched((release) => {
    writeFileSync(join(release, 'bin/helper'), 'x', { mode: 0o755 });
  });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'orch: the package is damaged: its files are not those of its manifest\n',
  });
  expect(existsSync(installed)).toBe(false);
});
