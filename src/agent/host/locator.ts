/** Names directories by what they are, so that two paths to one directory have one name. */
import { statSync } from 'node:fs';
import { parentOf } from '../../resources/unix/unix-path.js';

/**
 * Returns a locator (`Host.locator`) that asks for each path once. It follows links as the kernel does, because it only compares
 * names and opens nothing.
 */
export function createLocator(): (path: string) => string {
  const known = new Map<string, string>();
  const nameOf = (path: string): string => {
    const name = known.get(path) ?? inodeOf(path) ?? (path === '/' ? '' : `${nameOf(parentOf(path))}/${lastOf(path)}`);
    known.set(path, name);
    return name;
  };
  return nameOf;
}

/** Returns device and inode of an existing directory, else null. */
function inodeOf(path: string): string | null {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats?.isDirectory() === true ? `${stats.dev}:${stats.ino}` : null;
  } catch {
    return null;
  }
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
