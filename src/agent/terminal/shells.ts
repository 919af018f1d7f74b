/** The shells that a machine lets its users have: `/etc/shells`. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';

/** Paths of the file's text; comments and what is no absolute path do not count. */
export const parseShells = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith('/'));

/** Of a machine without the file, those that every system has (`getusershell(3)`). */
export function readShells(path = '/etc/shells'): readonly string[] {
  try {
    return parseShells(readFileSync(path, 'utf8'));
  } catch {
    return ['/bin/sh', '/bin/csh'];
  }
}

/** Whether it is a file that can be run. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
