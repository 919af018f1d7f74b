/** Runs `systemctl` and `journalctl`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { messageOf } from '../kernel/fault.js';

const run = promisify(execFile);

/** Runs `systemctl` with these arguments and returns its standard output. Rejects when it fails. */
export type Systemctl = (...args: readonly string[]) => Promise<string>;

export const systemctl: Systemctl = async (...args) => {
  try {
    const { stdout } = await run('systemctl', [...args], { timeout: 120_000 });
    return stdout;
  } catch (cause) {
    throw new Error(`systemctl ${args.join(' ')} failed: ${messageOf(cause)}`, { cause });
  }
};

/** Returns the last lines of a unit's log, oldest first; none when there is no journal. */
export async function lastLogLines(unit: string, lines: number): Promise<readonly string[]> {
  try {
    const { stdout } = await run('journalctl', ['-u', unit, '-n', String(lines), '--no-pager', '-o', 'cat']);
    return stdout.split('\n').filter((line) => line !== '');
  } catch {
    return [];
  }
}

/** Returns true on a machine that systemd runs. */
export const hasSystemd = (): boolean => existsSync('/run/systemd/system');
