/** Makes the packages of the built project, for hosts to install. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun } from './command.js';

const program = fileURLToPath(new URL('../../scripts/package.mjs', import.meta.url));

/** Returns a new directory with the packages of these formats (about half a minute for one). */
export async function makePackages(...formats: readonly ('deb' | 'rpm' | 'tar')[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-packages-'));
  const argv = [process.execPath, program, ...formats, '--fast', '--out', directory];
  await mustRun(argv, { timeoutMs: 600_000 });
  return directory;
}
