/** Compiles the packs of the bundle: runs what short commands run, so that V8 keeps the functions that they call. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Writes V8's compiled code beside each pack.
 *
 * @param {string} directory where the bundle is
 * @param {{dispatch: string, local: string}} entries the files that run commands, and the programs of `--local`
 * @param {Readonly<Record<string, string>>} targets the file of each pack's compiled code
 */
export function compilePacks(directory, entries, targets) {
  const program = fileURLToPath(new URL('run-packs.cjs', import.meta.url));
  const scratch = mkdtempSync(join(tmpdir(), 'orch-bundle-'));
  try {
    // In a process of its own, as commands are: what V8 keeps depends on its flags.
    const { status, stderr } = spawnSync(
      process.execPath,
      [program, JSON.stringify({ directory, entries, targets, scratch })],
      { encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`the packs of the bundle cannot be compiled: ${stderr}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
