/**
 * The tree that an archive describes. Refuses entries that could change anything outside of the directory or that a directory cannot
 * hold twice: the names in an archive are not trusted, even if its SHA-256 is the declared one.
 */
import { Fault } from '../../../kernel/fault.js';
import {
  MAX_ARCHIVE_DEPTH,
  MAX_ARCHIVE_ENTRIES,
  MAX_UNPACKED_BYTES,
  mostUnpacked,
} from '../../../resources/archive/unpacked.js';
import { problemOfUnixPath } from '../../../resources/unix/unix-path.js';

/** An entry as the archive has it. */
export interface RawEntry {
  readonly name: string;
  /** `hard link` for another name of an earlier file; any other text names what is not unpacked. */
  readonly type: 'file' | 'directory' | 'symlink' | 'hard link' | (string & {});
  /** Permission bits; null where the archive has none. */
  readonly mode: number | null;
  /** Target of a link. */
  readonly target?: string;
}

/** An entry by its path in the directory. Setuid, setgid, sticky and write access of others are never taken from an archive. */
export type TreeEntry =
  | { readonly type: 'file'; readonly path: string; readonly mode: number }
  | { readonly type: 'directory'; readonly path: string; readonly mode: number }
  | { readonly type: 'link'; readonly path: string; readonly target: string };

const KEPT_BITS = 0o755;
const OWN_OF_FILE = 0o600;
const OWN_OF_DIRECTORY = 0o700;
const NEW_FILE = 0o644;
const NEW_DIRECTORY = 0o755;
/** Maximum bytes of the target of a link, as systems count them. */
const MAX_TARGET = 4095;
/** Maximum characters of a name in a message. */
const SHOWN = 120;

interface TreeOptions {
  /** The directory that the tree comes into. */
  readonly directory: string;
  readonly strip: number;
  /** True where names that differ in case or Unicode form only are the same. */
  readonly ignoresCase: boolean;
}

export class ArchiveTree {
  private readonly options: TreeOptions;
  private readonly known = new Map<string, TreeEntry>();
  private readonly folded = new Map<string, string>();
  private seen = 0;

  constructor(options: TreeOptions) {
    this.options = options;
  }

