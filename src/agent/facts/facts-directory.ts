/** Finds and reads the entries of the directory of facts, and refuses what another user could have put there. */
import { closeSync, constants, fstatSync, lstatSync, opendirSync, openSync, readSync, type Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { FACT_LIMITS, FACT_NAME } from '../../kernel/facts.js';
import { messageOf, systemCodeOf } from '../../kernel/fault.js';

/** An entry of the directory. */
export type FactEntry = {
  /** Name of the fact. */
  readonly name: string;
  readonly path: string;
  /** Changes when the file changes. */
  readonly stamp: string;
} & ({ readonly type: 'json' | 'program' } | { readonly type: 'refused'; readonly error: string });

export interface FactEntries {
  readonly entries: readonly FactEntry[];
  /** Why some or all entries were not looked at; null for none. */
  readonly problem: string | null;
}

/** Entries of the directory that are looked at. */
const MAX_ENTRIES = 1_024;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/** Returns the entries by name, none for a directory that does not exist. */
export function listFacts(directory: string): FactEntries {
  const path = resolve(directory);
  try {
    const refusal = directoryRefusal(path);
    if (refusal !== null) return { entries: [], problem: refusal };
    const { names, isCut } = namesIn(path);
    const shown = names.slice(0, FACT_LIMITS.count);
    const count = isCut ? `more than ${MAX_ENTRIES}` : String(names.length);
    const isTooMany = names.length > shown.length;
    return {
      entries: unambiguous(isCut ? [] : shown.map((name) => entryOf(join(path, name), name))),
      problem: isTooMany
        ? `${path} has ${count} entries, and ${isCut ? 'none is' : `only the first ${FACT_LIMITS.count} are`} read`
        : null,
    };
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return { entries: [], problem: null };
    return { entries: [], problem: `${path} cannot be read: ${messageOf(error)}` };
  }
}

/** Returns why a directory or one above it is not safe, or null. Throws for one that cannot be looked at. */
function directoryRefusal(path: string): string | null {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return `${path} is no directory`;
  const refusal = refusalOf(stats);
  if (refusal !== null) return `${path} ${refusal}`;
  for (let above = dirname(path); ; above = dirname(above)) {
    const found = lstatSync(above);
    const isLink = found.isSymbolicLink();
    // Only the owner of an entry can replace it in a directory with the sticky bit.
    const problem = isLink ? 'is a link' : (found.mode & STICKY) === 0 ? refusalOf(found) : ownerRefusal(found);
    if (problem !== null) return `${above}, above ${path}, ${problem}`;
    if (above === dirname(above)) return null;
  }
}

/** Returns why a file or directory is not safe, as the end of a sentence; null for a safe one. */
function refusalOf(stats: Stats): string | null {
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) return 'can be written by others; take that away with chmod go-w';
  return ownerRefusal(stats);
}

function ownerRefusal({ uid }: Stats): string | null {
  const user = process.geteuid?.() ?? 0;
  if (uid === 0 || uid === user) return null;
  return `belongs to user ${uid}; it must belong to root${user === 0 ? '' : ` or to user ${user}, who runs the agent`}`;
}

function namesIn(path: string): { readonly names: readonly string[]; readonly isCut: boolean } {
  const directory = opendirSync(path);
  try {
    const names: string[] = [];
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      // Editors and package managers leave these.
      if (/^\.|~$|\.(dpkg|rpm|ucf)[a-z-]*$|\.(bak|orig|swp)$/.test(entry.name)) continue;
      names.push(entry.name);
      if (names.length > MAX_ENTRIES) return { names, isCut: true };
    }
    return { names: names.sort(), isCut: false };
  } finally {
    directory.closeSync();
  }
}

function entryOf(path: string, file: string): FactEntry {
  const name = file.replace(/\.[A-Za-z0-9]{1,8}$/, '');
  const refused = (error: string): FactEntry => ({ name: shownName(name), path, stamp: '', type: 'refused', error });
  if (!FACT_NAME.test(name)) {
    return refused(`${JSON.stringify(file.slice(0, 80))} names no fact; a name has letters, digits, "_" and "-"`);
  }
  try {
    const stats = lstatSync(path);
    const { dev, ino, size, mtimeMs, ctimeMs, mode, uid } = stats;
    const stamp = [dev, ino, size, mtimeMs, ctimeMs, mode, uid].join(' ');
    const refusal = stats.isFile()
      ? refusalOf(stats)
      : `is ${stats.isSymbolicLink() ? 'a link' : stats.isDirectory() ? 'a directory' : 'no file'}; put a file of its own there`;
    if (refusal !== null) return { ...refused(`${path} ${refusal}`), stamp };
    if (file.endsWith('.json')) return { name, path, stamp, type: 'json' };
    if ((mode & 0o111) !== 0) return { name, path, stamp, type: 'program' };
    return { ...refused(`${path} is neither a .json file nor executable`), stamp };
  } catch (error) {
    return refused(`${path} cannot be read: ${messageOf(error)}`);
  }
}

/** Returns a name that the link takes, for an entry whose own name is none of a fact. */
const shownName = (name: string): string => {
  const shown = name.replace(/[^\w-]/g, '_').slice(0, 63);
  return /^[A-Za-z_]/.test(shown) ? shown : `_${shown.slice(0, 62)}`;
};

/** Refuses the entries that give one fact. */
function unambiguous(entries: readonly FactEntry[]): readonly FactEntry[] {
  const byName = new Map<string, FactEntry>();
  for (const entry of entries) {
    const other = byName.get(entry.name);
    if (other === undefined) byName.set(entry.name, entry);
    else {
      const error = `${other.path} and ${entry.path} give the same fact; remove one of them`;
      byName.set(entry.name, { ...entry, stamp: `${other.stamp} ${entry.stamp}`, type: 'refused', error });
    }
  }
  return [...byName.values()];
}

/** Returns the text of a file of a fact. Throws an `Error` that says why it cannot be read. */
export function readFactFile(path: string): string {
  // A pipe or a device that has taken the place of the file must not hold up the agent.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    const refusal = stats.isFile() ? refusalOf(stats) : 'is no file';
    if (refusal !== null) throw new Error(`${path} ${refusal}`);
    const buffer = Buffer.allocUnsafe(FACT_LIMITS.bytes + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size < buffer.length; size += read) {
      read = readSync(file, buffer, size, buffer.length - size, null);
    }
    if (size > FACT_LIMITS.bytes) throw new Error(`${path} is larger than ${FACT_LIMITS.bytes} bytes`);
    return buffer.toString('utf8', 0, size);
  } finally {
    closeSync(file);
  }
}
