/** Tells whether a process is there. */
import { systemCodeOf } from '../../kernel/fault.js';

/** A negative id stands for a process group: true while any process of it is left. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCodeOf(error) !== 'ESRCH';
  }
}
