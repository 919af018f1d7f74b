/** What `choco` writes, in versions 1 and 2; with `--limit-output` it is lines of fields with bars between them. */
import { foldCase } from '../windows/windows-case.js';

/** Names and versions of the installed packages: `NAME|VERSION`. */
export function parseChocoList(output: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, version, ...rest] of rowsOf(output)) {
    if (name && version && rest.length === 0) found.set(foldCase(name), version);
  }
  return found;
}

export interface OutdatedPackage {
  readonly newer: string;
  readonly isPinned: boolean;
}

/** The installed packages that the sources have newer versions of: `NAME|CURRENT|AVAILABLE|PINNED`. */
export function parseChocoOutdated(output: string): ReadonlyMap<string, OutdatedPackage> {
  const found = new Map<string, OutdatedPackage>();
  for (const [name, current, newer, pinned, ...rest] of rowsOf(output)) {
    if (!name || !current || !newer || pinned === undefined || rest.length > 0) continue;
    found.set(foldCase(name), { newer, isPinned: pinned.toLowerCase() === 'true' });
  }
  return found;
}

/** Warnings and the like have no bars, or blanks around them. */
const rowsOf = (output: string): readonly (readonly string[])[] =>
  output
    .split(/\r?\n/)
    .map((line) => line.trim().split('|'))
    .filter((fields) => fields.length > 1 && !/\s/.test(fields[0] ?? ''));
