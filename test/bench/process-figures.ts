/** The cost of a running process, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks a second in /proc, the same on every Linux that Node supports. */
const TICKS = 100;

/** Returns the CPU time of all threads so far, in milliseconds. */
export function cpuTime(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name may have spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

/** Returns how often the threads have slept so far, which is how often they were woken. */
export function wakeUps(pid: number): number {
  const counts = readdirSync(`/proc/${pid}/task`).map((task) =>
    numberOf(readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8'), 'voluntary_ctxt_switches'),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Returns the resident memory in bytes. */
export const residentMemory = (pid: number): number =>
  numberOf(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS') * 1024;

/** Returns the bytes that the process has caused to be written to a disk so far. */
export const bytesWritten = (pid: number): number => numberOf(readFileSync(`/proc/${pid}/io`, 'utf8'), 'write_bytes');

function numberOf(text: string, name: string): number {
  const [, value] = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text) ?? [];
  return Number(value);
}
