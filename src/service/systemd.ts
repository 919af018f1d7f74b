/** Runs `systemctl` and `journalctl`. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { messageOf } from '../kernel/fault.js';

const run = promisify(execFile);

/** Runs `systemctl` with these arguments and returns its standard output. Rejects when it fails. */
export type Systemctl = (...args: readonly string[]) => Promise<string>;

/**
 * Returns a `systemctl` that is killed after so many milliseconds.
 * @param program returns its path
 */
export const systemctlWithin =
  (timeout: number, program = () => 'systemctl'): Systemctl =>
  async (...args) => {
    try {
      const { stdout } = await run(program(), [...args], { timeout });
      return stdout;
    } catch (cause) {
      throw new Error(`systemctl ${args.join(' ')} failed: ${messageOf(cause)}`, { cause });
    }
  };

const TIMEOUT_MS = 120_000;

export const systemctl: Systemctl = systemctlWithin(TIMEOUT_MS);

/** Returns a `systemctl` whose path `program` returns. */
export const systemctlAt = (program: () => string): Systemctl => systemctlWithin(TIMEOUT_MS, program);

/** Returns the last lines of a unit's log, oldest first; none when there is no journal. */
export async function lastLogLines(unit: string, lines: number): Promise<readonly string[]> {
  try {
    const words = ['-u', unit, '-n', String(lines), '--no-pager', '-o', 'cat'];
    const { stdout } = await run('journalctl', words, { timeout: 10_000 });
    return stdout.split('\n').filter((line) => line !== '');
  } catch {
    return [];
  }
}

/** Returns true on a machine that systemd runs. */
export const hasSystemd = (): boolean => existsSync('/run/systemd/system');

/** Returns true for a process that a unit of systemd runs. */
export function isInUnit(unit: string): boolean {
  const lines = readFileSync('/proc/self/cgroup', 'utf8').split('\n');
  return lines.some((line) => line.split('/').includes(unit));
}
