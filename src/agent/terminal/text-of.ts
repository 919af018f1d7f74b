/** Reads a text of the machine that need not be there. */
import { readFileSync } from 'node:fs';

/** Empty for a file that cannot be read. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
