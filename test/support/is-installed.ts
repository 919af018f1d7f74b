/** Whether a program is there to be run. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

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
