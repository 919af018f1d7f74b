/**
 * A directory that is held open, so that its entries are those of this directory whatever happens to its path. Links are never
 * followed below it. Calls are synchronous where they take microseconds: the thread pool costs several times as much for each.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, type Stats } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { systemCodeOf } from '../kernel/fault.js';

/** Opens a file only to refer to it (`O_PATH` of Linux). Node does not name the flag. */
const O_PATH = 0o10000000;
const IS_LINUX = process.platform === 'linux';
/** Flags of Windows have no such bits. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const DIRECTORY = constants.O_DIRECTORY ?? 0;
const SAFELY = NO_FOLLOW | (constants.O_NONBLOCK ?? 0);

export class HeldDirectory {
  readonly stats: Stats;
  /** Descriptor; null where directories have none, and once it is closed. */
  private fd: number | null;
  private readonly place: Buffer;

  private constructor(fd: number | null, place: Buffer, stats: Stats) {
    this.fd = fd;
    this.place = place;
    this.stats = stats;
  }

  /** Opens an absolute path without links, component by component on Linux. */
  static async open(path: string): Promise<HeldDirectory> {
    if (!IS_LINUX) return HeldDirectory.at(Buffer.from(path));
    let held = HeldDirectory.at(Buffer.from('/'));
    for (const part of path.split('/').filter((part) => part !== '')) {
      const above = held;
      try {
        held = above.enter(Buffer.from(part).toString('latin1'));
      } finally {
        above.close();
      }
    }
    return held;
  }

  private static at(path: Buffer): HeldDirectory {
    if (!IS_LINUX) {
      // Without descriptors of directories, only a link that is there already is refused.
      const stats = lstatSync(path);
      if (!stats.isDirectory()) throw notADirectory(stats.isSymbolicLink());
      return new HeldDirectory(null, Buffer.concat([path, Buffer.from('/')]), stats);
    }
    const fd = openSync(path, O_PATH | DIRECTORY | NO_FOLLOW);
    try {
      return new HeldDirectory(fd, Buffer.from(`/proc/self/fd/${fd}/`), fstatSync(fd));
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Path of an entry, for calls that act on the entry itself. @param name one character for each byte */
  path(name: string): Buffer {
    // Another file may have the number of a closed descriptor.
    if (this.fd === null && IS_LINUX) throw new Error('the directory is closed');
    return Buffer.concat([this.place, Buffer.from(name, 'latin1')]);
  }

  /** Path of the directory itself. */
  get self(): Buffer {
    return this.path('.');
  }

  /** Opens a directory below it. */
  enter(name: string): HeldDirectory {
    try {
      return HeldDirectory.at(this.path(name));
    } catch (error) {
      // O_DIRECTORY with O_NOFOLLOW fails for a link as for a file.
      const isLink = systemCodeOf(error) === 'ENOTDIR' && this.look(name)?.isSymbolicLink() === true;
      throw isLink ? notADirectory(true) : error;
    }
  }

  /** Opens a file below it. Links fail, and pipes do not block. */
  open(name: string, flags: number, mode?: number): Promise<FileHandle> {
    return open(this.path(name), flags | SAFELY, mode);
  }

  /** Opens a file below it for synchronous calls. Returns its descriptor, which the caller closes. */
  openNow(name: string, flags: number, mode?: number): number {
    return openSync(this.path(name), flags | SAFELY, mode);
  }

  /** Returns the state of an entry; null if there is none. */
  look(name: string): Stats | null {
    return lstatSync(this.path(name), { throwIfNoEntry: false }) ?? null;
  }

  /** Returns the names of all entries, one character for each byte, in the order of their bytes. */
  async names(): Promise<readonly string[]> {
    const names = await readdir(this.self, { encoding: 'buffer' });
    return names.map((name) => name.toString('latin1')).sort();
  }

  close(): void {
    const { fd } = this;
    this.fd = null;
    if (fd !== null) closeSync(fd);
  }
}

const notADirectory = (isLink: boolean): Error =>
  Object.assign(new Error(isLink ? 'a link is there' : 'no directory'), { code: isLink ? 'ELOOP' : 'ENOTDIR' });

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  ENOENT: 'no such file or directory',
  ENOTDIR: 'a part of the path is no directory',
  EISDIR: 'a directory is there',
  ENOTEMPTY: 'a directory is there',
  EEXIST: 'something else is there',
  ELOOP: 'a link is there, and links are not followed',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file is too large for the file system',
  EROFS: 'the file system is read-only',
  ENAMETOOLONG: 'the name is too long',
  EMFILE: 'too many open files',
  EIO: 'the disk failed',
  EINVAL: 'the file system does not take that name',
  ETXTBSY: 'the program is running',
};

/** Returns why a call of the file system failed, without the path that it was called with. */
export function reasonOfError(error: unknown): string {
  const code = systemCodeOf(error);
  if (code !== undefined) return REASONS[code] ?? code;
  return error instanceof Error ? error.message : String(error);
}
