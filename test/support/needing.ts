/** Tests that take programs which not every machine has. */
import { it } from 'vitest';
import { isInstalled } from './is-installed.js';

/** `it` where all of them are installed; elsewhere the test is skipped, and says why. */
export function itNeeding(...programs: readonly string[]): typeof it.skip {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0) return it;
  const reason = `${missing.join(', ')} not installed`;
  return ((title: string, ...rest: [never]) => it.skip(`${title} (skipped: ${reason})`, ...rest)) as typeof it.skip;
}
