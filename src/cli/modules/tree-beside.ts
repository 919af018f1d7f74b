/** Lists a directory beside a module on this machine. */
import { isUtf8 } from 'node:buffer';
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_FILES } from '../../language/files-beside.js';
import type { TreeEntry } from '../../language/trees.js';

/** Permission of the owner to run a file. */
const RUN = 0o100;

/** Returns what is below a directory. Throws an Error that says what cannot be sent. */
export function entriesBelow(root: string): readonly TreeEntry[] {
  if (!lstatSync(root).isDirectory())
    throw new Error('is a file, not a directory; file-unix takes a file as its source');
  const entries: TreeEntry[] = [];
  const directories = [''];
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    for (const name of namesIn(join(root, directory), directory)) {
      const path = directory === '' ? name : `${directory}/${name}`;
      const stats = lstatSync(join(root, path));
      if (stats.isDirectory()) directories.push(path);
      else if (!stats.isFile()) throw new Error(problemOf(path, stats.isSymbolicLink()));
      const type = stats.isDirectory() ? 'directory' : (stats.mode & RUN) === 0 ? 'file' : 'program';
      entries.push({ type, path });
      if (entries.length > MAX_FILES) throw new Error(`holds more than ${MAX_FILES} files and directories; ${PACK}`);
    }
  }
  return entries;
}

const PACK = 'pack them, and give the machine an address for them';

function problemOf(path: string, isLink: boolean): string {
  const at = JSON.stringify(path);
  return isLink
    ? `holds the link ${at}, and links are not sent; put a copy of its target there, or declare the link with symlink-unix`
    : `holds ${at}, which is neither a file nor a directory; take it away`;
}

/** Returns the names in a directory, of which each must be one that a module can hold. */
function namesIn(place: string, directory: string): readonly string[] {
  return readdirSync(place, { encoding: 'buffer' }).map((bytes) => {
    const name = bytes.toString('utf8');
    const shown = JSON.stringify(directory === '' ? name : `${directory}/${name}`);
    if (!isUtf8(bytes)) throw new Error(`holds ${shown}, whose name is not UTF-8; rename it`);
    if (/[\u0000-\u001f\u007f\\]/.test(name)) {
      throw new Error(`holds ${shown}, whose name has a backslash or a character that cannot be printed; rename it`);
    }
    return name;
  });
}
