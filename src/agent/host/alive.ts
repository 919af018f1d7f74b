/** Checks whether processes exist. */
import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { systemCodeOf } from '../../kernel/fault.js';

/** True while the process exists; for a negative ID, while any process of that process group exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCodeOf(error) !== 'ESRCH';
  }
}

/**
 * Returns whether a process that left something behind may still use it: false when it has ended, or when its ID now belongs to
 * another program. No age decides, because the clock may jump while the process is at work.
 */
export function mayBeInUse(owner: number): boolean {
  return isAlive(owner) && programOf(owner) === programOf(process.pid);
}

/** Number of this process's PID namespace; 0 where there are none. Process IDs of another namespace say nothing here. */
export function pidNamespace(): number {
  try {
    return Number(/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 0);
  } catch {
    return 0;
  }
}

/** Name of the program that a process runs; this one's where the system does not say. */
function programOf(pid: number): string {
  try {
    // A program that an upgrade has replaced ends in " (deleted)".
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '');
  } catch {
    return basename(process.execPath);
  }
}
