/** Files of the operator alone: written whole or not at all, 0600 in a directory of 0700. */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Replaces the file; a reader sees the old content or the new one. Throws the system's error. */
export function writeOwnFile(path: string, content: string): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`;
  makeOwnDirectory(dirname(path));
  try {
    writeFileSync(temporary, content, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Makes a directory, and those above it, with no right for others. One that is there keeps its mode. */
export function makeOwnDirectory(path: string): void {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  // The umask only takes rights away, but an odd one takes the owner's.
  if (made !== undefined) chmodSync(path, 0o700);
}
