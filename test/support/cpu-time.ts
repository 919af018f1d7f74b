/**
 * Set-up of each test file: notes the processor time that it took, of the worker and of the processes that it started and
 * waited for, in the file's `meta`. `scripts/result-reporter.mjs` writes it down.
 */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

const STAT = '/proc/self/stat';
/** Ticks in a second, the same on all architectures of Linux that Node.js runs on (`getconf CLK_TCK`). */
const TICKS = 100;

declare module 'vitest' {
  interface TaskMeta {
    cpuSeconds?: number;
  }
}

/** Processor time of this process and of its children that have ended, in seconds (proc_pid_stat(5), fields 14 to 17). */
function cpuSeconds(): number {
  const stat = readFileSync(STAT, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS;
}

if (existsSync(STAT)) {
  const before = cpuSeconds();
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures it has to make.
  afterAll(({}, { file }) => {
    file.meta.cpuSeconds = cpuSeconds() - before;
  });
}
