/** The notes of scripts and commands, in files that no fault reaches. */
import { existsSync, readFileSync } from 'node:fs';

export const linesIn = (path: string): readonly string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];

export const countIn = (lines: readonly string[], line: string): number => lines.filter((one) => one === line).length;
