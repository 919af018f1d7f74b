/**
 * Directories beside a module, which `directory-unix` takes as its `source`. A module names a directory by its path, and what is in it
 * by a list. The list is a text, so it is sent, stored and compared like a file beside the module, under a path that ends in `/`.
 */

/** One thing in a directory beside a module; paths are relative to the directory. */
export interface TreeEntry {
  readonly type: 'directory' | 'file' | 'program';
  readonly path: string;
}

/** The list of each directory, by its path in the module. */
export type TreeLists = Readonly<Record<string, string>>;

/** Maximum bytes of all files in one directory beside a module. */
export const MAX_TREE_BYTES = 256 * 1024 * 1024;

/** Returns the path under which the list of a directory is found. */
export const listPath = (source: string): string => `${source}/`;

/** Returns true for the path of a list. */
export const isListPath = (path: string): boolean => path.endsWith('/');

const LETTERS = { directory: 'd', file: 'f', program: 'x' } as const;
const TYPES = new Map(Object.entries(LETTERS).map(([type, letter]) => [letter, type as TreeEntry['type']] as const));

/** Returns the list of entries: a line for each with a letter and a path, in one order on every machine. */
export const listOf = (entries: readonly TreeEntry[]): string =>
  [...entries]
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ type, path }) => `${LETTERS[type]} ${path}\n`)
    .join('');

/** Reads a list; null for a text that `listOf` does not make, such as one in which a file holds another one. */
export function readList(text: string): readonly TreeEntry[] | null {
  const entries: TreeEntry[] = [];
  const types = new Map<string, TreeEntry['type']>();
  for (const line of text.split('\n').slice(0, -1)) {
    const type = TYPES.get(line.slice(0, 1) as 'd' | 'f' | 'x');
    const path = line.slice(2);
    const above = path.includes('/') ? types.get(path.slice(0, path.lastIndexOf('/'))) : 'directory';
    if (type === undefined || path === '' || above !== 'directory') return null;
    types.set(path, type);
    entries.push({ type, path });
  }
  return listOf(entries) === text && types.size === entries.length ? entries : null;
}
