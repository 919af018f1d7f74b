/**
 * Changes of our own files that survive a power cut. A file's content is durable after `fsync` of the file, its name only after
 * `fsync` of the directory (fsync(2)). All functions are synchronous and throw the system's error.
 */
import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes the content of a file durable. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Codes of file systems that cannot sync a directory, as some of the network. */
const CANNOT_SYNC: readonly unknown[] = ['EINVAL', 'ENOTSUP', 'ENOSYS'];

/** Makes the names in a directory durable, and that some are gone, where the file system can. */
export function syncDirectory(path: string): void {
  // It opens no directory, and does it by itself.
  if (process.platform === 'win32') return;
  try {
    syncFile(path);
  } catch (error) {
    if (!CANNOT_SYNC.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}

/** Gives a file or directory another name on the same file system; what had that name is replaced. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncDirectory(dirname(to));
  if (dirname(from) !== dirname(to)) syncDirectory(dirname(from));
}

/** Creates a file that is not there. Its name is not durable yet. */
export function createFile(path: string, content: string | Uint8Array, mode: number): void {
  // Refuses links as well.
  const descriptor = openSync(path, 'wx', mode);
  try {
    // An unusual umask removes even the owner's rights.
    fchmodSync(descriptor, mode);
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

interface ReplaceOptions {
  /** Permission bits [default: 0600]. */
  readonly mode?: number;
  /** Name of the new file until it takes the place of the old one [default: the path with `.new`]. */
  readonly temporary?: string;
}

/** Replaces a file: after a crash it has either the old content or the new. */
export function replaceFile(path: string, content: string | Uint8Array, options: ReplaceOptions = {}): void {
  const { mode = 0o600, temporary = `${path}.new` } = options;
  rmSync(temporary, { force: true });
  try {
    createFile(temporary, content, mode);
    renameDurably(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}
