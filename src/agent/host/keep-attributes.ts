/** Access control lists, extended attributes and security contexts of files that are replaced: Node cannot read them, `cp` can. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Two open files: the one that goes, and the one that takes its place. */
export interface Replacement {
  /** `/proc/PID/fd/N`; what has another form is passed over. */
  readonly from: string;
  /** A descriptor. */
  readonly to: number;
  /** False when the new file's mode is closer than the old one's, which must not show even for a moment. */
  readonly withMode: boolean;
}

const DESCRIPTOR = /^(\/proc\/\d+\/fd\/)(\d+)$/;
/** Milliseconds. */
const TIMEOUT = 30_000;

/**
 * Copies what goes beyond owner, mode and times, with one process for all. Best effort: file systems and machines whose
 * `cp` cannot do it keep nothing. Leaves the owners as they are, the modes wrong, and capabilities copied: set owner and mode
 * afterwards.
 */
export async function keepAttributes(replacements: readonly Replacement[]): Promise<void> {
  for (const withMode of [true, false]) {
    const group = replacements.filter((one) => one.withMode === withMode && DESCRIPTOR.test(one.from));
    if (group.length > 0) await copyAttributes(group, withMode);
  }
}

/**
 * `cp` sees descriptors of this process only, so that nobody can put another file in the way: each source is named by
 * its descriptor, and a private directory holds a link of the same name to the descriptor that it goes to.
 */
async function copyAttributes(group: readonly Replacement[], withMode: boolean): Promise<void> {
  const links = mkdtempSync(join(tmpdir(), 'orch-attributes-'));
  try {
    for (const { from, to } of group) {
      const [, descriptors, name = ''] = DESCRIPTOR.exec(from) ?? [];
      symlinkSync(`${descriptors}${to}`, join(links, name));
    }
    const without = `timestamps,ownership${withMode ? '' : ',mode'}`;
    const options = ['--attributes-only', '--preserve=all', `--no-preserve=${without}`, '-t', links, '--'];
    // Where no mode is copied, cp sets one by its umask.
    await run('sh', ['-c', 'umask 077; exec cp "$@"', 'cp', ...options, ...group.map(({ from }) => from)]);
  } finally {
    rmSync(links, { recursive: true, force: true });
  }
}

const run = (program: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: TIMEOUT }, () => resolve());
  });
