/** Tests that take programs which not every machine has. */
import { spawnSync } from 'node:child_process';
import { it } from 'vitest';

/** Whether the shell finds the program. */
export const isInstalled = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;

/** `it` where all of them are installed; elsewhere the test is skipped, and says why. */
export function itNeeding(...programs: readonly string[]): typeof it.skip {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0) return it;
  const reason = `${missing.join(', ')} not installed`;
  return ((title: string, ...rest: [never]) => {
    process.stderr.write(`skipped: ${title}: ${reason}\n`);
    return it.skip(`${title} (skipped: ${reason})`, ...rest);
  }) as typeof it.skip;
}