  /** Returns all entries by path, each directory before what is in it. */
  entries(): readonly TreeEntry[] {
    return [...this.known.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** Adds an entry; null for one that `strip` leaves out. Throws `archive_refused`. */
  add(raw: RawEntry): TreeEntry | null {
    this.seen += 1;
    if (this.seen > MAX_ARCHIVE_ENTRIES) throw tooMany();
    const path = this.pathOf(raw.name);
    if (path === null) return null;
    const entry = entryOf(raw, path);
    const there = this.known.get(path);
    const isSameDirectory = there?.type === 'directory' && entry.type === 'directory';
    if (there !== undefined && !isSameDirectory) {
      throw refused(`it has two entries for ${shown(path)}`);
    }
    this.imply(path, raw.name);
    this.put(entry);
    return entry;
  }

  /** Returns the path in the directory of the file that a hard link names. Throws where there is no such file before it. */
  linkedFile({ name, target = '' }: RawEntry): string {
    const path = this.pathOf(target);
    if (path !== null && this.known.get(path)?.type === 'file') return path;
    throw refused(`${shown(name)} is a hard link to ${shown(target)}, which is no earlier file of the archive`);
  }

  /** Returns the path in the directory; null for one that `strip` leaves out, and for the directory itself. */
  private pathOf(name: string): string | null {
    const { directory, strip } = this.options;
    if (name.startsWith('/')) throw refused(`the name ${shown(name)} is absolute`);
    if (/\p{Cc}/u.test(name)) throw refused(`the name ${shown(name)} has control characters`);
    if (name.includes('\uFFFD') || !name.isWellFormed()) throw refused(`the name ${shown(name)} is not valid UTF-8`);
    const parts = name.split('/').filter((part) => part !== '' && part !== '.');
    if (parts.includes('..')) throw refused(`the name ${shown(name)} leads upwards with ".."`);
    if (parts.length > MAX_ARCHIVE_DEPTH) {
      throw refused(`the name ${shown(name)} has more than ${MAX_ARCHIVE_DEPTH} parts`);
    }
    const path = parts.slice(strip).join('/');
    if (path === '') return null;
    const problem = problemOfUnixPath(`${directory}/${path}`);
    if (problem !== null) throw refused(`the path of ${shown(name)} ${problem}`);
    return path;
  }

  /** Makes sure that everything above a path is a directory of the tree. */
  private imply(path: string, name: string): void {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      const above = path.slice(0, at);
      const there = this.known.get(above);
      if (there === undefined) this.put({ type: 'directory', path: above, mode: NEW_DIRECTORY });
      else if (there.type !== 'directory') {
        throw refused(`${shown(name)} lies below ${shown(above)}, which is a ${there.type} of the archive`);
      }
    }
  }

  private put(entry: TreeEntry): void {
    const { path } = entry;
    if (this.options.ignoresCase) {
      const folded = path.normalize('NFC').toLowerCase();
      const other = this.folded.get(folded);
      if (other !== undefined && other !== path) {
        throw refused(`${shown(other)} and ${shown(path)} are one name on this file system`);
      }
      this.folded.set(folded, path);
    }
    this.known.set(path, entry);
    if (this.known.size > MAX_ARCHIVE_ENTRIES) throw tooMany();
  }
}

function entryOf({ name, type, mode, target = '' }: RawEntry, path: string): TreeEntry {
  switch (type) {
    case 'file':
    case 'hard link':
      return { type: 'file', path, mode: mode === null ? NEW_FILE : (mode & KEPT_BITS) | OWN_OF_FILE };
    case 'directory':
      return { type: 'directory', path, mode: mode === null ? NEW_DIRECTORY : (mode & KEPT_BITS) | OWN_OF_DIRECTORY };
    case 'symlink': {
      const problem = problemOfTarget(path, target);
      if (problem !== null) throw refused(`the link ${shown(name)} to ${shown(target)} ${problem}`);
      return { type: 'link', path, target };
    }
    default:
      throw refused(`${shown(name)} is a ${type}; only files, directories and links are unpacked`);
  }
}

/**
 * Returns why a link must not have a target, as it completes "the link …"; null when it may. After a name, `..` could lead out of the
 * directory through another link, so it is allowed at the beginning only.
 */
function problemOfTarget(path: string, target: string): string | null {
  if (target === '') return 'has no target';
  if (target.startsWith('/')) return 'is absolute';
  if (/\p{Cc}|\uFFFD/u.test(target) || !target.isWellFormed()) return 'is not valid text';
  if (Buffer.byteLength(target) > MAX_TARGET) return `is longer than ${MAX_TARGET} bytes`;
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const upwards = parts.findIndex((part) => part !== '..');
  const ups = upwards === -1 ? parts.length : upwards;
  if (ups > path.split('/').length - 1) return 'leads out of the directory';
  return parts.slice(ups).includes('..') ? 'leads upwards with ".." after a name' : null;
}

const tooMany = (): Fault => refused(`it has more than ${MAX_ARCHIVE_ENTRIES} entries`);

/** Returns a text of an archive for a message. */
const shown = (text: string): string => {
  const plain = text.replaceAll(/\p{Cc}/gu, '?');
  return `"${plain.length > SHOWN ? `${plain.slice(0, SHOWN)}…` : plain}"`;
};

/** The Fault of an archive that is not unpacked. @param why completes "the archive is refused: …" */
export const refused = (why: string, cause?: unknown): Fault => new Fault('archive_refused', why, { cause });

/** Counts unpacked bytes, and refuses more than the archive may have. */
export class UnpackedMeter {
  private readonly most: number;
  private count = 0;

  /** @param archiveSize bytes of the archive */
  constructor(archiveSize: number) {
    this.most = mostUnpacked(archiveSize);
  }

  /** Throws `archive_refused` beyond the maximum. */
  add(bytes: number): void {
    this.count += bytes;
    if (this.count <= this.most) return;
    const isRatio = this.most < MAX_UNPACKED_BYTES;
    throw refused(`it unpacks to more than ${this.most} bytes${isRatio ? ', far more than its own size' : ''}`);
  }
}
