/** Tests that take programs which not every machine has. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { it } from 'vitest';

/** Whether it is in the search path, as a program that may be run. */
export const isInstalled = (program: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((directory) => isProgram(join(directory, program)));

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** `it` where all of them are installed; elsewhere the test is skipped, and says why. */
export function itNeeding(...programs: readonly string[]): typeof it.skip {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0) return it;
  const reason = `${missing.join(', ')} not installed`;
  return ((title: string, ...rest: [never]) => it.skip(`${title} (skipped: ${reason})`, ...rest)) as typeof it.skip;
}
