/** Directories that other users could exchange, on the way to a path that a program gets. */
import type { Host } from '../host.js';
import { parentOf } from './unix-path.js';

const WRITABLE_BY_ALL = 0o002;

/** Returns the directories from a path up to, but not including, the root. */
export function wayOf(path: string): readonly string[] {
  const way: string[] = [];
  for (let directory = path; directory !== '/'; directory = parentOf(directory)) way.push(directory);
  return way;
}

/**
 * Returns the first directory that a user other than root and `own` could exchange, and why; null for none.
 * @param own user of the program
 */
export function foreignDirectory(host: Host, way: readonly string[], own: number): string | null {
  const accounts = host.accounts();
  const facts = host.observe(way.map((path) => ({ path, content: false, entries: false })));
  for (const [at, directory] of way.entries()) {
    const fact = facts[at];
    if (fact?.type !== 'directory') continue;
    if (fact.uid !== 0 && fact.uid !== own) return `${directory} belongs to ${accounts.userName(fact.uid)}`;
    if ((fact.mode & WRITABLE_BY_ALL) !== 0) return `${directory} can be changed by everyone`;
  }
  return null;
}
