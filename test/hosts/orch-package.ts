/** Makes the packages of the built project, for hosts to install. */
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
// @ts-expect-error It is a script.
import { requiredGlibc } from '../../scripts/package/glibc.mjs';
// @ts-expect-error It is a script.
import { makeRpm } from '../../scripts/package/rpm.mjs';
import { VERSION } from '../../src/kernel/version.js';
import { mustRun } from './command.js';

const program = fileURLToPath(new URL('../../scripts/package.mjs', import.meta.url));

/** Returns a new directory with the packages of these formats (about half a minute for one). */
export async function makePackages(...formats: readonly ('deb' | 'rpm' | 'tar')[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-packages-'));
  const argv = [process.execPath, program, ...formats, '--fast', '--out', directory];
  await mustRun(argv, { timeoutMs: 600_000 });
  return directory;
}

/** Makes of an `.rpm` a newer one beside it: its programs say that version, and its settings files have one more comment. */
export async function makeNewerRpm(rpm: string, version: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'orch-newer-'));
  try {
    const tree = join(scratch, 'tree');
    mkdirSync(tree);
    await mustRun(['sh', '-ec', 'rpm2archive - <"$1" | tar -xz -C "$2"', 'sh', rpm, tree]);
    const zsh = join(tree, 'usr/share/zsh');
    renameSync(join(zsh, 'site-functions'), join(zsh, 'vendor-completions'));
    for (const name of readdirSync(join(tree, 'etc/orch'))) {
      appendFileSync(join(tree, 'etc/orch', name), `# Of ${version}.\n`);
    }
    const bundle = join(tree, 'usr/lib/orch/dist/orch');
    for (const name of readdirSync(bundle)) {
      const file = join(bundle, name);
      // Compiled code of the former text.
      if (name.endsWith('.v8')) rmSync(file);
      else writeFileSync(file, readFileSync(file, 'latin1').replaceAll(VERSION, version), 'latin1');
    }
    const libc = requiredGlibc(join(tree, 'usr/lib/orch'));
    makeRpm({ tree, scratch, out: dirname(rpm), cpu: process.arch, version, libc, level: 1 });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
